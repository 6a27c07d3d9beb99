"""Turns the argument text of a call into an object, repairing only where nothing is guessed (ASK-5)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from session_runtime.types import JsonObject

MAX_ARGUMENT_CHARS = 1_000_000
_FENCE = re.compile(r"\A\s*```[A-Za-z]*\s*\n(?P<body>.*)\n\s*```\s*\Z", re.DOTALL)
_STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Usable arguments; ``repairs`` names what was undone to get them (for the trace)."""

    values: JsonObject
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArgumentFault:
    """Arguments that cannot be read; ``problem`` is written for the model."""

    problem: str


def parse_arguments(raw: str, schema: JsonObject) -> Arguments | ArgumentFault:
    """Read the arguments of one call.

    Undone are: a code fence around the whole, a comma before a closing bracket, one level of double
    encoding of the whole or of a field that must be an object or array, and empty or null for none.
    """
    if len(raw) > MAX_ARGUMENT_CHARS:
        return ArgumentFault(
            f"the arguments have {len(raw)} characters, at most {MAX_ARGUMENT_CHARS}"
        )
    repairs: list[str] = []
    try:
        value = _decode(raw, repairs)
    except ValueError as error:
        return ArgumentFault(f"the arguments are not valid JSON: {error}")
    except RecursionError:
        return ArgumentFault("the arguments are nested too deeply")
    if not isinstance(value, dict):
        return ArgumentFault(f"the arguments must be a JSON object, not {_kind(value)}")
    return Arguments(_unwrap_fields(value, schema, repairs), tuple(repairs))


def _decode(raw: str, repairs: list[str]) -> object:
    text = raw.strip()
    if text in ("", "null"):
        return {}
    if fenced := _FENCE.match(raw):
        text = fenced["body"]
        repairs.append("code fence")
    value = _loads_without_trailing_commas(text, repairs)
    if isinstance(value, str):
        repairs.append("double encoding")
        return _loads(value) if value.strip() else {}
    return value


def _loads_without_trailing_commas(text: str, repairs: list[str]) -> object:
    try:
        return _loads(text)
    except json.JSONDecodeError:
        mended = _STRING_OR_TRAILING_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text)
        if mended == text:
            raise
        value = _loads(mended)
        repairs.append("trailing comma")
        return value


def _loads(text: str) -> object:
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique_keys)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return found


def _unwrap_fields(
    values: dict[str, Any], schema: JsonObject, repairs: list[str]
) -> Mapping[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return values
    return {
        name: _unwrap_field(name, value, properties.get(name), repairs)
        for name, value in values.items()
    }


def _unwrap_field(name: str, value: object, schema: object, repairs: list[str]) -> object:
    wanted = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(value, str) or wanted not in ("object", "array"):
        return value
    try:
        inner = _loads(value)
    except (ValueError, RecursionError):
        return value
    if not isinstance(inner, dict if wanted == "object" else list):
        return value
    repairs.append(f"double encoding of {name!r}")
    return inner


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"
