import sys
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.normal_form import begins, normal
from session_runtime.registry.names import canonical_name
from session_runtime.search.corpus import compact, fold
from session_runtime.search.terms import normalise
from session_runtime.toolbox.notes_words import words

_few_marks = st.lists(
    st.tuples(
        st.characters(exclude_categories=["M", "Cs"]),
        st.text(st.characters(categories=["M"]), max_size=4),
    ).map("".join),
    max_size=40,
).map("".join)
_HARD = (
    "\u0301\u0316",
    "\u0f73",
    "\uff9e\u0301\u0316",
    "\u0344\u0316",
    "\u1100\u1161\u11a8",
    "\ufdfa",
)


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@given(st.one_of(_few_marks, st.text()), st.integers(1, 12))
def test_a_long_text_has_the_form_that_the_standard_gives_it(
    form: str, text: str, times: int
) -> None:
    long = text * times
    assert normal(form, long) == unicodedata.normalize(form, long)  # type: ignore[arg-type]


def test_whatever_is_composed_with_or_sorted_before_another_begins_nothing() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if 0xD800 <= code < 0xE000:
            continue
        first = unicodedata.normalize("NFKD", char)[0]
        assert not (unicodedata.combining(first) and begins(char)), hex(code)
        parts = unicodedata.decomposition(char).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            assert not begins(chr(int(parts[1], 16))), hex(code)


@pytest.mark.parametrize("syllable", ["각", "힣"])
def test_syllables_that_a_piece_could_part_stay_whole(syllable: str) -> None:
    apart = unicodedata.normalize("NFD", syllable)
    for before in range(120, 130):
        assert normal("NFC", "x" * before + apart) == "x" * before + syllable


@pytest.mark.parametrize("marks", _HARD)
def test_no_mark_of_an_endless_run_is_lost(marks: str) -> None:
    text = "a" + marks * 500
    expected = unicodedata.normalize("NFKD", text)
    found = unicodedata.normalize("NFKD", normal("NFKC", text))
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("marks", _HARD)
@pytest.mark.parametrize("read", [normalise, fold, compact, canonical_name, words])
def test_four_times_as_many_marks_take_about_four_times_as_long(
    read: Callable[[str], object], marks: str
) -> None:
    text = (marks * 4_000)[:4_000]
    assert _time_of(read, text * 4) < 9 * _time_of(read, text)  # if all were compared: 16


def _time_of(read: Callable[[str], object], text: str) -> float:
    def once() -> float:
        start = time.process_time()
        read(text)
        return time.process_time() - start

    return min(once() for _ in range(5))
