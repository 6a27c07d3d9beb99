"""Texts that are made to cost much, or to push others out."""

import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.search import SearchView
from session_runtime.search.items import MAX_GLUED, MAX_TRIED, glued_in, names_within
from session_runtime.search.query import AFTER_NAMES, AROUND_NAMES, MAX_TERMS, Keywords, parse
from session_runtime.search.terms import analyse, runs
from tests.search.catalogues import (
    MUSIC,
    builds_indexes,
    index_of,
    ranked,
    session_of,
    tool,
    view_of,
)

_pieces = st.sampled_from(
    [
        "song",
        "Search",
        "天气",
        "预报",
        "a1",
        "_",
        ".",
        " ",
        "+",
        "\u0301",
        "\u0f73",
        "ﷺ",
        "\ud800",
        "😀",
        "\n",
        "&amp;",
    ]
)
_any_text = st.one_of(st.text(max_size=40), st.lists(_pieces, max_size=40).map("".join))
_stuffings = st.one_of(
    _any_text,
    st.sampled_from(
        ["search songs ", "searchsongs", "music.search_songs ", "歌", "s-e-a-r-c-h "]
    ).map(lambda text: text * 3_000),
)


@pytest.mark.requirement("TS-8")
@builds_indexes
@given(_stuffings, st.lists(_stuffings, max_size=2), st.sampled_from(["a", "z", "music.songs"]))
def test_no_description_pushes_out_an_exact_name(text: str, values: list[str], name: str) -> None:
    stuffed = tool(name, text, dict.fromkeys((value[:200] for value in values), text))
    view = view_of(*MUSIC, stuffed)
    for query in ("music.search_songs", "search_songs", "searchSongs", "search songs"):
        assert ranked(view, query)[0] == "music.search_songs"


@pytest.mark.requirement("TS-8")
@builds_indexes
@given(_any_text, _any_text, _any_text)
def test_whatever_a_tool_and_a_query_are_made_of_the_tool_is_found_by_its_name(
    name: str, description: str, query: str
) -> None:
    view = view_of(tool(name, description), tool("other.tool", query))
    assert view.rank(query, 5) == view.rank(query, 5)
    if (
        name.strip(AROUND_NAMES + AFTER_NAMES + ",;:+_-") == name != ""
        and "," not in name
        and "\n" not in name
    ):
        assert ranked(view, f"select:{name}")[0] in (name, "other.tool")


@pytest.mark.requirement("TS-8")
@given(st.one_of(_any_text, _any_text.map(lambda text: text * 400)))
def test_a_query_is_searched_by_a_bounded_number_of_terms(query: str) -> None:
    found = parse(query)
    words = [word.text for word in found.words] if isinstance(found, Keywords) else []
    assert sum(len(analyse(run).words) for word in words for run in runs(word)) <= MAX_TERMS


@pytest.mark.requirement("TS-8")
def test_of_a_long_text_without_blanks_the_beginning_is_searched() -> None:
    view = view_of(tool("weather.forecast", "天气预报"), tool("music.play", "点歌"))
    assert ranked(view, "天气预报" * 900)[0] == "weather.forecast"


_ENDLESS = ("a", "a ", "a.b ", "select:", "\u0301\u0316", "<", "a,", "&amp;", "天气", "“", "end ")


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize("piece", _ENDLESS)
@pytest.mark.parametrize("start", ["", "select:"])
def test_ten_times_as_long_a_query_takes_hardly_longer(start: str, piece: str) -> None:
    view = view_of(*MUSIC)
    long = start + piece * (300_000 // len(piece))
    assert _time_of(view.find, long * 10) < 5 * _time_of(view.find, long)


def _time_of(read: Callable[[str], object], text: str) -> float:
    def once() -> float:
        start = time.process_time()
        read(text)
        return time.process_time() - start

    return min(once() for _ in range(5))


@pytest.mark.requirement("TS-14")
def test_what_a_view_keeps_of_queries_is_bounded_however_long_they_are() -> None:
    view = index_of([tool(f"t.tool_{n}", f"天气 {chr(0x4E00 + n)}") for n in range(40)]).view(
        2**40 - 1
    )
    assert _kept_of(view, 30) < 4_000_000


def _kept_of(view: SearchView, queries: int) -> int:
    """How much memory a view holds more of after so many queries of 4,000 characters, none of them twice."""
    tracemalloc.start()
    try:
        for number in range(queries):
            start = 0x4E00 + 97 * number
            view.rank("".join(map(chr, range(start, start + 4_000))), 5)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.requirement("TS-9")
def test_a_query_of_a_megabyte_that_finds_nothing_is_told_as_not_found() -> None:
    endless = "x" * 1_000_000
    assert session_of(*MUSIC).search(endless)["not_found"] == [endless]


@pytest.mark.requirement("TS-14")
def test_text_without_blanks_and_full_of_separators_costs_a_bounded_number_of_looks() -> None:
    looks: list[str] = []
    for run in glued_in("天气" * 100 + ".查询" * 300 + " " + "天.气 " * 300):
        assert list(names_within(run, lambda name: looks.append(name) is not None)) == []
    assert MAX_TRIED < len(looks) <= MAX_GLUED * MAX_TRIED
