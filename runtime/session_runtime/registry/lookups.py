"""Counts what became of the names that models call, before anything runs (REG-5)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

Found = Literal["hit", "unavailable", "unknown"]
"""The tool could be called; it is there, but no way to it is usable now; there is none of that name."""

OUTCOMES: Final[tuple[Found, ...]] = get_args(Found)


class Lookups:
    """The total numbers since the process began."""

    def __init__(self) -> None:
        self._counts: dict[Found, int] = dict.fromkeys(OUTCOMES, 0)

    def add(self, found: Found) -> None:
        """Count one more."""
        self._counts[found] += 1

    def counts(self) -> Mapping[Found, int]:
        """How often each came about."""
        return MappingProxyType(dict(self._counts))
