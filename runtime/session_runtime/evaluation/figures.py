"""Figures over many outcomes; shares are in percent."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from session_runtime.evaluation.outcome import DEPTH, Outcome


@dataclass(frozen=True, slots=True)
class Figures:
    """Averages over ``cases`` outcomes.

    ``hit`` counts cases with any wanted tool among the first results, ``recall`` (R@k) is the share of
    wanted tools among them, ``ndcg_5`` says how early they come, all in percent. ``median_ms`` is
    processor time per query, ``tokens`` what the loaded schemas cost, ``wasted`` how many tools are
    loaded that nobody wanted, both per query.
    """

    cases: int
    hit_1: float
    hit_5: float
    recall_1: float
    recall_5: float
    ndcg_5: float
    median_ms: float
    tokens: float
    wasted: float


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """The figures of one outcome or more."""
    return Figures(
        cases=len(outcomes),
        hit_1=_percent(outcomes, lambda outcome: outcome.hit(1)),
        hit_5=_percent(outcomes, lambda outcome: outcome.hit(DEPTH)),
        recall_1=_percent(outcomes, lambda outcome: outcome.recall(1)),
        recall_5=_percent(outcomes, lambda outcome: outcome.recall(DEPTH)),
        ndcg_5=_percent(outcomes, Outcome.ndcg),
        median_ms=statistics.median(outcome.seconds for outcome in outcomes) * 1_000,
        tokens=statistics.fmean(outcome.tokens for outcome in outcomes),
        wasted=statistics.fmean(outcome.wasted for outcome in outcomes),
    )


def by_kind(outcomes: Iterable[Outcome]) -> Mapping[str, Figures]:
    """The figures of each kind of case, in the order in which the kinds first came."""
    kinds: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        kinds.setdefault(outcome.case.kind, []).append(outcome)
    return {kind: figures(of_kind) for kind, of_kind in kinds.items()}


def _percent(outcomes: Sequence[Outcome], share: Callable[[Outcome], float]) -> float:
    return statistics.fmean(map(share, outcomes)) * 100
