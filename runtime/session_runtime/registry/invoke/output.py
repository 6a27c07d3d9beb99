"""Whether structured results are what their tool promises by its output schema (RTE-10).

How results are shown is decided in ``results``.
"""

import logging
from collections.abc import Mapping
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


class OutputChecks:
    """Checks results of tools that promise a form; each schema is compiled at the first result.

    A schema that cannot be used promises nothing, and what is too large to be checked is let through: a
    result is data that nobody vouches for in any case.
    """

    def __init__(self) -> None:
        self._checks: WeakKeyDictionary[ToolSpec, ArgumentCheck | None] = WeakKeyDictionary()

    async def violations(self, spec: ToolSpec, value: object) -> tuple[str, ...]:
        """Say where structured data breaks the promise of its tool; no other result can."""
        if spec.output is None or not isinstance(value, dict):
            return ()
        check = await self._check(spec, spec.output)
        if check is None:
            return ()
        if _is_small(value, check.parts):
            return check.violations(value)
        return await aside("checking a result", partial(check.violations, value))

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


def _is_small(value: dict[str, object], parts: int) -> bool:
    try:
        return parts * measure(value, _SMALL).values <= MAX_CHECKS
    except ValueError:
        return False
