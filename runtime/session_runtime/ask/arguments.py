"""Turns the argument text of a call into an object, repairing only where nothing is guessed (ASK-5)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from session_runtime.types import JsonObject
from session_runtime.wire import strict_json

MAX_ARGUMENT_CHARS = 1_000_000
_FENCE = "```"
# a string that never ends is one string to the end: it must not be scanned again from each quote in it
_STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|,(?=\s*[}\]])', re.DOTALL)


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
    if not isinstance(value, dict):
        return ArgumentFault(f"the arguments must be a JSON object, not {_kind(value)}")
    return Arguments(_unwrap_fields(value, schema, repairs), tuple(repairs))


def _decode(raw: str, repairs: list[str]) -> object:
    text = raw.strip()
    if text in ("", "null"):
        return {}
    if text.startswith(_FENCE) and text.endswith(_FENCE) and "\n" in text:
        text = text.partition("\n")[2].removesuffix(_FENCE)
        repairs.append("code fence")
    value = _loads_without_trailing_commas(text, repairs)
    if isinstance(value, str):
        repairs.append("double encoding")
        return strict_json(value) if value.strip() else {}
    return value


def _loads_without_trailing_commas(text: str, repairs: list[str]) -> object:
    try:
        return strict_json(text)
    except ValueError:
        mended = _STRING_OR_TRAILING_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text)
        if mended == text:
            raise
        value = strict_json(mended)
        repairs.append("trailing comma")
        return value


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
        inner = strict_json(value)
    except ValueError:
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
