"""How many of the replayed asks differ, and in what: counted in bounded memory."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from session_runtime.replay.difference import Kind, Replayed

MAX_GROUPS: Final = 1_000


class Summary:
    """Counts asks; of kinds of differences beyond ``MAX_GROUPS`` only the number is kept."""

    def __init__(self) -> None:
        self.asks = 0
        self.differing = 0
        self.uncertain = 0
        self.damaged = 0
        self._groups: Counter[tuple[Kind, str]] = Counter()
        self._unknown: Counter[str] = Counter()
        self._not_named = 0

    def add(self, replayed: Replayed) -> None:
        """Count one ask."""
        self.asks += 1
        self.differing += not replayed.same
        self.uncertain += bool(replayed.unknown)
        for group in replayed.groups():
            self._not_named += not _count(self._groups, group)
        for unknown in set(replayed.unknown):
            _count(self._unknown, unknown)

    def add_damaged(self, lines: int) -> None:
        """Count lines that are no record."""
        self.damaged += lines

    def changes(self) -> Iterator[tuple[Kind, str, int]]:
        """What differs and in how many asks, the most frequent first."""
        for (kind, what), asks in sorted(
            self._groups.items(), key=lambda each: (-each[1], each[0])
        ):
            yield kind, what, asks

    def unknown(self) -> Iterator[tuple[str, int]]:
        """What could not be told, and of how many asks."""
        yield from sorted(self._unknown.items(), key=lambda each: (-each[1], each[0]))

    def to_json(self) -> Mapping[str, Any]:
        """As plain data."""
        return {
            "asks": self.asks,
            "same": self.asks - self.differing,
            "differ": self.differing,
            "uncertain": self.uncertain,
            "damaged_lines": self.damaged,
            "changes": [
                {"kind": kind, "what": what, "asks": asks} for kind, what, asks in self.changes()
            ],
            "changes_not_named": self._not_named,
            "unknown": [{"what": what, "asks": asks} for what, asks in self.unknown()],
        }


def _count(counter: Counter[Any], group: object) -> bool:
    """Count under a group, unless there are too many of them already."""
    if group not in counter and len(counter) >= MAX_GROUPS:
        return False
    counter[group] += 1
    return True
