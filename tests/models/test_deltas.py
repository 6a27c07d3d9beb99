"""Cutting a finished text into pieces that arrive one after the other."""

from hypothesis import given
from hypothesis import strategies as st

from session_runtime.models.deltas import emit


@given(st.text())
def test_the_pieces_join_to_the_text(text: str) -> None:
    told: list[str] = []
    emit(text, told.append)
    assert "".join(told) == text
    assert len(told) <= 4
    assert all(told)


def test_words_stay_whole() -> None:
    told: list[str] = []
    emit("a quite short sentence of seven words", told.append)
    assert told == ["a quite ", "short sentence ", "of seven ", "words"]
