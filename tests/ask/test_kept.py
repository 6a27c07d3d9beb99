"""The store of an ask's long results: parts, room, and references that mean one thing only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask import kept as kept_module
from session_runtime.ask.kept import MOST_KEPT, KeptResults, Room, next_number
from session_runtime.errors import ToolError
from session_runtime.registry.invoke.results import Place
from session_runtime.services import Part
from session_runtime.types import Message, TextPart


def kept(*texts: str, most_chars: int = 1_000) -> KeptResults:
    store = KeptResults(500, most_chars=most_chars)
    for text in texts:
        place(store).keep(text)
    return store


def place(store: KeptResults) -> Place:
    """The place of the next result."""
    found = store.place(readable=True)
    assert found is not None
    return found


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
    first, second = place(store), place(store)
    assert (second.keep("later"), first.keep("earlier")) == (True, True)
    assert (first.reference, second.reference) == ("result_1", "result_2")
    assert store.read("result_1", 2, 3) == Part("rli", 2, 7)


@pytest.mark.requirement("ASK-8b")
def test_what_nobody_could_read_is_not_kept() -> None:
    store = KeptResults(500)
    assert store.place(readable=False) is None
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
    assert not place(store).keep("b" * 1_001)
    assert store.read("result_1", 0, 1).text == "a"


@pytest.mark.requirement("ASK-8b")
def test_where_all_asks_fill_the_room_the_oldest_results_of_the_same_ask_go_first() -> None:
    room = Room(10_000)
    other, own = (KeptResults(500, most_chars=100_000, room=room) for _ in range(2))
    assert place(other).keep("o" * 4_000)
    assert [place(own).keep(letter * 2_500) for letter in "abc"] == [True, True, True]
    assert refusal(own, "result_1")[0] == "results.dropped"
    assert [own.read(f"result_{n}", 0, 1).text for n in (2, 3)] == ["b", "c"]
    assert other.read("result_1", 0, 1).text == "o"


@pytest.mark.requirement("ASK-8b")
def test_a_result_for_which_other_asks_leave_no_room_is_not_kept_and_drives_out_nothing() -> None:
    room = Room(10_000)
    other, own = (KeptResults(500, most_chars=100_000, room=room) for _ in range(2))
    assert place(other).keep("o" * 4_000)
    assert place(own).keep("a" * 2_000)
    assert not place(own).keep("b" * 8_000)
    assert own.read("result_1", 0, 1).text == "a"


@pytest.mark.requirement("ASK-8b")
@given(st.lists(st.text(max_size=500), max_size=20), st.integers(0, 3_000))
def test_an_ask_gives_all_room_back_when_it_ends(texts: list[str], most_bytes: int) -> None:
    room = Room(most_bytes)
    store = KeptResults(500, most_chars=1_000, room=room)
    for text in texts:
        place(store).keep(text)
        text.encode("utf-8", "replace")
        assert 0 <= room.free <= most_bytes
    late = place(store)
    store.close()
    assert (room.free, late.keep("late")) == (most_bytes, False)


@pytest.mark.requirement("ASK-8b")
def test_room_is_counted_in_bytes_and_not_in_characters() -> None:
    narrow, wide = Room(5_000), Room(5_000)
    assert place(KeptResults(500, room=narrow)).keep("a" * 4_000)
    assert not place(KeptResults(500, room=wide)).keep("𝒂" * 4_000)


@pytest.mark.requirement("ASK-8b")
@given(
    st.text("ab", max_size=60),
    st.text("ab", max_size=8),
    st.integers(0, 70),
    st.integers(1, 9),
)
def test_a_search_in_steps_finds_what_one_search_finds(
    whole: str, text: str, offset: int, step: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_module, "SEARCHED_AT_ONCE", step)
        found = whole.find(text, offset)
        assert kept(whole).find("result_1", text, offset) == (None if found < 0 else found)


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


@pytest.mark.requirement("RTE-10")
def test_of_each_result_it_is_known_which_tool_gave_it() -> None:
    store = KeptResults()
    found = store.place(readable=True, tool="far.t")
    assert found is not None
    found.keep("x")
    assert (store.tool_of("result_1"), store.tool_of("result_2")) == ("far.t", None)
