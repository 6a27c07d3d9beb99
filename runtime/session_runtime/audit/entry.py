"""What is recorded of one tool call; secrets are taken out here, away from the event loop (RTE-13)."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from session_runtime.audit.chain import LINE_BYTES
from session_runtime.audit.masking import masked
from session_runtime.trace.redact import CUT, redact, redact_text
from session_runtime.types import Identity, JsonObject
from session_runtime.wire import to_bytes

_MOST_CHARS: Final = 256
_MOST_ARGUMENT_BYTES: Final = LINE_BYTES // 2


@dataclass(frozen=True, slots=True)
class Subject:
    """A call before it is made: who has which tool called, and with what.

    ``arguments`` are JSON as they were then, ``schema`` tells which of them are secret, ``at`` is in seconds
    since 1970.
    """

    at: float
    ask_id: str
    call_id: str
    tool: str
    source: str
    principal: str
    identity: Identity
    arguments: bytes
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call came out; ``status`` is that of the result, or ``cancelled`` if there was none."""

    status: str
    error_code: str | None
    attempts: int
    duration_s: float
    result_digest: str | None
    result_chars: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One record: that a call begins (no outcome), or how it came out."""

    subject: Subject
    outcome: Outcome | None = None

    @property
    def bytes(self) -> int:
        """About how much memory it needs until it is written."""
        return len(self.subject.arguments) + 1000


def digest_of(content: str) -> str:
    """The SHA-256 of a result as the model got it, in UTF-8."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def entry_to_json(entry: Entry) -> JsonObject:
    """One record as plain data, without secrets and bounded in size."""
    subject, outcome = entry.subject, entry.outcome
    data: dict[str, Any] = {
        "event": "begun" if outcome is None else "call",
        "time": datetime.fromtimestamp(subject.at, UTC).isoformat(timespec="milliseconds"),
        "ask_id": _short(subject.ask_id),
        "call_id": _short(subject.call_id),
        "tool": _short(subject.tool),
        "source": _short(subject.source),
        "principal": _short(subject.principal),
        "identity": _identity(subject.identity),
        "arguments": _arguments(subject),
    }
    if outcome is None:
        return data
    return {
        **data,
        "status": outcome.status,
        "error_code": None if outcome.error_code is None else _short(outcome.error_code),
        "attempts": outcome.attempts,
        "duration_s": round(outcome.duration_s, 6),
        "result": {"sha256": outcome.result_digest, "chars": outcome.result_chars},
    }


def _arguments(subject: Subject) -> object:
    clean = redact(masked(json.loads(subject.arguments), subject.schema))
    return clean if len(to_bytes(clean)) <= _MOST_ARGUMENT_BYTES else CUT


def _identity(identity: Identity) -> JsonObject:
    roles = identity.roles
    return {
        "user": None if identity.user is None else _short(identity.user),
        "roles": None if roles is None else [_short(role) for role in sorted(roles)[:100]],
        "channel": None if identity.channel is None else _short(identity.channel),
        "group": None if identity.group is None else _short(identity.group),
    }


def _short(text: str) -> str:
    text = redact_text(text)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
