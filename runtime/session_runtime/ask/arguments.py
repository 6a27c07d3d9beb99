"""Turns the argument text of a call into an object, repairing only where nothing is guessed (ASK-5)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.registry.bounds import ARGUMENTS_LIMIT
from session_runtime.registry.wanted_types import property_types
from session_runtime.types import JsonObject
from session_runtime.wire import strict_json

MAX_ARGUMENT_CHARS: Final = ARGUMENTS_LIMIT.characters
MAX_ARGUMENT_VALUES: Final = ARGUMENTS_LIMIT.values
_FENCE: Final = "```"
_CONTAINERS: Final = frozenset({"object", "array"})
# a string that never ends is one string to the end: it must not be scanned again from each quote in it
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_NO_VALUE_BEFORE: Final = r"[\[{:,](?:\s*+,)++"
_STRING_OR_TRAILING_COMMA: Final = re.compile(
    rf"{_STRING}|{_NO_VALUE_BEFORE}|,(?=\s*[}}\]])", re.DOTALL
)
_STRING_OR_NEXT_VALUE: Final = re.compile(rf"{_STRING}|,|[\[{{](?!\s*[}}\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Usable arguments; ``repairs`` names what was undone to get them (for the trace)."""

    values: JsonObject
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArgumentFault:
    """Arguments that cannot be read; ``problem`` is written for the model."""

    problem: str


class _TooManyValuesError(ValueError):
    """The text holds more values than the check of the arguments would allow."""


def parse_arguments(raw: str, schema: JsonObject) -> Arguments | ArgumentFault:
    """Read the arguments of one call.

    Undone are: a code fence around the whole, a comma between a value and a closing bracket, one level of
    double encoding of the whole or of a field that may be an object or array but no text, and empty or
    null for none. Long ones take a while; of more values than the check allows, none is made.
    """
    if len(raw) > MAX_ARGUMENT_CHARS:
        return ArgumentFault(
            f"the arguments have {len(raw)} characters, at most {MAX_ARGUMENT_CHARS}"
        )
    repairs: list[str] = []
    try:
        value = _decode(raw, repairs)
    except _TooManyValuesError:
        return ArgumentFault(
            f"the arguments have more than {MAX_ARGUMENT_VALUES} values: send less at a time"
        )
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
        return _bounded_json(value) if value.strip() else {}
    return value


def _loads_without_trailing_commas(text: str, repairs: list[str]) -> object:
    _bound_values(text)
    try:
        return strict_json(text)
    except ValueError:
        mended = _STRING_OR_TRAILING_COMMA.sub(lambda m: "" if m[0] == "," else m[0], text)
        if mended == text:
            raise
        value = strict_json(mended)
        repairs.append("trailing comma")
        return value


def _bounded_json(text: str) -> object:
    _bound_values(text)
    return strict_json(text)


def _bound_values(text: str) -> None:
    """Raise _TooManyValuesError for JSON of too many: each but the first has a mark of its own before it."""
    if sum(map(text.count, ",[{")) < MAX_ARGUMENT_VALUES:
        return
    values = 1
    for mark in _STRING_OR_NEXT_VALUE.finditer(text):
        values += not mark[0].startswith('"')
        if values > MAX_ARGUMENT_VALUES:
            raise _TooManyValuesError


def _unwrap_fields(
    values: dict[str, Any], schema: JsonObject, repairs: list[str]
) -> Mapping[str, Any]:
    wanted = property_types(schema)
    return {
        name: _unwrap_field(name, value, wanted.get(name, frozenset()), repairs)
        if isinstance(value, str)
        else value
        for name, value in values.items()
    }


def _unwrap_field(name: str, value: str, wanted: frozenset[str], repairs: list[str]) -> object:
    if wanted.isdisjoint(_CONTAINERS) or "string" in wanted:
        return value
    try:
        inner = _bounded_json(value)
    except ValueError:
        return value
    match inner:
        case dict() if "object" in wanted:
            pass
        case list() if "array" in wanted:
            pass
        case _:
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
