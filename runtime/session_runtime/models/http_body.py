"""What request bodies of all wires have in common: their JSON, their order, their optional fields.

What to leave out because a service refuses it is decided in ``http``.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from session_runtime.models.faults import RefusedError
from session_runtime.types import JsonObject

_MESSAGE_FIELD: Final = "message."
MAX_NAMES: Final = 100
_COMBINED_IN_ORDER: Final = ("allOf", "anyOf", "oneOf")
_COMBINED: Final = frozenset({*_COMBINED_IN_ORDER, "not"})
_MAX_NAME_CHARS: Final = 64
_NAMES_A_FIELD: Final = frozenset({400, 422})
_UNKNOWN_FIELD: Final = re.compile(
    r"(?:\bunknown|unrecogni[sz]ed|unexpected|cannot find field|additional.?propert"
    r"|\bextra.?(?:forbidden|input|field|param|argument|key|propert)"
    r"|(?:unsupported|\bno (?:valid|known|such)|not an? (?:valid|known|recogni[sz]ed|supported))"
    r".?(?:param|field|argument|option|propert|key))(?!\w*.?value)",
    re.IGNORECASE,
)
_UNWELCOME: Final = re.compile(
    r"\bunsupported|(?:\bnot|n't)\b(?: \w+)? (?:recogni[sz]e|support|allow|permit|accept)",
    re.IGNORECASE,
)
_ABOUT_A_VALUE: Final = re.compile(
    r"\bvalues?\b|invalid_value|\btoo \w+|must be|at (?:least|most)|exceed|m(?:ax|in)imum"
    r"|\b(?:greater|less|larger|smaller|above|below|range)\b",
    re.IGNORECASE,
)


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
    """A body ready to be sent, and the parts of it that a service may do without.

    It is held in pieces, as its largest ones are shared by all asks, and an ask waits for its answer long.
    """

    pieces: tuple[bytes, ...]
    optional: tuple[OptionalField, ...] = ()

    @property
    def content(self) -> bytes:
        """The whole body."""
        return b"".join(self.pieces)

    @property
    def length(self) -> int:
        """Of the whole body, in bytes."""
        return sum(map(len, self.pieces))

    def refused(self, refusal: RefusedError) -> OptionalField | None:
        """The first optional field that a refusal is about, if it is about one."""
        return next((field for field in self.optional if field.refused(refusal)), None)


def known_by_name(name: str, *other_words: str) -> OptionalField:
    """A field that a refusal calls unknown, maybe in other words; a wrong value is another thing."""

    def refused(refusal: RefusedError) -> bool:
        return (
            refusal.status in _NAMES_A_FIELD
            and refusal.names(name, *other_words)
            and _calls_unknown(refusal.said)
        )

    return OptionalField(name, refused)


def message_fields(names: Iterable[str]) -> tuple[OptionalField, ...]:
    """Fields of messages that are not ours, for a refusal that names one, whatever it says of it.

    They come from callers and former answers: what one of them meets with says nothing about others,
    nor about a field of the body with the same name (see ``message_key``). Only the first MAX_NAMES
    names that are not too long can be refused.
    """
    fields: dict[str, OptionalField] = {}
    for name in names:
        if len(fields) == MAX_NAMES:
            break
        if name not in fields and 0 < len(name) <= _MAX_NAME_CHARS:
            is_named = partial(_names_in_body, name)
            fields[name] = OptionalField(message_key(name), is_named, for_good=False)
    return tuple(fields.values())


def message_key(name: str) -> str:
    """What a field of a message is called among the fields that are left out."""
    return _MESSAGE_FIELD + name


def message_names(left_out: Iterable[str]) -> frozenset[str]:
    """The names of those fields that are left out of messages."""
    keys = (key for key in left_out if key.startswith(_MESSAGE_FIELD))
    return frozenset(key.removeprefix(_MESSAGE_FIELD) for key in keys)


def _names_in_body(name: str, refusal: RefusedError) -> bool:
    return refusal.status in _NAMES_A_FIELD and refusal.names(name)


def _calls_unknown(said: str) -> bool:
    if _UNKNOWN_FIELD.search(said):
        return True
    return _UNWELCOME.search(said) is not None and _ABOUT_A_VALUE.search(said) is None


def body_pieces(
    settings: Mapping[str, Any],
    written: Mapping[str, bytes],
    tools: Iterable[bytes],
    name: str,
    items: Iterable[bytes],
) -> tuple[bytes, ...]:
    """The JSON of a whole body, byte for byte the same for the same input (TS-11).

    ``written`` are further fields; ``tools`` stand before the field ``name`` that holds ``items``, all
    of them JSON. A longer list begins with the bytes of the shorter one, save its closing bracket;
    without tools there is no such field, as some services refuse an empty list.
    """
    pieces = [to_json(settings)[:-1]]
    for field, value in written.items():
        pieces += (b"," + to_json(field) + b":", value)
    if listed := _between_commas(tools):
        pieces += (b',"tools":[', *listed, b"]")
    return (*pieces, b"," + to_json(name) + b":[", *_between_commas(items), b"]}")


def _between_commas(values: Iterable[bytes]) -> list[bytes]:
    listed = [piece for value in values for piece in (b",", value)]
    return listed[1:]


def to_json(value: object) -> bytes:
    """Compact JSON in UTF-8; half of a surrogate pair, which UTF-8 cannot hold, becomes ``?``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode("utf-8", "replace")


def sent_schema(schema: JsonObject) -> JsonObject:
    """The schema of a tool as services take it; arguments are checked against the whole one.

    Some refuse an object without ``properties``. The well-known ones refuse a request, whatever else is in
    it, if the top of a schema combines others: what those allow in addition is listed instead.
    """
    if not _COMBINED.isdisjoint(schema):
        schema = _uncombined(schema)
    return schema if "properties" in schema else {**schema, "properties": {}}


def readable_arguments(arguments: str) -> str:
    """Arguments as they came if they are a JSON object, else inside one: services insist on one."""
    try:
        if not arguments.strip() or isinstance(json.loads(arguments), dict):
            return arguments.strip() or "{}"
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable_arguments": arguments}, ensure_ascii=False)


def _uncombined(schema: JsonObject) -> JsonObject:
    parts = [part for name in _COMBINED_IN_ORDER for part in schema.get(name) or ()]
    added = [part.get("properties") for part in parts if isinstance(part, Mapping)]
    properties: dict[str, Any] = {}
    for more in (*added, schema.get("properties")):
        properties |= more if isinstance(more, Mapping) else {}
    rest = {name: value for name, value in schema.items() if name not in _COMBINED}
    return {**rest, "properties": properties}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value: {value!r:.80}")
