"""What request bodies of all wires have in common: their JSON, their order, their optional fields.

What to leave out because a service refuses it is decided in ``http``.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.models.faults import RefusedError
from session_runtime.types import JsonObject

_NAMES_A_FIELD: Final = frozenset({400, 422})


@dataclass(frozen=True, slots=True)
class OptionalField:
    """A part of a body that a service may do without; ``refused`` tells whether a refusal is about it.

    ``for_good``: the service does not know such a field. Otherwise it refuses what the field holds this
    time, so that leaving it out says nothing about other asks.
    """

    name: str
    refused: Callable[[RefusedError], bool]
    for_good: bool = True


@dataclass(frozen=True, slots=True)
class Body:
    """A body ready to be sent, and the parts of it that a service may do without."""

    content: bytes
    optional: tuple[OptionalField, ...] = ()

    def refused(self, refusal: RefusedError) -> OptionalField | None:
        """The first optional field that a refusal is about, if it is about one."""
        return next((field for field in self.optional if field.refused(refusal)), None)


def known_by_name(name: str, *other_words: str) -> OptionalField:
    """A field that a refusal names, maybe in other words, if the service does not know it."""

    def refused(refusal: RefusedError) -> bool:
        return refusal.status in _NAMES_A_FIELD and refusal.names(name, *other_words)

    return OptionalField(name, refused)


def body_bytes(
    settings: Mapping[str, Any], tools: Iterable[bytes], name: str, items: Sequence[Any]
) -> bytes:
    """The JSON of a whole body, byte for byte the same for the same input (TS-11).

    ``tools``, each serialised, stand before the field ``name`` that holds ``items``. A longer list
    begins with the bytes of the shorter one, save its closing bracket; without tools there is no such
    field, as some services refuse an empty list.
    """
    parts = [to_json(settings)[:-1]]
    if listed := b",".join(tools):
        parts.append(b'"tools":[' + listed + b"]")
    parts.append(to_json({name: items})[1:])
    return b",".join(parts)


def to_json(value: object) -> bytes:
    """Compact JSON in UTF-8; half of a surrogate pair, which UTF-8 cannot hold, becomes ``?``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode("utf-8", "replace")


def schema_with_properties(schema: JsonObject) -> JsonObject:
    """Some services refuse an object without ``properties``; for validation it changes nothing."""
    return schema if "properties" in schema else {**schema, "properties": {}}


def readable_arguments(arguments: str) -> str:
    """Arguments as they came if they are a JSON object, else inside one: services insist on one."""
    try:
        if not arguments.strip() or isinstance(json.loads(arguments), dict):
            return arguments.strip() or "{}"
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable_arguments": arguments}, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value: {value!r:.80}")
