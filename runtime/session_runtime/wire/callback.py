"""How a result that is sent to a configured address is signed: what both ends agree on (SEC-3).

The form is that of Standard Webhooks, so that receivers find libraries for it in most languages.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from session_runtime.errors import RequestError

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
TOLERANCE_S: Final = 300.0
"""How far the time stamp of a message may be from the receiver's clock."""

_PREFIX: Final = "whsec_"
_VERSION: Final = "v1,"
_LEAST_BYTES: Final = 24
_MOST_BYTES: Final = 64


def secret_bytes(secret: str) -> bytes | None:
    """The key that a secret stands for; None for what is no such secret."""
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if secret.startswith(_PREFIX) and _LEAST_BYTES <= len(key) <= _MOST_BYTES else None


def signed_headers(key: bytes, message_id: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt to send ``body`` at the time ``at``, in seconds since 1970."""
    return {ID: message_id, TIMESTAMP: str(at), SIGNATURE: _signature(key, message_id, at, body)}


def verify(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> str:
    """The id of a message that was signed with ``secret`` a moment ago; RequestError for any other.

    ``headers`` have their names in small letters. The same id may come again: it is the same message.
    """
    key = secret_bytes(secret)
    if key is None:
        raise RequestError('the secret is not "whsec_" and the base64 of 24 to 64 bytes')
    message_id, stamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    at = int(stamp) if stamp.isascii() and stamp.isdigit() and len(stamp) < 15 else None
    if at is None or abs(now - at) > TOLERANCE_S:
        raise RequestError("the message has no time stamp, or an old one", code="auth.signature")
    wanted = _signature(key, message_id, at, body).encode()
    given = headers.get(SIGNATURE, "").encode(errors="replace").split(b" ")
    if not any(hmac.compare_digest(wanted, each) for each in given):
        raise RequestError("the message is not signed with this secret", code="auth.signature")
    return message_id


def _signature(key: bytes, message_id: str, at: int, body: bytes) -> str:
    signed = hmac.new(key, f"{message_id}.{at}.".encode() + body, hashlib.sha256).digest()
    return f"{_VERSION}{base64.b64encode(signed).decode()}"
