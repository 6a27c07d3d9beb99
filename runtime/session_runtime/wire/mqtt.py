"""What both ends of the MQTT door agree on: topics, names of user properties, and what a signature covers."""

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

MAX_CORRELATION_BYTES: Final = 128
MAX_TOPIC_BYTES: Final = 512
MAX_TOPIC_LEVELS: Final = 16
"""Bounds of a response topic; brokers end connections on which they are given much deeper ones."""

JSON_TYPE: Final = "application/json"

TYPE: Final = "type"
"""User property of an answer: RESULT, ERROR, or the type of an event."""

SEQ: Final = "seq"
"""User property of events and of the last message of an ask; what was not let in has none."""

REPLICA: Final = "replica"
KEPT: Final = "kept"
"""User property of an answer that was given before: nothing ran for this one."""

REPEATED: Final = "repeated"
"""User property of an answer to a run that may not have been the first one of its request."""

ATTEMPT: Final = "attempt"
"""User property of a request that was sent before, counting from 1; an answer to one has it too."""

REFUSED: Final = "refused"
"""User property of a request that was sent before: how many of the earlier copies were refused, unrun."""

EVENTS: Final = "events"
"""User property of a request: NONE keeps events back, STARTED all but the first one."""

LEAST_SECRET_CHARS: Final = 32
"""No signing secret is shorter."""

PRINCIPAL: Final = "principal"
EXPIRES: Final = "expires"
SIGNATURE: Final = "signature"

CANCEL: Final = "cancel"
"""The one name in the body of a request that ends an ask, which it names by its id."""

CANCELLED: Final = "cancelled"
"""Type of the answer to such a request, and the one name in its body: whether it told the ask to end."""

RESULT: Final = "result"
ERROR: Final = "error"
NONE: Final = "none"
STARTED: Final = "started"

PRESENCE_S: Final = 86_400
"""Expiry of every presence, so that what is left of it tells how long ago it was published."""

BEAT_S: Final = 60.0
"""A replica publishes its presence again after so long, even if nothing changed."""

ALIVE: Final = "alive"
"""Type of a message that says that an ask goes on, or waits for its turn; it has no content."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LEVEL: Final = r"[^/+#$\s\0-\x1f]{1,64}"
_PREFIX: Final = re.compile(rf"{_LEVEL}(?:/{_LEVEL}){{0,7}}")
_CONTEXT: Final = b"session-runtime mqtt ask 1"


def ask_topic(prefix: str) -> str:
    """Where requests are published."""
    return f"{prefix}/ask"


def replica_topic(prefix: str, replica: str) -> str:
    """Where a request is published again that this replica has begun."""
    return f"{prefix}/ask/{replica}"


def shared_filter(prefix: str, group: str) -> str:
    """What a replica subscribes to; all of one group share the requests, an empty one shares nothing."""
    return f"$share/{group}/{ask_topic(prefix)}" if group else ask_topic(prefix)


def reply_root(prefix: str) -> str:
    """What the response topic of every request begins with."""
    return f"{prefix}/reply/"


def is_replica_name(text: str) -> bool:
    """Whether a replica may have this name, so that it can be part of a topic."""
    return _NAME.fullmatch(text) is not None


def is_prefix(text: str) -> bool:
    """Whether all topics of daemons and their clients may lie below this: up to 8 levels joined by /."""
    return _PREFIX.fullmatch(text) is not None


def is_client_name(text: str) -> bool:
    """Whether answers may go to a topic that begins with this, below ``reply_root``: levels joined by /."""
    levels = text.split("/")
    good = text.isprintable() and not set("+# ") & set(text) and len(text) <= MAX_CORRELATION_BYTES
    return good and all(levels) and len(levels) <= MAX_TOPIC_LEVELS // 2


def status_topic(prefix: str, replica: str) -> str:
    """Where a replica says how it is, as a retained message: its presence.

    That is a JSON object with ``replica``, ``state`` (online, draining, offline), ``since`` when it is in
    that state and ``at`` when it was published, both in seconds since 1970, and what
    ``wire.presence`` reads. A last will, which the broker publishes, has only the first two.
    """
    return f"{prefix}/status/{replica}"


def status_filter(prefix: str) -> str:
    """What to subscribe to for the presence of all replicas."""
    return f"{prefix}/status/+"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a signature covers: who asks what, where, and until when (NET-6).

    ``expires`` is in whole seconds since 1970, ``topic`` where the request is published.
    """

    principal: str
    expires: int
    topic: str
    reply: str
    correlation: bytes
    body: bytes


def sign(envelope: Envelope, secret: str) -> str:
    """The signature as 64 hexadecimal digits: HMAC with SHA-256 over every part with its length."""
    parts = (
        _CONTEXT,
        envelope.principal.encode(),
        str(envelope.expires).encode(),
        envelope.topic.encode(),
        envelope.reply.encode(),
        envelope.correlation,
        hashlib.sha256(envelope.body).digest(),
    )
    signed = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
