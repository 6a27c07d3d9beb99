"""Checks parameter schemas once and the arguments of every call, in a model's words (REG-7).

The only user of the validating engine. ``format`` is not enforced: a value is never refused for it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from jsonschema_rs import RegexOptions, ValidationError, Validator, validator_for
from jsonschema_rs import ValidationErrorKind as Kind

from session_runtime.config.keys import nearest
from session_runtime.errors import PermanentError
from session_runtime.registry.bounds import (
    ARGUMENTS_LIMIT,
    MAX_CHECKS,
    SCHEMA_LIMIT,
    Schema,
    checks_needed,
    count_values,
    has_references,
    pointed_at,
    reference_fault,
)
from session_runtime.types import JsonObject

MAX_PROBLEMS: Final = 5
_MAX_SHOWN: Final = 60
_MAX_KNOWN: Final = 12
_REGEX_BYTES: Final = 1 << 20

_BOUNDS: Final = {
    "minimum": "must be at least {}, got {}",
    "maximum": "must be at most {}, got {}",
    "exclusiveMinimum": "must be more than {}, got {}",
    "exclusiveMaximum": "must be less than {}, got {}",
    "multipleOf": "must be a multiple of {}, got {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} keys",
    "maxProperties": "must have at most {} keys",
    "uniqueItems": "must not hold the same item twice",
}
_ARTICLES: Final = {"array": "an array", "integer": "an integer", "object": "an object"}


def compile_schema(parameters: JsonObject) -> "ArgumentCheck":
    """Check a parameter schema and prepare it for checking arguments (REG-4, REG-7).

    Read as the draft that ``$schema`` names, else as 2020-12. Raises PermanentError with the code
    ``tool.schema_invalid`` when the schema is illegal, does not describe an object, is too large,
    refers to another document, never ends, or has a pattern that has no linear-time match.
    """
    schema = dict(parameters)
    try:
        parts = count_values(schema, SCHEMA_LIMIT)
    except ValueError as error:
        raise _invalid(f"{error}: simplify the schema") from error
    referring = has_references(schema)
    fault = _root_fault(schema) or (reference_fault(schema) if referring else None)
    if fault is not None:
        raise _invalid(fault)
    return ArgumentCheck(schema, _build_engine(schema), None if referring else parts)


def _build_engine(schema: Schema) -> Validator:
    patterns = RegexOptions(size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES)
    try:
        return validator_for(schema, validate_formats=False, offline=True, pattern_options=patterns)
    except ValidationError as error:
        raise _invalid(_schema_fault(error)) from error
    except ValueError as error:
        raise _invalid(str(error)) from error


def _root_fault(schema: Schema) -> str | None:
    if "type" not in schema:
        return 'the root has no type: add "type": "object"'
    if schema["type"] != "object":
        return f'the root must have "type": "object", got {_shown(schema["type"])}'
    if "draft-04" in str(schema.get("$schema")):
        return "$schema names draft-04, which is not supported: write it for 2020-12"
    return None


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentCheck:
    """A compiled schema; checking costs microseconds and may happen on the event loop.

    ``parts`` bounds how many subschemas may look at one value; None: references must be counted.
    """

    schema: Schema
    engine: Validator
    parts: int | None

    def problems(self, arguments: JsonObject) -> tuple[str, ...]:
        """Name up to five problems, each with its path; none if the arguments fit (REG-7)."""
        values = dict(arguments)
        try:
            count = count_values(values, ARGUMENTS_LIMIT)
        except ValueError as error:
            return (f"the arguments are refused: {error}",)
        if self.parts is None or self.parts * count > MAX_CHECKS:
            if checks_needed(self.schema, values) > MAX_CHECKS:
                return ("the arguments are too large for this tool: send less at a time",)
        if self.engine.is_valid(values):
            return ()
        errors = self.engine.iter_errors(values)
        told = (problem for error in errors for problem in _problems_of(error, self.schema))
        return tuple(islice(dict.fromkeys(told), MAX_PROBLEMS))


def _invalid(fault: str) -> PermanentError:
    return PermanentError(f"parameters: {fault}", code="tool.schema_invalid")


def _schema_fault(error: ValidationError) -> str:
    """Say what is wrong with a schema, from the engine's complaint about it."""
    place = _path(error.instance_path)
    match error.kind:
        case Kind.Referencing():
            return f"a $ref leads nowhere: {_cut(error.message)}"
        case Kind.Format(format="regex"):
            return (
                f"{place}: the pattern {_shown(error.instance)} has no linear-time match: write it "
                "without look-around, back-references and huge repeats"
            )
        case _ if place.rpartition(".")[2] in ("exclusiveMinimum", "exclusiveMaximum"):
            return f"{place}: must be a number; true and false are the style of draft-04"
        case _:
            return "; ".join(_problems_of(error, {}))


def _problems_of(error: ValidationError, schema: Schema) -> tuple[str, ...]:
    here = error.instance_path
    match error.kind:
        case Kind.Required(property=name):
            return (f"{_path([*here, name])}: is required and missing",)
        case Kind.AdditionalProperties(unexpected=names):
            return tuple(_unknown(error, name, schema) for name in names)
        case Kind.UnevaluatedProperties(unexpected=names):
            return tuple(f"{_path([*here, name])}: is not known" for name in names)
        case Kind.AnyOf(context=forms) | Kind.OneOfNotValid(context=forms):
            closest = _closest(error)
            if closest is error:
                types = [name for form in forms for name in form[0].kind.value]
                return (f"{_path(here)}: {_must_be(types)}, got {_shown(error.instance)}",)
            problem = _problems_of(closest, schema)[0]
            return (f"{problem} (closest of {len(forms)} allowed forms)",)
        case _:
            return (f"{_path(here)}: {_expected(error)}",)


def _closest(error: ValidationError) -> ValidationError:
    """Descend into the alternative with the fewest faults, past those of another type."""
    match error.kind:
        case Kind.AnyOf(context=forms) | Kind.OneOfNotValid(context=forms):
            alike = [form for form in forms if not _is_other_type(form[0], error)]
            return _closest(min(alike, key=len)[0]) if alike else error
        case _:
            return error


def _is_other_type(inner: ValidationError, outer: ValidationError) -> bool:
    return isinstance(inner.kind, Kind.Type) and inner.instance_path == outer.instance_path


def _unknown(error: ValidationError, name: str, schema: Schema) -> str:
    owner = pointed_at(error.schema_path[:-1], schema)
    named = owner.get("properties") if owner is not None else None
    known = list(named) if isinstance(named, dict) else []
    problem = f"{_path([*error.instance_path, name])}: is not known"
    near = nearest(name, known)
    if near is not None:
        return f"{problem}; did you mean {near}?"
    if not known:
        return f"{problem}; nothing is allowed here" if named == {} else problem
    more = f" and {len(known) - _MAX_KNOWN} more" if len(known) > _MAX_KNOWN else ""
    return f"{problem}; known are {', '.join(known[:_MAX_KNOWN])}{more}"


def _expected(error: ValidationError) -> str:
    got = f", got {_shown(error.instance)}"
    match error.kind:
        case Kind.Type(types=types):
            return f"{_must_be(types)}{got}"
        case Kind.Enum(options=options):
            return f"must be one of {_shown_list(options)}{got}"
        case Kind.Constant(expected_value=value):
            return f"must be {_shown(value)}{got}"
        case Kind.Pattern(pattern=pattern):
            return f"must match the pattern {_shown(pattern)}{got}"
        case Kind.FalseSchema():
            return "is not allowed"
        case Kind.OneOfMultipleValid():
            return f"fits several forms of which exactly one must fit{got}"
        case Kind.Not():
            return f"has a form that is not allowed{got}"
        case Kind.PropertyNames(error=inner):
            return f"the name {_shown(inner.instance)} is not allowed: {_expected(inner)}"
        case kind if kind.name in _BOUNDS:
            return _BOUNDS[kind.name].format(kind.value, _shown(error.instance))
        case _:
            return _cut(error.message)


def _must_be(types: Iterable[str]) -> str:
    return "must be " + " or ".join(_article(name) for name in dict.fromkeys(types))


def _article(name: str) -> str:
    return "null" if name == "null" else _ARTICLES.get(name, f"a {name}")


def _path(parts: Iterable[str | int]) -> str:
    """``opts.items[2].name``; the arguments as a whole are called so."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{_cut(part)}"
    return path.removeprefix(".") or "the arguments"


def _shown_list(options: list[Any]) -> str:
    shown = ", ".join(_shown(option) for option in options[:_MAX_KNOWN])
    rest = len(options) - _MAX_KNOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def _shown(value: object) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
