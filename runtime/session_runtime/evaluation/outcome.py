"""What one case came to, and how good that is."""

import math
from dataclasses import dataclass
from typing import Final

from session_runtime.evaluation.cases import Case

DEPTH: Final = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What tool search answered to a case.

    ``found`` are the best ``DEPTH`` names, best first; ``loaded`` is what a search of an ask would load,
    whose schemas cost ``tokens`` in each later turn. ``seconds`` is processor time of the ranking.
    """

    case: Case
    found: tuple[str, ...]
    loaded: tuple[str, ...]
    tokens: int
    seconds: float

    @property
    def wasted(self) -> int:
        """How many tools were loaded that nobody wanted."""
        return sum(name not in self.case.gold for name in self.loaded)

    @property
    def ranks(self) -> dict[str, int | None]:
        """For each wanted tool its place, from 1; None if it is not among the best."""
        places = {name: place for place, name in enumerate(self.found, 1)}
        return {name: places.get(name) for name in self.case.gold}

    def hit(self, depth: int) -> float:
        """1 if any wanted tool is among the first ``depth``, else 0."""
        return float(any(name in self.case.gold for name in self.found[:depth]))

    def recall(self, depth: int) -> float:
        """The share of the wanted tools among the first ``depth``, from 0 to 1."""
        return sum(name in self.case.gold for name in self.found[:depth]) / len(self.case.gold)

    def ndcg(self) -> float:
        """How early the wanted tools come among the first ``DEPTH``: 1 if no order is better, else less."""
        gained = sum(
            _gain(place) for place, name in enumerate(self.found) if name in self.case.gold
        )
        return gained / sum(map(_gain, range(min(len(self.case.gold), DEPTH))))


def _gain(place: int) -> float:
    """What a wanted tool is worth at a place, from 0."""
    return 1 / math.log2(place + 2)
