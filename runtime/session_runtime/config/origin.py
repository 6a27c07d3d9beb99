"""Where values come from: an origin per value, and what one source gave. Which wins: ``merge``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from session_runtime.config.keys import KeyPath
from session_runtime.errors import Problem

OriginKind = Literal["explicit", "env", "file", "dotenv", "config", "default"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The place a value was read from (CFG-3).

    ``name`` is the variable, the file that held one value, or the configuration or ``.env`` file;
    ``line`` is the 1-based line in the latter two, None if unknown.
    """

    kind: OriginKind
    name: str = ""
    line: int | None = None

    @property
    def source(self) -> str:
        """The origin without a line."""
        match self.kind:
            case "explicit" | "default":
                return self.kind
            case "env" | "file":
                return f"{self.kind} {self.name}"
            case "config" | "dotenv":
                return self.name

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"

    def problem(self, key: str, message: str) -> Problem:
        """A fault of what was read here."""
        return Problem(message, key=key, source=self.source, line=self.line)


DEFAULT = Origin("default")
EXPLICIT = Origin("explicit")
MASK = "***"
"""What is shown instead of a secret."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that one source gave; ``key`` is the key as the source spelled it.

    A secret is a SecretStr from the moment it is read; the value is kept out of ``repr`` all the same.
    """

    value: object = field(repr=False)
    origin: Origin
    key: KeyPath


Candidates = Mapping[KeyPath, tuple[Candidate, ...]]
"""Per key, every value that was given for it, the one in force first."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source gave: values by key, entries of operator-named tables, faults, files it read."""

    leaves: Mapping[KeyPath, Candidate]
    entries: tuple[KeyPath, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    files: tuple[Path, ...] = ()
