"""Checks parameter schemas once and the arguments of every call (REG-7); faults are told in ``wording``.

``format`` is not enforced: a value is never refused for it.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Final

from jsonschema_rs import RegexOptions, ValidationError, Validator, validator_for

from session_runtime.errors import PermanentError
from session_runtime.registry.bounds import (
    ARGUMENTS_LIMIT,
    MAX_CHECKS,
    SCHEMA_LIMIT,
    Schema,
    checks_needed,
    count_values,
    has_references,
    reference_fault,
)
from session_runtime.registry.wording import problems_of, schema_problem, shown
from session_runtime.types import JsonObject

MAX_PROBLEMS: Final = 5
_REGEX_BYTES: Final = 1 << 20


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
        raise _invalid(schema_problem(error)) from error
    except ValueError as error:
        raise _invalid(str(error)) from error


def _root_fault(schema: Schema) -> str | None:
    if "type" not in schema:
        return 'the root has no type: add "type": "object"'
    if schema["type"] != "object":
        return f'the root must have "type": "object", got {shown(schema["type"])}'
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
        told = (problem for error in errors for problem in problems_of(error, self.schema))
        return tuple(islice(dict.fromkeys(told), MAX_PROBLEMS))


def _invalid(fault: str) -> PermanentError:
    return PermanentError(f"parameters: {fault}", code="tool.schema_invalid")
