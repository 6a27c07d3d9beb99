"""How figures of an evaluation and the cases behind them look as text; a line may hold text from outside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.evaluation import DEPTH, Change, Figures, Outcome, by_kind, figures

MOST_SHOWN: Final = 20
_LONGEST_QUERY: Final = 80
_HEAD: Final = (
    "cases",
    "hit@1",
    "hit@5",
    "R@1",
    "R@5",
    "nDCG@5",
    "CPU ms",
    "tokens",
    "wasted",
)


@dataclass(frozen=True, slots=True)
class Named:
    """The outcomes of one evaluation, what it was of, and how many tools could be found."""

    name: str
    tools: int
    outcomes: Sequence[Outcome]


def table(evaluations: Sequence[Named]) -> Iterator[str]:
    """One row per kind and evaluation, those of one kind together; the last are over all cases."""
    rows: list[tuple[str, ...]] = [("kind", "", *_HEAD)]
    by_kinds = [by_kind(each.outcomes) for each in evaluations]
    kinds = list(by_kinds[0]) if len(by_kinds[0]) > 1 else []
    several = len(evaluations) > 1
    for kind in kinds:
        for each, figures_of in zip(evaluations, by_kinds, strict=True):
            rows.append((kind or "-", each.name if several else "", *_cells(figures_of[kind])))
    for each in evaluations:
        rows.append(("all", each.name if several else "", *_cells(figures(each.outcomes))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for kind, name, *cells in rows:
        labels = f"{kind:{widths[0]}}  {name:{widths[1]}}  " if several else f"{kind:{widths[0]}}  "
        yield labels + "  ".join(
            f"{cell:>{width}}" for cell, width in zip(cells, widths[2:], strict=True)
        )


def missed_cases(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The cases of which no wanted tool is among the best, with what was found instead."""
    missed = [outcome for outcome in outcomes if not outcome.hit(DEPTH)]
    if not missed:
        return
    yield f"nothing wanted among the first {DEPTH} in {len(missed)} of {len(outcomes)} cases:"
    for outcome in missed[:MOST_SHOWN]:
        best = outcome.found[0] if outcome.found else "nothing"
        yield f"  {_title(outcome)}: wanted {', '.join(outcome.case.gold)}, first is {best}"
    yield from _rest(len(missed))


def changed_cases(changes: Sequence[Change]) -> Iterator[str]:
    """The cases that became better and those that became worse, each with the places before and now."""
    for verdict in ("better", "worse"):
        those = [change for change in changes if change.verdict == verdict]
        yield f"{verdict}: {len(those)}"
        for change in those[:MOST_SHOWN]:
            yield f"  {_title(change.after)}: {_moves(change)}"
        yield from _rest(len(those))


def _rest(count: int) -> Iterator[str]:
    if count > MOST_SHOWN:
        yield f"  and {count - MOST_SHOWN} more: --json tells all"


def _cells(figures_of: Figures) -> tuple[str, ...]:
    shares = (
        figures_of.hit_1,
        figures_of.hit_5,
        figures_of.recall_1,
        figures_of.recall_5,
        figures_of.ndcg_5,
    )
    return (
        f"{figures_of.cases}",
        *(f"{share:.1f}" for share in shares),
        f"{figures_of.median_ms:.2f}",
        f"{figures_of.tokens:.0f}",
        f"{figures_of.wasted:.1f}",
    )


def _title(outcome: Outcome) -> str:
    query = outcome.case.query.strip()
    shown = query if len(query) <= _LONGEST_QUERY else f"{query[: _LONGEST_QUERY - 1]}…"
    return f"line {outcome.case.line} {shown!r}"


def _moves(change: Change) -> str:
    before, after = change.before.ranks, change.after.ranks
    return ", ".join(
        f"{name} {before[name] or '-'} -> {after[name] or '-'}"
        for name in after
        if before[name] != after[name]
    )
