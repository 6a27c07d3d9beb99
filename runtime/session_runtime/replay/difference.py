"""What a replay found out about one ask, as values and in words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "request",
    "profile",
    "prefetch",
    "tool_search",
    "exposed",
    "search",
    "call",
    "ending",
    "tokens",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that would not be as it was; ``turn`` 0 is before the first turn.

    ``before`` is what was recorded and ``after`` what would be, as JSON data; ``what`` says it in words,
    ``groups`` too, but without what is peculiar to this ask, so that asks can be counted by it.
    """

    kind: Kind
    turn: int
    what: str
    before: Any = None
    after: Any = None
    groups: tuple[str, ...] = ()

    def to_json(self) -> Mapping[str, Any]:
        """As plain data."""
        return {
            "kind": self.kind,
            "turn": self.turn,
            "what": self.what,
            "before": self.before,
            "after": self.after,
        }


@dataclass(frozen=True, slots=True)
class Replayed:
    """One ask as it would be now: what differs, and what the trace does not tell (``unknown``)."""

    ask_id: str
    started_at: str
    differences: tuple[Difference, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing is known to differ."""
        return not self.differences

    def groups(self) -> Iterator[tuple[Kind, str]]:
        """What this ask is counted under in a summary, each once."""
        seen = {
            (each.kind, group) for each in self.differences for group in each.groups or (each.what,)
        }
        return iter(sorted(seen))

    def to_json(self) -> Mapping[str, Any]:
        """As plain data."""
        return {
            "ask_id": self.ask_id,
            "started_at": self.started_at,
            "same": self.same,
            "differences": [each.to_json() for each in self.differences],
            "unknown": list(self.unknown),
        }


class Findings:
    """What is found out about one ask while it is replayed, in order; each thing is told once."""

    def __init__(self) -> None:
        self._differences: dict[tuple[Kind, int, str], Difference] = {}
        self._unknown: dict[str, None] = {}

    def differ(
        self,
        kind: Kind,
        turn: int,
        what: str,
        before: Any = None,
        after: Any = None,
        groups: tuple[str, ...] = (),
    ) -> None:
        """Tell a difference; see ``Difference``."""
        found = Difference(kind, turn, what, before, after, groups)
        self._differences.setdefault((kind, turn, what), found)

    def unknown(self, what: str) -> None:
        """Tell what cannot be known."""
        self._unknown[what] = None

    def of(self, ask_id: str, started_at: str) -> Replayed:
        """All of it."""
        return Replayed(ask_id, started_at, tuple(self._differences.values()), tuple(self._unknown))
