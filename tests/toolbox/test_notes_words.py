"""Which words a note is found by, and which notes come first."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.toolbox.notes_words import MAX_QUERY_WORDS, Wanted, rank, wanted, words


def matches(query: str, text: str) -> bool:
    kept = words(text)
    return any(each.first <= word <= each.last for each in wanted(query) for word in kept)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Call Ann at 9:30!", {"call", "ann", "at", "9", "30"}),
        ("ＡＢＣ １２", {"abc", "12"}),
        ("牙医预约", {"牙医", "医预", "预约", "约"}),
        ("周三3点", {"周三", "三", "3", "点"}),
        ("Straße CAFÉ", {"strasse", "café"}),
        ("-- … 👋", set()),
        ("x" * 100, {"x" * 64}),
    ],
)
def test_a_note_is_kept_under_its_words_and_pairs_of_han(text: str, kept: set[str]) -> None:
    assert words(text) == kept


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("DENTIST", "the dentist, Tuesday"),
        ("tuesday dentist", "the dentist, Tuesday"),
        ("meetings", "one meeting"),
        ("meeting", "two meetings"),
        ("appoint", "an appointment"),
        ("牙医", "周三下午看牙医"),
        ("看牙", "周三下午看牙医"),
        ("医", "周三下午看牙医"),
        ("我的牙医在哪里", "牙医的地址"),
        ("パス", "パスワード"),
        ("y" * 200, "y" * 300),
    ],
)
def test_a_query_finds(query: str, text: str) -> None:
    assert matches(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [("at", "attic"), ("dentist", "dental"), ("医牙", "牙医"), ("看医", "看牙医"), ("", "a")],
)
def test_a_query_does_not_find(query: str, text: str) -> None:
    assert not matches(query, text)


def test_a_query_is_bounded_and_each_of_its_words_counts_once() -> None:
    assert wanted("a A ａ") == (Wanted(("a", "a"), "a", "a"),)
    assert len(wanted(" ".join(f"word{number}" for number in range(1000)))) == MAX_QUERY_WORDS


def test_rare_words_count_more_and_newer_notes_break_ties() -> None:
    rare, frequent = {1: 1.0}, {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}
    assert rank([rare, frequent], 4) == [1]
    assert rank([frequent], 4) == [4, 3, 2, 1]
    assert rank([{1: 0.5, 2: 1.0, 3: 0.5}], 4) == [2, 3, 1]
    assert rank([{}], 4) == rank([], 0) == []


@given(st.lists(st.dictionaries(st.integers(1, 9), st.sampled_from([0.5, 1.0])), max_size=5))
def test_the_first_note_has_the_best_score_and_only_holders_are_ranked(
    found: list[dict[int, float]],
) -> None:
    ranked = rank(found, 9)
    assert len(set(ranked)) == len(ranked)
    assert set(ranked) <= {note for holders in found for note in holders}
    assert rank(found, 9) == ranked
    assert bool(ranked) == any(found)


@given(st.text())
def test_any_text_finds_itself_if_it_has_a_word(text: str) -> None:
    assert matches(text, text) == bool(words(text))


@given(st.text(st.characters(), max_size=20), st.integers(0, 20))
def test_every_part_of_han_text_of_two_characters_is_found(text: str, seed: int) -> None:
    han = "".join(chr(0x4E00 + ord(char) % 5000) for char in text) + "好的"
    at = next(each % (len(han) - 1) for each in count(seed))
    assert matches(han[at : at + 2], f"note: {han}")
