import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.cli.screen import first_line, printable


@pytest.mark.parametrize(
    "text", ["天\u3000气", "a\u00a0b", "👨\u200d👩\u200d👧", "e\u0301", "a\tb\nc"]
)
def test_what_people_write_is_kept(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\rb", r"a\rb"),
        ("\x9b\x07\x7f", r"\x9b\x07\x7f"),
        ("\u202eexe.txt", r"\u202eexe.txt"),
        ("\u2028", r"\u2028"),
        ("\ud83d", r"\ud83d"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_shown(text: str) -> None:
    printable(text).encode()


def test_a_description_is_cut_to_its_first_line() -> None:
    assert first_line(" one\ntwo") == "one"
    assert first_line("x" * 30, 10) == "x" * 9 + "…"
