"""The measures are those of the literature, on cases small enough to check by hand."""

import math

import pytest

from session_runtime.evaluation import Case, Outcome, by_kind, compare, figures


def outcome(
    found: str, gold: str = "a", *, kind: str = "", loaded: str = "", seconds: float = 0.0
) -> Outcome:
    """One letter is one tool."""
    case = Case(1, "q", tuple(gold), kind)
    return Outcome(case, tuple(found), tuple(loaded), 10 * len(loaded), seconds)


def test_a_hit_needs_one_wanted_tool_and_recall_counts_all() -> None:
    one_of_two = outcome("xaybz", "ac")
    assert (one_of_two.hit(1), one_of_two.hit(5)) == (0, 1)
    assert (one_of_two.recall(1), one_of_two.recall(5)) == (0, 0.5)
    assert outcome("ab", "ab").recall(1) == 0.5
    assert one_of_two.ranks == {"a": 2, "c": None}


@pytest.mark.parametrize(
    ("found", "gold", "worth"),
    [
        ("a", "a", 1.0),
        ("xa", "a", 1 / math.log2(3)),
        ("ab", "ba", 1.0),
        ("xb", "ab", (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
        ("abcde", "abcdefg", 1.0),  # no order of five could hold more
        ("", "a", 0.0),
    ],
)
def test_ndcg_is_one_for_the_best_order_and_less_the_later_the_wanted_come(
    found: str, gold: str, worth: float
) -> None:
    assert outcome(found, gold).ndcg() == pytest.approx(worth)


def test_figures_are_averages_in_percent_and_a_median_in_milliseconds() -> None:
    all_of_them = [
        outcome("a", loaded="abc", seconds=0.001),
        outcome("xa", loaded="xa", seconds=0.002),
        outcome("", seconds=0.009),
    ]
    found = figures(all_of_them)
    assert (found.cases, found.median_ms) == (3, 2.0)
    assert (found.hit_1, found.hit_5) == pytest.approx((100 / 3, 200 / 3))
    assert (found.recall_1, found.recall_5) == pytest.approx((100 / 3, 200 / 3))
    assert found.ndcg_5 == pytest.approx((1 + 1 / math.log2(3)) * 100 / 3)
    assert found.tokens == pytest.approx(50 / 3)
    assert found.wasted == 1.0


def test_figures_of_kinds_come_in_the_order_of_the_cases() -> None:
    kinds = by_kind([outcome("a", kind="z"), outcome("x", kind="b"), outcome("a", kind="z")])
    assert [(kind, of_kind.cases, of_kind.hit_1) for kind, of_kind in kinds.items()] == [
        ("z", 2, 100.0),
        ("b", 1, 0.0),
    ]


def test_a_case_is_better_if_more_is_found_or_the_same_earlier() -> None:
    before = [outcome("xa"), outcome("ab", "ab"), outcome("a"), outcome("xa")]
    after = [outcome("a"), outcome("a", "ab"), outcome("ax"), outcome("xya")]
    changes = compare(before, after)
    assert [(before.index(change.before), change.verdict) for change in changes] == [
        (0, "better"),
        (1, "worse"),
        (0, "worse"),  # the fourth equals the first
    ]


def test_evaluations_of_other_cases_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="shorter"):
        compare([outcome("a"), outcome("a")], [outcome("a")])
