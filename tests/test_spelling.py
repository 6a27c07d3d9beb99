import pytest

from session_runtime.spelling import hint, nearest

KNOWN = ["tool_search_enabled", "tool_search_explain", "Name"]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("TOOL_SEARCH_ENABLED", ["tool_search_enabled"]),
        ("tool_serach_enabled", ["tool_search_enabled"]),
        ("name", ["Name"]),
        ("nmae", ["Name"]),
        ("zzz", []),
        ("", []),
    ],
)
def test_the_nearest_name_is_found_in_any_case_and_nothing_far(word: str, found: list[str]) -> None:
    assert nearest(word, KNOWN) == found


def test_several_names_come_with_the_most_like_first() -> None:
    known = ["tool_search_explain", "tool_search_enabled"]
    assert nearest("tool_search_enable", known, 3) == ["tool_search_enabled", "tool_search_explain"]


def test_a_word_longer_than_any_name_is_not_compared() -> None:
    assert nearest("a" * 257, ["a" * 256]) == []


@pytest.mark.parametrize(
    ("word", "question"),
    [
        ("nam", "did you mean 'Name'?"),
        ("tool_search_enable", "did you mean 'tool_search_enabled' or 'tool_search_explain'?"),
        ("zzz", ""),
    ],
)
def test_a_hint_asks_for_what_may_have_been_meant(word: str, question: str) -> None:
    assert hint(word, KNOWN, 2) == question
