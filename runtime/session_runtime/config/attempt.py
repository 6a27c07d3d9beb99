"""One attempt to put a configuration into force: what it is called, and what its receipt says (REL-3)."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.config.changes import Change
from session_runtime.config.receipt import Receipt, Trigger, Verdict
from session_runtime.errors import ConfigError, Problem

_log: Final = logging.getLogger(__name__)


Touched = frozenset[str] | None
"""Paths below folders of tools that may have changed; None: any."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt under way: its number, what caused it, and when it began, on two clocks."""

    id: int
    trigger: Trigger
    at: float
    begun: float

    @classmethod
    def now(cls, number: int, trigger: Trigger) -> "Attempt":
        """One that begins now."""
        return cls(number, trigger, time.time(), time.perf_counter())

    def receipt(
        self,
        verdict: Verdict,
        digest: str,
        generation: int,
        *,
        changes: tuple[Change, ...] = (),
        waiting: tuple[Change, ...] = (),
        tools: Mapping[str, tuple[str, ...]],
        errors: tuple[Problem, ...] = (),
        warnings: tuple[Problem, ...] = (),
    ) -> Receipt:
        """Its receipt, as it ends now."""
        return Receipt(
            id=self.id,
            at=self.at,
            trigger=self.trigger,
            verdict=verdict,
            digest=digest,
            generation=generation,
            duration_s=time.perf_counter() - self.begun,
            changes=changes,
            waiting=waiting,
            tools=tools,
            errors=errors,
            warnings=warnings,
        )


def problems_of(error: Exception) -> tuple[Problem, ...]:
    """What an attempt failed of; a fault of the runtime's own is logged with all it tells."""
    match error:
        case ConfigError():
            return error.problems
        case OSError():
            return (Problem(str(error)),)
        case _:
            _log.error("preparing a generation failed inside the runtime", exc_info=error)
            return (
                Problem(f"the runtime failed: {type(error).__name__}; its log has the details"),
            )


def both(one: Touched, other: Touched) -> Touched:
    """What was touched in either of two times."""
    return None if one is None or other is None else one | other
