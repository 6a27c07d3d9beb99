"""Checks the definitions that a server lists, each alone (RTE-5); how they are fetched is in ``discover``."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.mcp.base import Definition
from session_runtime.mcp.masking import masked
from session_runtime.mcp.stderr_log import Shown
from session_runtime.registry.bounds import SCHEMA_LIMIT, measure, reference_fault
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.invoke.encode import encodable
from session_runtime.registry.names import canonical_name, name_fault
from session_runtime.registry.wording import shown

MAX_DESCRIPTION_CHARS: Final = 16_384
_MAX_NAME_CHARS: Final = 128
_MAX_REASON_CHARS: Final = 300
_MAX_SEEN_CHARS: Final = 16_384
_TEXT: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class Weighed:
    """A definition, and how many values and characters had to be looked at and are kept."""

    definition: Definition
    weight: int


def read_definition(raw: object, secrets: Sequence[str] = ()) -> Weighed:
    """Make a definition of what a server sent; ValueError with the reason if it cannot be used.

    ``secrets`` of the server are masked in all that the tool is described by (CFG-4), so that another secret
    makes no other tool.
    """
    if not isinstance(raw, dict):
        raise ValueError(f"the definition must be an object, got {_kind(raw)}")
    name = _name(raw.get("name"), secrets)
    if raw.get("inputSchema") is None:
        raise ValueError("it has no inputSchema")
    parameters, weight = _schema(raw["inputSchema"], "inputSchema", secrets)
    output, output_weight = None, 0
    if raw.get("outputSchema") is not None:
        output, output_weight = _schema(raw["outputSchema"], "outputSchema", secrets)
    if not isinstance(parameters.setdefault("properties", {}), dict):
        raise ValueError("inputSchema: properties must be an object")
    description = _description(raw, secrets)
    destructive = _is_destructive(raw.get("annotations"))
    schemas = {"parameters": parameters, "output": output}
    all_of_it = {"name": name, "description": description, "destructive": destructive, **schemas}
    return Weighed(
        Definition(
            name,
            description,
            parameters,
            output,
            destructive,
            digest=_digest(all_of_it),
            schema_digest=_digest(schemas),
        ),
        weight + output_weight + len(description),
    )


def refusal(raw: object, number: int, place: str, reason: str, shown_text: Shown) -> Quarantined:
    """Tell why a definition, the ``number``-th of its server, is left out."""
    name = raw.get("name") if isinstance(raw, dict) else None
    named = shown_text(name[:_MAX_SEEN_CHARS], _MAX_NAME_CHARS) if isinstance(name, str) else ""
    return Quarantined(named or f"(number {number})", place, shown_text(reason, _MAX_REASON_CHARS))


def _name(name: object, secrets: Sequence[str]) -> str:
    if not isinstance(name, str):
        raise ValueError(f"its name must be a text, got {_kind(name)}")
    if any(secret in name[:_MAX_SEEN_CHARS] for secret in secrets):
        raise ValueError("its name holds a secret that the server is given")
    if encodable(name) != name:
        raise ValueError("its name holds half of a character (a lone surrogate)")
    fault = name_fault(canonical_name(name[: 2 * _MAX_NAME_CHARS]))
    if fault is not None:
        raise ValueError(f"its name cannot be used: {fault}")
    return name


def _schema(raw: object, where: str, secrets: Sequence[str]) -> tuple[dict[str, Any], int]:
    """Check a schema in bounds before anything walks it; gives a copy of its root, and its weight."""
    if not isinstance(raw, dict):
        raise ValueError(f"{where}: must be an object, got {_kind(raw)}")
    try:
        extent = measure(raw, SCHEMA_LIMIT)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    schema = {"type": "object", **_without(secrets, raw)}
    if schema["type"] != "object":
        raise ValueError(f'{where}: must have "type": "object", got {shown(schema["type"])}')
    fault = reference_fault(schema)
    if fault is not None:
        raise ValueError(f"{where}: {fault}")
    return schema, extent.values + extent.characters


def _without(secrets: Sequence[str], schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with secrets masked; it is looked through piece by piece only if there is one."""
    text = _TEXT(schema) if secrets else ""
    if any(_TEXT(secret)[1:-1] in text for secret in secrets):
        known: dict[str, Any] = masked(schema, secrets)
        return known
    return schema


def _description(raw: dict[str, Any], secrets: Sequence[str]) -> str:
    """What the server says about a tool, or the title that it gives it; empty if it says nothing."""
    for text in (raw.get("description"), raw.get("title")):
        if isinstance(text, str) and text.strip():
            return encodable(_beginning(text, secrets))
    return ""


def _beginning(text: str, secrets: Sequence[str]) -> str:
    """As much of a text as is kept; at its end there is no part of a secret either."""
    spare = max(map(len, secrets), default=1) - 1
    seen = text[: MAX_DESCRIPTION_CHARS + spare]
    known: str = masked(seen, secrets)
    if len(seen) < len(text):
        known = known[: len(known) - spare]
    return known[:MAX_DESCRIPTION_CHARS]


def _is_destructive(annotations: object) -> bool:
    """Whether the server says so; its other words about a tool are not taken (RTE-9)."""
    return isinstance(annotations, dict) and annotations.get("destructiveHint") is True


def _kind(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()
