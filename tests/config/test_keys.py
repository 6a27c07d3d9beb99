"""Spellings of keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.keys import dotted, nearest, parse_dotted, variable_form

PARTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.requirement("CFG-1")
@given(st.lists(PARTS, min_size=1, max_size=4).map(tuple))
def test_a_dotted_key_reads_back_as_the_same_path(path: tuple[str, ...]) -> None:
    assert parse_dotted(dotted(path)) == path


@pytest.mark.requirement("CFG-1")
def test_only_names_that_need_quotes_get_them() -> None:
    assert dotted(("models", "gpt-4.1", "base_url")) == 'models."gpt-4.1".base_url'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "Invalid statement"),
        ("a..b", "Invalid initial character for a key part"),
        ("a b", "Expected '='"),
        ('"a', "Unterminated string|Illegal character"),
        ("a = 1\nb", "not one key"),
    ],
)
def test_what_is_not_one_key_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_dotted(text)


@pytest.mark.requirement("CFG-2")
@given(PARTS)
def test_the_form_of_a_variable_holds_letters_digits_and_underscores(name: str) -> None:
    form = variable_form(name)
    assert all(char.isalnum() or char == "_" for char in form)
    assert variable_form(form) == form


@pytest.mark.requirement("CFG-1")
def test_the_nearest_name_is_found_in_any_case_and_nothing_far_is_suggested() -> None:
    known = ("tool_search_enabled", "prefetch_tools", "Name")
    assert nearest("TOOL_SEARCH_ENABLED", known) == "tool_search_enabled"
    assert nearest("tool_serach_enabled", known) == "tool_search_enabled"
    assert nearest("name", known) == "Name"
    assert nearest("zzz", known) is None
