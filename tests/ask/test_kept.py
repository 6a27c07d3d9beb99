"""The store of an ask's long results: parts, room, and references that mean one thing only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask.kept import MOST_KEPT, KeptResults, next_number
from session_runtime.errors import ToolError
from session_runtime.services import Part
from session_runtime.types import Message, TextPart


def kept(*texts: str, most_chars: int = 1_000) -> KeptResults:
    store = KeptResults(500, most_chars=most_chars)
    for text in texts:
        store.keeper(readable=True)(text)
    return store


def refusal(store: KeptResults, reference: str, offset: int = 0) -> tuple[str, str]:
    with pytest.raises(ToolError) as caught:
        store.read(reference, offset, 10)
    return caught.value.code, str(caught.value)


@pytest.mark.requirement("ASK-8b")
@given(st.text(min_size=1), st.integers(1, 9))
def test_all_parts_together_are_the_whole(text: str, length: int) -> None:
    store = kept(text)
    parts = [store.read("result_1", at, length) for at in range(0, len(text), length)]
    assert "".join(part.text for part in parts) == text
    assert {part.total for part in parts} == {len(text)}


@pytest.mark.requirement("ASK-8b")
def test_references_count_in_the_order_of_calls_and_not_of_results() -> None:
    store = KeptResults(500)
    first, second = store.keeper(readable=True), store.keeper(readable=True)
    assert (second("later"), first("earlier")) == ("result_2", "result_1")
    assert store.read("result_1", 2, 3) == Part("rli", 2, 7)


@pytest.mark.requirement("ASK-8b")
def test_what_nobody_could_read_is_not_kept() -> None:
    store = KeptResults(500)
    assert store.keeper(readable=False)("text") is None
    assert not store.used


@pytest.mark.requirement("ASK-8b")
def test_the_oldest_results_make_room_and_reading_them_says_so() -> None:
    store = kept("a" * 600, "b" * 300, "c" * 200)
    assert refusal(store, "result_1") == (
        "results.dropped",
        "result_1 had to make room for later results. Call its tool again.",
    )
    assert store.read("result_2", 0, 2).text == "bb"
    many = kept(*["x"] * (MOST_KEPT + 2))
    assert refusal(many, "result_2")[0] == "results.dropped"
    assert many.read("result_3", 0, 1).text == "x"


@pytest.mark.requirement("ASK-8b")
def test_a_result_that_is_larger_than_the_room_drives_out_nothing() -> None:
    store = kept("a" * 600)
    assert store.keeper(readable=True)("b" * 1_001) is None
    assert store.read("result_1", 0, 1).text == "a"


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize("reference", ["result_2", "result_01", "", "x" * 500])
def test_an_unknown_reference_is_told_with_those_there_are(reference: str) -> None:
    assert refusal(kept("text"), reference) == (
        "results.unknown",
        f"There is no result {reference[:80]!r} in this request. There is: result_1.",
    )


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize("offset", [4, 5, 10**30])
def test_an_offset_beyond_the_end_is_told_with_the_length(offset: int) -> None:
    code, words = refusal(kept("text"), "result_1", offset)
    assert (code, "has 4 characters" in words) == ("results.out_of_range", True)


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(("offset", "found"), [(0, 1), (2, 4), (5, None), (99, None)])
def test_a_text_is_found_from_an_offset_on(offset: int, found: int | None) -> None:
    assert kept("an an").find("result_1", "n", offset) == found


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(
    ("content", "number"),
    [
        (None, 1),
        ("no reference", 1),
        ('{"reference":"result_7"} and "result_3"', 8),
        ((TextPart("result_12"),), 13),
        ("result_99999999999999999999", 1),
    ],
)
def test_references_of_earlier_asks_are_not_given_again(content: object, number: int) -> None:
    history = [Message("user", "result_40"), Message("tool", content, tool_call_id="c")]  # type: ignore[arg-type]
    assert next_number(history) == number
