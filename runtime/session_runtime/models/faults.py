"""Names what went wrong in a model call and whether it may work later; trying again is decided in ``ask``.

What a provider says about the fault is data from outside: it is shown shortened, on one line, and
without anything that looks like a key (CFG-4, SEC-4).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2

from session_runtime.errors import PermanentError, TransientError
from session_runtime.models.masking import masked
from session_runtime.trace.redact import MASK, redact_text

MAX_SHOWN_CHARS: Final = 300
_MAX_READ_CHARS: Final = 8 * MAX_SHOWN_CHARS
_MAX_SAID_CHARS: Final = 8_000
_KEY_LIKE: Final = re.compile(  # what a provider may repeat beyond the shapes that traces know
    r"\bBearer\s+\S+|\b(?:sk|pk|rk|key|gsk|xai)-[\w*.-]{4,}|\S*\*{3,}\S*", re.IGNORECASE
)
_TOO_LONG: Final = re.compile(
    r"context.?length|context.?window|context.?size|prompt is too long|input is too long"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)
_KINDS: Final = ("code", "type", "status")
_MAX_KIND_CHARS: Final = 100
_TRANSIENT_STATUS: Final = frozenset({408, 409, 425, 429})
_TRANSIENT_KIND: Final = re.compile(
    r"rate.?limit|overload|unavailable|server_error|internal|api_error|timeout", re.IGNORECASE
)
_UNAUTHORIZED_KIND: Final = re.compile(
    r"authentication|permission|invalid_api_key|unauthori", re.IGNORECASE
)
_REFUSED_KIND: Final = re.compile(r"invalid|not_found|bad.?request|unsupported", re.IGNORECASE)
_NO_MONEY: Final = "insufficient_quota"

ModelFault = TransientError | PermanentError


class RefusedError(PermanentError):
    """The service refused this request for good and may take another: ``said`` is how it said so.

    ``status`` is that of the response, or the one that an error object in it stands for.
    """

    def __init__(self, message: str, *, status: int, said: str) -> None:
        super().__init__(message, code="model.refused")
        self.status = status
        self.said = said

    def names(self, *words: str) -> bool:
        """Whether the service speaks of a field of the request by one of these names."""
        return any(
            re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", self.said) is not None
            for word in words
            if word in self.said
        )


@dataclass(frozen=True, slots=True)
class Api:
    """A wire's protocol: what people call it and the path that is added to ``base_url``.

    ``key_header`` carries a profile's key, behind ``key_scheme``; ``headers`` are sent with every request.
    """

    name: str
    path: str
    key_header: str = "authorization"
    key_scheme: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked: ``base_url`` as it may be shown, ``secrets`` as they may not."""

    base_url: str
    secrets: tuple[str, ...]
    api: Api

    def shown(self, text: str) -> str:
        """Text from outside as one short line without keys."""
        text = masked(text, self.secrets, _MAX_READ_CHARS)
        text = redact_text(_KEY_LIKE.sub(MASK, text))
        line = " ".join(text.split())
        line = "".join(char for char in line if char.isprintable())
        return line if len(line) <= MAX_SHOWN_CHARS else line[: MAX_SHOWN_CHARS - 1] + "…"


@dataclass(frozen=True, slots=True)
class _Complaint:
    """What a provider says about a fault; ``kind`` joins its code and type."""

    message: str
    kind: str = ""
    status: int | None = None


def from_response(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes, now: datetime
) -> ModelFault:
    """The fault that a response without success stands for; ``headers`` have lower-case names."""
    complaint = _read(body)
    if 300 <= status < 400:
        complaint = _Complaint(f"moved to {headers.get('location', 'an unnamed address')}")
    said = f"answered {status}: {_said(endpoint, complaint)}"
    fault = _classified(endpoint, status, complaint.kind, said, retry_after_s(headers, now))
    return fault or _refused(endpoint, status, said, body.decode("utf-8", "replace"))


def from_error_object(endpoint: Endpoint, error: object) -> ModelFault:
    """The fault that an error object in a successful response or in a stream stands for."""
    try:
        complaint = _complaint(error)
    except RecursionError:
        return broken_reply(endpoint, "an error object that is nested too deeply")
    status = complaint.status if complaint.status is not None else _guessed_status(complaint.kind)
    said = f"reported an error: {_said(endpoint, complaint)}"
    fault = _classified(endpoint, status, complaint.kind, said, None)
    return fault or _refused(endpoint, status, said, _text(error))


def from_transport(endpoint: Endpoint, error: httpx2.TransportError) -> ModelFault:
    """The fault that a connection which failed, stalled or broke stands for."""
    detail = endpoint.shown(f"{type(error).__name__}: {error}".removesuffix(": "))
    match error:
        case httpx2.UnsupportedProtocol():
            return PermanentError(
                f"base_url {endpoint.base_url!r} is no http or https URL", code="model.bad_url"
            )
        case httpx2.LocalProtocolError():
            return PermanentError(
                f"the request to {endpoint.base_url} cannot be written ({detail}); check the "
                "profile's api_key for characters that no header may hold",
                code="model.bad_request",
            )
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return TransientError(
                f"cannot reach the model at {endpoint.base_url} ({detail})",
                code="model.unreachable",
            )
        case httpx2.TimeoutException():
            return TransientError(
                f"the model at {endpoint.base_url} was silent for longer than the profile's "
                f"timeout_s ({detail})",
                code="model.timeout",
            )
        case _:
            return TransientError(
                f"the connection to the model at {endpoint.base_url} broke ({detail})",
                code="model.connection_lost",
            )


def not_an_api(endpoint: Endpoint, found: str) -> PermanentError:
    """Something else than the API of the wire answered; ``found`` says what it sent."""
    return PermanentError(
        f"base_url {endpoint.base_url} does not answer like a {endpoint.api.name} API: "
        f"{endpoint.shown(found)}; base_url ends where '{endpoint.api.path}' begins, "
        "usually in '/v1'",
        code="model.not_an_api",
    )


def broken_reply(endpoint: Endpoint, what: str) -> TransientError:
    """The answer began well and cannot be used: cut off, or no JSON where JSON is due."""
    return TransientError(
        f"the model at {endpoint.base_url} sent a broken answer: {endpoint.shown(what)}",
        code="model.broken_reply",
    )


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait as the provider asks: ``retry-after-ms``, else ``retry-after`` in either form.

    None if it does not ask or cannot be understood; never negative.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    return seconds if seconds is not None else _seconds_until(text, now)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,9}(?:\.\d{1,9})?\s*", text, re.ASCII) else None


def _seconds_until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, OverflowError):
        return None


def _said(endpoint: Endpoint, complaint: _Complaint) -> str:
    return endpoint.shown(complaint.message) or "no reason given"


def _classified(
    endpoint: Endpoint, status: int, kind: str, said: str, wait_s: float | None
) -> ModelFault | None:
    """The fault that the status or the kind names; None for a refusal of this one request."""
    text = f"the model at {endpoint.base_url} {said}"
    if status == 402 or _NO_MONEY in kind:
        return PermanentError(
            f"{text}; the account has no credit left", code="model.quota_exhausted"
        )
    if status == 429:
        return TransientError(text, code="model.rate_limited", retry_after_s=wait_s)
    if _TOO_LONG.search(f"{kind} {said}"):
        return PermanentError(
            f"{text}; send less history or use a model with a larger context",
            code="model.context_too_long",
        )
    if status >= 500 or status in _TRANSIENT_STATUS:
        return TransientError(text, code="model.unavailable", retry_after_s=wait_s)
    if status in {401, 403}:
        return PermanentError(
            f"{text}; check the profile's api_key, or its headers", code="model.unauthorized"
        )
    if 300 <= status < 400:
        return PermanentError(
            f"{text}; redirects are not followed, set base_url to the final address",
            code="model.redirected",
        )
    return None


def _refused(endpoint: Endpoint, status: int, said: str, everything: str) -> RefusedError:
    text = f"the model at {endpoint.base_url} {said}"
    if status == 404:
        path = endpoint.api.path
        text += f"; check the profile's model and base_url ('{path}' is added to it)"
    return RefusedError(text, status=status, said=everything[:_MAX_SAID_CHARS])


def _guessed_status(kind: str) -> int:
    """The status an error object would have had; what is unknown may work later."""
    if re.search(r"rate.?limit", kind, re.IGNORECASE):
        return 429
    if _UNAUTHORIZED_KIND.search(kind):
        return 401
    if _REFUSED_KIND.search(kind) and not _TRANSIENT_KIND.search(kind):
        return 400
    return 500


def _read(body: bytes) -> _Complaint:
    try:
        return _complaint(json.loads(body))
    except (ValueError, RecursionError):
        return _Complaint(body.decode("utf-8", "replace"))


def _complaint(value: object) -> _Complaint:
    if isinstance(value, list) and value:
        return _complaint(value[0])
    if not isinstance(value, dict):
        return _Complaint(_text(value))
    inner = value.get("error")
    if isinstance(inner, dict | list) and inner:
        return _complaint(inner)
    return _Complaint(
        message=_first_text(value, ("message", "error", "detail", "msg")),
        kind=" ".join(_text(value.get(key))[:_MAX_KIND_CHARS] for key in _KINDS).strip(),
        status=_status(value.get("code")) or _status(value.get("status")),
    )


def _first_text(value: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((_text(value[key]) for key in keys if value.get(key)), _text(value))


def _text(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def _status(value: object) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"[345]\d\d", text, re.ASCII) else None
