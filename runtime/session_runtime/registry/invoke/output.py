"""Whether structured results are what their tool promises by its output schema (RTE-10).

Public: ``OutputChecks``, and ``Parts`` for a result that is not data alone.

How results are shown is decided in ``results``.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from session_runtime.errors import PermanentError
from session_runtime.registry.bounds import MAX_CHECKS, Limit, measure
from session_runtime.registry.schema import ArgumentCheck, compile_schema
from session_runtime.registry.spec import ToolSpec
from session_runtime.threads import aside

_SMALL: Final = Limit(depth=64, values=1_000, characters=16_384)

_log = logging.getLogger(__name__)


class Parts(list[object]):
    """Several parts of one result, in their order; ``data`` is the one among them that is structured.

    The others, and all where it is None, are what the tool shows beside it: no schema is about them.
    """

    def __init__(self, parts: Iterable[object], data: object = None) -> None:
        super().__init__(parts)
        self.data: Final = data


class OutputChecks:
    """Checks results of tools that promise a form; each schema is compiled at the first result.

    A schema that cannot be used promises nothing, and what is too large to be checked is let through: a
    result is data that nobody vouches for in any case.
    """

    def __init__(self) -> None:
        self._checks: WeakKeyDictionary[ToolSpec, ArgumentCheck | None] = WeakKeyDictionary()

    async def violations(self, spec: ToolSpec, value: object) -> tuple[str, ...]:
        """Say where structured data breaks the promise of its tool; no other result can."""
        if spec.output is None:
            return ()
        data = value.data if isinstance(value, Parts) else value
        if not isinstance(data, dict | list | int | float):
            return ()
        check = await self._check(spec, spec.output)
        if check is None:
            return ()
        if not isinstance(data, dict):  # every schema that can be used is one of objects
            return (f"it must be an object, got {_kind(data)}",)
        if _is_small(data, check.parts):
            return check.violations(data)
        return await aside("checking a result", partial(check.violations, data))

    async def _check(self, spec: ToolSpec, schema: Mapping[str, object]) -> ArgumentCheck | None:
        if spec not in self._checks:
            self._checks[spec] = await aside(
                "compiling a schema", partial(_compiled, spec.name, schema)
            )
        return self._checks[spec]


def _compiled(name: str, schema: Mapping[str, object]) -> ArgumentCheck | None:
    try:
        return compile_schema(schema)
    except PermanentError as error:
        _log.warning(
            "results of %s are not checked, its output schema is unusable: %s", name, error
        )
        return None


def _kind(data: list[object] | float) -> str:
    match data:
        case list():
            return "a list"
        case bool():
            return "true or false"
        case _:
            return "a number"


def _is_small(value: dict[str, object], parts: int) -> bool:
    try:
        return parts * measure(value, _SMALL).values <= MAX_CHECKS
    except ValueError:
        return False
