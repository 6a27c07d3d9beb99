"""What is recorded of one tool call; secrets are taken out here, away from the event loop (RTE-13)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from session_runtime.trace.redact import MASK, redact, redact_text
from session_runtime.types import Identity, JsonObject

_MOST_DEPTH: Final = 16
_MOST_CHARS: Final = 256
_WHOLE: Final = ("allOf", "anyOf", "oneOf")


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
        "arguments": redact(masked(json.loads(subject.arguments), subject.schema)),
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


def masked(value: object, schema: object) -> object:
    """Black out what a JSON Schema calls secret: ``format = "password"`` or ``writeOnly``."""
    return _masked(value, schema, schema, 0)


def _masked(value: object, schema: object, root: object, depth: int) -> object:
    if depth > _MOST_DEPTH or not isinstance(schema, Mapping) or value is None:
        return value
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        return MASK
    for part in _same_value(schema, root):
        value = _masked(value, part, root, depth + 1)
    match value:
        case dict():
            named = _table(schema.get("properties"))
            others = schema.get("additionalProperties")
            return {
                name: _masked(each, named.get(name, others), root, depth + 1)
                for name, each in value.items()
            }
        case list():
            return [_masked(each, schema.get("items"), root, depth + 1) for each in value]
        case _:
            return value


def _same_value(schema: Mapping[str, object], root: object) -> list[object]:
    """Other schemas that are about the same value."""
    found: list[object] = []
    for name in _WHOLE:
        parts = schema.get(name)
        found += parts if isinstance(parts, list | tuple) else ()
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found.append(_at(root, reference[2:].split("/")))
    return found


def _at(schema: object, path: list[str]) -> object:
    for name in path:
        schema = _table(schema).get(name.replace("~1", "/").replace("~0", "~"))
    return schema


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


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
