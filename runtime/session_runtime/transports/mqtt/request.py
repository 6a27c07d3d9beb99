"""Reads a message as a request: where its answer goes, whom it is from, what it asks (NET-6)."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from session_runtime.ask.lengths import chars_of_request
from session_runtime.config.mqtt import MqttSigner
from session_runtime.errors import RequestError
from session_runtime.registry.keyring import Keyring
from session_runtime.threads import aside
from session_runtime.trace.traceparent import PARENT, STATE, read_context
from session_runtime.transports.mqtt.link import Incoming
from session_runtime.transports.mqtt.window import Who
from session_runtime.types import (
    LOCAL,
    AskEvent,
    AskFinished,
    AskRequest,
    AskStarted,
    Principal,
)
from session_runtime.wire import detach_from_json, is_soon_read, parse_request, request_from_json
from session_runtime.wire.mqtt import (
    CANCEL,
    EVENTS,
    EXPIRES,
    MAX_CORRELATION_BYTES,
    MAX_TOPIC_BYTES,
    MAX_TOPIC_LEVELS,
    NONE,
    PRINCIPAL,
    SIGNATURE,
    STARTED,
    Envelope,
    reply_root,
    sign,
)
from session_runtime.wire.mqtt_answers import attempt_of, may_have_run_before

Unanswerable = Literal["retained", "no_reply"]
"""Why a message gets no answer: it was kept by the broker, or does not say where answers go."""

_LONGEST_CANCEL: Final = 512
_MOST_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Rules:
    """What requests are measured by: bounds, and whom signatures are from; ``now`` in seconds since 1970."""

    prefix: str
    max_bytes: int
    max_signed_s: float
    keys: Keyring
    signers: Mapping[str, MqttSigner]
    now: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Address:
    """Where answers go; ``attempt`` counts how often the request was sent, as far as its sender says.

    ``repeated``: its sender does not know whether an earlier one ran. ``copied``: the broker may have given
    this very one to others before, or to what this replica was then.
    """

    reply: str
    correlation: bytes | None
    attempt: int
    repeated: bool
    copied: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was let in; its body is not read yet. ``expires`` is when its signature does."""

    who: Who
    digest: bytes
    principal: Principal
    events: str
    expires: int | None = None

    @property
    def wants_to_wait(self) -> bool:
        """Whether it is to be told that the ask goes on."""
        return self.events != NONE

    def wants(self, event: AskEvent) -> bool:
        """Whether an event is to be published; the last one never is, as the result follows."""
        match event:
            case AskFinished():
                return False
            case AskStarted():
                return self.events != NONE
            case _:
                return self.events not in (NONE, STARTED)


def unanswerable(message: Incoming, prefix: str) -> Unanswerable | None:
    """Say why there can be no answer; None if there can."""
    if message.retained:
        return "retained"
    root, reply = reply_root(prefix), message.reply or ""
    rest = reply.removeprefix(root)
    good = (
        rest
        and rest != reply
        and len(reply.encode("utf-8", "replace")) <= MAX_TOPIC_BYTES
        and reply.count("/") < MAX_TOPIC_LEVELS
        and rest.isprintable()
        and not set("+#") & set(rest)
    )
    return None if good else "no_reply"


def address_of(message: Incoming) -> Address:
    """Where the answers to a message go that can be answered."""
    correlation = message.correlation
    if correlation is not None and len(correlation) > MAX_CORRELATION_BYTES:
        correlation = None
    about = message.properties
    repeated = may_have_run_before(about)
    return Address(message.reply or "", correlation, attempt_of(about), repeated, message.repeated)


def admit(message: Incoming, rules: Rules) -> Asked:
    """Let a message in that can be answered; raises RequestError for one that may not come in."""
    if not message.correlation or len(message.correlation) > MAX_CORRELATION_BYTES:
        raise RequestError(
            f"Correlation Data is missing or longer than {MAX_CORRELATION_BYTES} bytes: send with each"
            " request some that no other request has, and the same when it is sent again",
            code="mqtt.correlation",
        )
    if len(message.body) > rules.max_bytes:
        raise RequestError(
            f"the request has {len(message.body)} bytes, mqtt.max_payload_bytes allows {rules.max_bytes}",
            code="request.too_large",
        )
    principal, expires = _principal(message, rules)
    return Asked(
        (principal.name, message.reply or "", message.correlation),
        hashlib.sha256(message.body).digest(),
        principal,
        message.properties.get(EVENTS, ""),
        expires,
    )


def check_fresh(asked: Asked, rules: Rules) -> None:
    """Raise RequestError if a signature has expired, or expires too far ahead.

    Only for what is not remembered: a broker may send the same message again when its signature has
    expired, as the ask took long; nothing runs for that one.
    """
    if asked.expires is None or 0 < asked.expires - rules.now() <= rules.max_signed_s:
        return
    raise RequestError(
        f"the signature has expired, or expires more than {rules.max_signed_s:g} s"
        " (mqtt.max_signed_s) ahead: sign anew, and look at both clocks",
        code="auth.signature_expired",
    )


def cancelled_by(message: Incoming) -> str | None:
    """The id of the ask that a message is to end; None for one that asks."""
    if len(message.body) > _LONGEST_CANCEL or CANCEL.encode() not in message.body:
        return None
    try:
        data = parse_request(message.body)
    except RequestError:
        return None
    wanted = data.get(CANCEL) if isinstance(data, dict) and len(data) == 1 else None
    return wanted if isinstance(wanted, str) else None


async def read_request(message: Incoming, principal: Principal) -> tuple[AskRequest, int]:
    """Read what is asked, and tell how long it is, in characters.

    One that takes a while is read in a thread, so that it does not hold up other asks.
    What is left of the message's time bounds the ask. Raises RequestError that lists every problem.
    """
    if message.expiry_s == 0:
        raise RequestError(
            "nothing is left of the time of this message (Message Expiry Interval): give it more",
            code="mqtt.expired",
        )
    if is_soon_read(message.body):
        request, chars = _parse(message.body)
    else:
        request, chars = await aside("read a request", partial(_parse, message.body))
    deadlines = [each for each in (request.deadline_s, message.expiry_s) if each is not None]
    deadline_s = float(min(deadlines)) if deadlines else None
    trace = read_context(*([message.properties.get(name, "")] for name in (PARENT, STATE)))
    return replace(request, principal=principal, deadline_s=deadline_s, trace=trace), chars


def _parse(body: bytes) -> tuple[AskRequest, int]:
    data = parse_request(body)
    request = request_from_json(data)
    if detach_from_json(data):
        raise RequestError(
            "detach: an ask by MQTT goes on without its client as it is: leave it out, and send the same"
            " request again to have the answer",
            code="request.invalid",
        )
    if data.get("callback") is not None:
        raise RequestError(
            "callback: an ask by MQTT is answered at its response topic, and nobody else is told of its end:"
            " leave it out, or ask over HTTP",
            code="request.invalid",
        )
    return request, chars_of_request(request)


def _principal(message: Incoming, rules: Rules) -> tuple[Principal, int | None]:
    """Whom a message is from, and until when that holds: with keys, the principal that signed it.

    Without keys it is this machine's user.
    """
    if not rules.keys:
        return LOCAL, None
    given = message.properties
    name, expires = given.get(PRINCIPAL, ""), _whole(given.get(EXPIRES, ""))
    principal, signer = rules.keys.named(name), rules.signers.get(name)
    if principal is None or signer is None or not _is_signed(message, name, expires, signer):
        raise RequestError(
            "the message is not signed by anybody who may ask here; see docs/mqtt.md for what is signed"
            " and how",
            code="auth.signature",
        )
    return principal, expires


def _is_signed(message: Incoming, name: str, expires: int, signer: MqttSigner) -> bool:
    envelope = Envelope(
        name,
        expires,
        message.topic,
        message.reply or "",
        message.correlation or b"",
        message.body,
    )
    right = sign(envelope, signer.secret.get_secret_value())
    given = message.properties.get(SIGNATURE, "")
    return hmac.compare_digest(right.encode(), given.encode("utf-8", "replace"))


def _whole(text: str) -> int:
    good = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if good else 0
