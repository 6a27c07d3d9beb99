"""How an ask ended, as a backend reads it: what is the same by whichever door it asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """How an ask ended: ``result`` as over all doors (INT-2)."""

    result: Mapping[str, Any]

    @property
    def ask_id(self) -> str:
        """The id of the ask."""
        return str(self.result["ask_id"])

    @property
    def outcome(self) -> str:
        """How it ended."""
        return str(self.result["outcome"])

    @property
    def text(self) -> str:
        """What was answered."""
        return str(self.result["text"])

    @property
    def pending(self) -> Sequence[Mapping[str, Any]]:
        """The calls that wait for a person."""
        return tuple(self.result.get("pending", ()))

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Why it did not end well, None if it did."""
        error: Mapping[str, Any] | None = self.result.get("error")
        return error
