import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.search.directory import CHARS_PER_TOKEN, Entry, directory_text, tool_entry

OPEN, CLOSE = "<available_deferred_tools>", "</available_deferred_tools>"


def entries(*names: str) -> list[Entry]:
    return [tool_entry(name, f"wire_{number}") for number, name in enumerate(names)]


def lines(text: str) -> list[str]:
    first, *between, last = text.split("\n")
    assert (first, last) == (OPEN, CLOSE)
    return between


@pytest.mark.requirement("TS-4")
def test_each_name_is_a_line() -> None:
    assert directory_text(entries("a.b", "c"), 1000) == f"{OPEN}\na.b\nc\n{CLOSE}"


@pytest.mark.requirement("TS-4")
def test_markup_in_a_name_is_escaped() -> None:
    assert lines(directory_text(entries("r&d.list"), 1000)) == ["r&amp;d.list"]


@pytest.mark.requirement("TS-4")
@pytest.mark.parametrize("name", ["a\nb", "x" * 129, " ", "a\u202eb", ""])
def test_a_name_that_would_spoil_the_list_stands_there_by_its_wire_name(name: str) -> None:
    assert lines(directory_text(entries("ok", name), 1000)) == ["ok", "wire_1"]


@pytest.mark.requirement("TS-4")
def test_the_largest_groups_collapse_first_and_only_as_many_as_needed() -> None:
    names = (
        [f"big.tool_{n:02}" for n in range(20)] + [f"mid.tool_{n:02}" for n in range(9)] + ["solo"]
    )
    everything = len(directory_text(entries(*names), 10_000))
    some = directory_text(entries(*names), (everything - 50) // CHARS_PER_TOKEN)
    assert lines(some) == ["big.* (20 tools)", *names[20:]]
    few = directory_text(entries(*names), 30)
    assert lines(few) == ["big.* (20 tools)", "mid.* (9 tools)", "solo"]


@pytest.mark.requirement("TS-4")
def test_names_without_a_group_give_way_to_their_number() -> None:
    text = directory_text(entries(*(f"tool_{n:03}" for n in range(100))), 50)
    assert (
        lines(text)[-1] == f"({100 - len(lines(text)) + 1} more tools, not listed: search for them)"
    )
    assert len(text) <= 50 * CHARS_PER_TOKEN


@pytest.mark.requirement("TS-4")
@given(
    st.lists(st.from_regex(r"([ab]{1,2}\.){0,2}[a-d]{1,6}", fullmatch=True), unique=True),
    st.integers(min_value=40, max_value=200),
)
def test_the_text_keeps_its_budget_and_accounts_for_every_tool(
    names: list[str], budget: int
) -> None:
    text = directory_text(entries(*sorted(names)), budget)
    assert len(text) <= budget * CHARS_PER_TOKEN
    counts = [int(line.partition("(")[2].split()[0]) if "(" in line else 1 for line in lines(text)]
    assert sum(counts) == len(names)


@pytest.mark.requirement("TS-4")
def test_a_directory_of_nothing_says_nothing_however_little_room_there_is() -> None:
    assert directory_text([], 1) == directory_text([], 8_000)
