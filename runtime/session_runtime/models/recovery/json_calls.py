"""Calls written as JSON: one object or several, an array of them, or an envelope ``tool_calls``."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from session_runtime.models.recovery.written import (
    Cursor,
    NoEnvelopeError,
    WrittenCall,
    checked_name,
)

NAMES: Final = ("name", "function", "tool")
ARGUMENTS: Final = ("arguments", "parameters")
BESIDE: Final = frozenset({"id", "type", "index"})
KINDS: Final = ("function", "tool_call", "function_call")  # any value of JSON is looked for in both
ROLES: Final = (None, "assistant")
ENVELOPE: Final = "tool_calls"
OLD_ENVELOPE: Final = "function_call"
ENVELOPES: Final = (ENVELOPE, OLD_ENVELOPE)
BESIDE_CALLS: Final = ("content", "role", "thought")
FIRST_KEYS: Final = (*NAMES, *ARGUMENTS, "id", "type", "index", *ENVELOPES, *BESIDE_CALLS)
"""The keys with one of which every object that is a call or an envelope begins."""

_TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
_RAW: Final = re.compile(
    r"""\s*+\{\s*+(["'])name\1\s*+:\s*+(["'])([^"'\\]*+)\2\s*+,"""
    r"""\s*+(["'])(?:arguments|parameters)\4\s*+:"""
)


def read_calls(cursor: Cursor, *, marked: bool) -> list[WrittenCall]:
    """One or more call objects one behind the other, or one array of them.

    Between objects may stand what models put there: blanks, a comma, a semicolon. ``marked`` if they
    stand inside marks that say that they are calls.
    """
    if cursor.sees("["):
        value = cursor.json()
        return [read_call(each, marked=marked) for each in _filled(value)]
    calls = [read_call(cursor.json(), marked=marked)]
    while cursor.takes(";") or cursor.takes(",") or cursor.sees("{"):
        calls.append(read_call(cursor.json(), marked=marked))
    return calls


def read_call(value: object, *, marked: bool) -> WrittenCall:
    """A call in one of the known shapes: a name, arguments, and nothing else that says something.

    Only a marked one may do without arguments.
    """
    if not isinstance(value, dict):
        raise NoEnvelopeError
    function = value.get("function")
    if not isinstance(function, dict):
        return _flat(value, marked=marked)
    _check_kind(value)
    if value.keys() - BESIDE != {"function"}:
        raise NoEnvelopeError
    return _flat(function, marked=marked)


def read_envelope(value: object) -> list[WrittenCall] | None:
    """The calls of ``{"tool_calls": [...]}`` or ``{"function_call": {...}}``, None for what is neither."""
    key = (
        next((key for key in ENVELOPES if key in value), None) if isinstance(value, dict) else None
    )
    if not isinstance(value, dict) or key is None:
        return None
    empty = not value.get("content") and value.get("role") in ROLES
    if not empty or value.keys() - {key, *BESIDE_CALLS}:
        raise NoEnvelopeError
    calls = _filled(value[key]) if key == ENVELOPE else [value[key]]
    return [read_call(call, marked=True) for call in calls]


def read_raw(text: str) -> WrittenCall:
    """A call inside marks whose arguments are no strict JSON: they are passed on as they are (ASK-5)."""
    found = _RAW.match(text)
    rest = text.rstrip()
    if found is None or not rest.endswith("}"):
        raise NoEnvelopeError
    return _call(found[3], rest[found.end() : -1].strip() or "{")


def _filled(value: object) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise NoEnvelopeError
    return value


def _flat(fields: Mapping[str, Any], *, marked: bool) -> WrittenCall:
    _check_kind(fields)
    named = [key for key in NAMES if key in fields]
    given = [key for key in ARGUMENTS if key in fields]
    if len(named) != 1 or len(given) > 1 or fields.keys() - {*named, *given, *BESIDE}:
        raise NoEnvelopeError
    arguments = fields[given[0]] if given else None
    if not marked and not is_plain(arguments):
        raise NoEnvelopeError
    return _call(fields[named[0]], "" if arguments is None else as_text(arguments))


def is_plain(arguments: object) -> bool:
    """Whether these are arguments even where no mark says that a call is meant."""
    if isinstance(arguments, str):
        return arguments.lstrip()[:1] in ("", "{")
    return isinstance(arguments, dict) and not _is_schema(arguments)


def as_text(arguments: object) -> str:
    """Arguments as the text that a call carries."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _is_schema(arguments: Mapping[str, Any]) -> bool:
    """Whether it describes parameters: then the object is the definition of a tool and no call of it."""
    match arguments:
        case {"type": "object", "properties": {}}:
            return True
        case {"type": "object"} | {"properties": {}} if len(arguments) == 1:
            return True
        case _:
            return bool(arguments) and all(map(_is_parameter, arguments.values()))


def _is_parameter(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") in _TYPES


def _check_kind(fields: Mapping[str, Any]) -> None:
    if fields.get("type", "function") not in KINDS:
        raise NoEnvelopeError


def _call(name: object, arguments: str) -> WrittenCall:
    if not isinstance(name, str):
        raise NoEnvelopeError
    return WrittenCall(checked_name(name), arguments)
