"""Which cases became better or worse from one evaluation to another of the same cases."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from session_runtime.evaluation.outcome import DEPTH, Outcome


@dataclass(frozen=True, slots=True)
class Change:
    """One case whose wanted tools are found more or less well than ``before``."""

    verdict: Literal["better", "worse"]
    before: Outcome
    after: Outcome


def compare(before: Iterable[Outcome], after: Iterable[Outcome]) -> Sequence[Change]:
    """Compare case by case: how many wanted tools are found, then how early; equal ones are left out.

    Raises ValueError if the numbers of cases differ.
    """
    changes: list[Change] = []
    for old, new in zip(before, after, strict=True):
        if _worth(new) != _worth(old):
            verdict: Literal["better", "worse"] = "better" if _worth(new) > _worth(old) else "worse"
            changes.append(Change(verdict, old, new))
    return changes


def _worth(outcome: Outcome) -> tuple[float, float]:
    return outcome.recall(DEPTH), outcome.ndcg()
