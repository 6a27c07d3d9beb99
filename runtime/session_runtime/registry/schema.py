"""Checks parameter schemas once and the arguments of every call (REG-7); faults are told in ``wording``.

``format`` is not enforced: a value is never refused for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from jsonschema_rs import RegexOptions, ValidationError, Validator, validator_for

from session_runtime.errors import PermanentError
from session_runtime.registry.bounds import (
    ARGUMENTS_LIMIT,
    MAX_CHECKS,
    SCHEMA_LIMIT,
    Extent,
    Limit,
    Schema,
    checks_needed,
    has_forms,
    has_references,
    measure,
    reference_fault,
)
from session_runtime.registry.wording import problems_of, schema_problem, shown
from session_runtime.threads import aside
from session_runtime.types import JsonObject

MAX_PROBLEMS: Final = 5
_REGEX_BYTES: Final = 1 << 20
_SMALL: Final = Limit(depth=64, values=1_000, characters=16_384)

# To list an error costs the engine some work, and a copy of the value that the error is about. The
# unit is the copy of one character, of which there are about a million in a millisecond.
_ERROR_COST: Final = 1_000
_VALUE_COST: Final = 256
_ALL_COST: Final = 2_000_000
_FORMS_COST: Final = 8_000_000
_TOLD_NO_MORE: Final = (
    "the arguments do not fit the parameters of this tool and are too large to be told where: "
    "compare them with the parameters, or send less at a time"
)


def compile_schema(parameters: JsonObject) -> "ArgumentCheck":
    """Check a parameter schema and prepare it for checking arguments (REG-4, REG-7).

    Read as the draft that ``$schema`` names, else as 2020-12. Raises PermanentError with the code
    ``tool.schema_invalid`` when the schema is illegal, does not describe an object, is too large,
    refers to another document, never ends, or has a pattern that has no linear-time match.
    """
    schema = dict(parameters)
    try:
        parts = measure(schema, SCHEMA_LIMIT).values
    except ValueError as error:
        raise _invalid(f"{error}: simplify the schema") from error
    referring = has_references(schema)
    fault = _root_fault(schema) or (reference_fault(schema) if referring else None)
    if fault is not None:
        raise _invalid(fault)
    return ArgumentCheck(schema, _build_engine(schema), parts, referring, has_forms(schema))


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
    """A compiled schema.

    ``parts`` bounds how many subschemas may look at one value, unless the schema is ``referring``: then
    the checks must be counted. ``forms`` says that it has alternatives.
    """

    schema: Schema
    engine: Validator
    parts: int
    referring: bool
    forms: bool

    async def examine(self, arguments: JsonObject) -> tuple[str, ...]:
        """Find ``problems`` without holding up the event loop: large arguments take milliseconds."""
        if self._is_quick(arguments):
            return self.problems(arguments)
        return await aside("checking arguments", partial(self.problems, arguments))

    def _is_quick(self, arguments: JsonObject) -> bool:
        try:
            return self.parts * measure(dict(arguments), _SMALL).values <= MAX_CHECKS
        except ValueError:
            return False

    def problems(self, arguments: JsonObject) -> tuple[str, ...]:
        """Name up to five problems, each with its path; none if the arguments fit (REG-7).

        It is one where it would take long to list all.
        """
        values = dict(arguments)
        try:
            extent = measure(values, ARGUMENTS_LIMIT)
        except ValueError as error:
            return (f"the arguments are refused: {error}",)
        if self._costs_too_much(values, extent):
            return ("the arguments are too large for this tool: send less at a time",)
        return self._faults(values, extent, _TOLD_NO_MORE)

    def violations(self, result: JsonObject) -> tuple[str, ...]:
        """Find ``problems`` of a result; none either if it is too large to be checked (RTE-10)."""
        values = dict(result)
        try:
            extent = measure(values, ARGUMENTS_LIMIT)
        except ValueError:
            return ()
        if self._costs_too_much(values, extent):
            return ()
        return self._faults(values, extent, "it does not fit, and is too large to be told where")

    def _costs_too_much(self, values: Schema, extent: Extent) -> bool:
        if not self.referring and self.parts * extent.values <= MAX_CHECKS:
            return False
        return checks_needed(self.schema, values) > MAX_CHECKS

    def _faults(self, values: Schema, extent: Extent, no_more: str) -> tuple[str, ...]:
        if self.engine.is_valid(values):
            return ()
        errors = self._errors(values, extent)
        told = (problem for error in errors for problem in problems_of(error, self.schema))
        return tuple(islice(dict.fromkeys(told), MAX_PROBLEMS)) or (no_more,)

    def _errors(self, values: Schema, extent: Extent) -> Iterable[ValidationError]:
        """Find all errors, or only the first, or none if even that would take too long.

        The engine makes all before it gives the first one; and the first one of a schema with
        alternatives has with it what is wrong with each of them.
        """
        cost = self.parts * (_ERROR_COST + _VALUE_COST * extent.values + extent.characters)
        if cost <= _ALL_COST:
            return self.engine.iter_errors(values)
        if self.forms and cost > _FORMS_COST:
            return ()
        try:
            self.engine.validate(values)
        except ValidationError as error:
            return (error,)
        return ()


def _invalid(fault: str) -> PermanentError:
    return PermanentError(f"parameters: {fault}", code="tool.schema_invalid")
