import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.search import EMPTY_QUERY, SearchGovernor, SearchReply, ToolSearchSession
from tests.search.catalogues import (
    CHAT_BOT_ZH,
    MUSIC,
    builds_indexes,
    queries,
    result,
    session_of,
    tool,
)


class CountingSession(ToolSearchSession):
    """A session that counts how often it really searches."""

    searches = 0

    def search(self, query: str, max_results: int | None = None):  # type: ignore[no-untyped-def]
        self.searches += 1
        return super().search(query, max_results)


def governor_of(max_calls: int = 8) -> SearchGovernor:
    return SearchGovernor(session_of(*MUSIC, base=["end"]), max_calls)


@pytest.mark.requirement("TS-5")
def test_an_answer_is_compact_json_with_letters_kept() -> None:
    session = session_of(*CHAT_BOT_ZH, tool("查询.天气", "天气"))
    reply = SearchGovernor(session, 8).answer("查询.天气")
    assert reply == SearchReply(
        '{"loaded":["查询.天气"],"already_loaded":[],"not_found":[],"truncated":false,'
        '"total_deferred_tools":21}',
        loaded=("查询.天气",),
    )


@pytest.mark.requirement("TS-12")
def test_a_repeated_query_is_answered_from_memory_with_what_is_true_now() -> None:
    seen = session_of(*MUSIC, base=["end"])
    session = CountingSession(seen._view, base=["end"], max_results=5, directory_max_tokens=8000)
    governor = SearchGovernor(session, 8)
    first = governor.answer("select:web.search,nope")
    again = governor.answer(" select:web.search,nope ")
    assert json.loads(first.content) == result(["web.search"], not_found=["nope"], total=6)
    assert json.loads(again.content) == result(already=["web.search"], not_found=["nope"], total=6)
    assert (again.loaded, again.refused) == ((), False)
    assert session.searches == 1


@pytest.mark.requirement("TS-12")
def test_after_so_many_calls_further_ones_are_refused_in_plain_words() -> None:
    governor = governor_of(max_calls=2)
    answers = [governor.answer("end"), governor.answer("end"), governor.answer("web.search")]
    assert [reply.refused for reply in answers] == [False, False, True]
    assert answers[2] == SearchReply(
        "All 2 searches of this request have been made; tool_search does not search any more. Go on "
        "with the tools you have now, or say what you cannot do without another tool.",
        refused=True,
        error_code="tool_search.exhausted",
    )


@pytest.mark.requirement("TS-12")
def test_three_misses_in_a_row_end_the_searching() -> None:
    governor = governor_of()
    for query in ("volcano", "select:nope", "volcano"):
        assert not governor.answer(query).refused
    reply = governor.answer("web.search")
    assert reply.refused
    assert reply.content.startswith("The last 3 searches found nothing;")


@pytest.mark.requirement("TS-12")
def test_a_hit_between_misses_starts_the_count_anew() -> None:
    governor = governor_of()
    for query in ("volcano", "nope", "end", "volcano", "nope"):
        assert not governor.answer(query).refused
    assert governor.answer("web.search").loaded == ("web.search",)


@pytest.mark.requirement("ASK-12b")
def test_once_a_request_holds_no_more_tools_a_search_is_refused_in_words_to_act_on() -> None:
    session = session_of(*MUSIC, base=["end"], max_exposed=3)
    governor = SearchGovernor(session, 8)
    first = governor.answer("select:web.search,music.get_lyrics")
    assert json.loads(first.content) == result(["web.search"], truncated=True, total=6)
    assert governor.answer("select:music.get_lyrics") == SearchReply(
        "You can have 3 tools at most, and that many are loaded; tool_search does not search any more. "
        "Go on with the tools you have now, or say what you cannot do without another tool.",
        refused=True,
        error_code="tool_search.full",
    )
    session.max_exposed = 4
    assert governor.answer("select:music.get_lyrics").loaded == ("music.get_lyrics",)


@pytest.mark.requirement("TS-7")
def test_an_empty_query_is_answered_with_what_is_missing() -> None:
    assert governor_of().answer("  ") == SearchReply(
        EMPTY_QUERY, refused=True, error_code="tool_search.empty_query"
    )


@pytest.mark.requirement("TS-12")
@builds_indexes
@given(st.lists(queries, max_size=12))
def test_no_sequence_of_queries_searches_more_often_than_allowed(asked: list[str]) -> None:
    governor = governor_of(max_calls=4)
    replies = [governor.answer(query) for query in asked]
    exhausted = [reply.error_code == "tool_search.exhausted" for reply in replies]
    assert exhausted == sorted(exhausted)
    assert exhausted.count(False) <= 4
    assert all(reply.content.encode("utf-8") for reply in replies)


@pytest.mark.requirement("TS-5")
def test_with_hints_an_answer_names_what_can_be_called_now() -> None:
    session = session_of(*MUSIC, base=["end"], explain=True)
    governor = SearchGovernor(session, 8)
    hints = [json.loads(governor.answer(query).content)["hint"] for query in ("web.search", "nop")]
    assert hints == ["Can be called now: end, tool_search."] * 2
    session.next_turn()
    again = json.loads(governor.answer("web.search").content)
    assert again["hint"] == "Can be called now: end, tool_search, web.search."


@pytest.mark.requirement("TS-5")
def test_a_hint_names_at_most_so_many_tools_that_can_be_called() -> None:
    many = [tool(f"tool_{number:02}") for number in range(30)]
    session = session_of(*many, base=[spec.name for spec in many], explain=True)
    hint = json.loads(SearchGovernor(session, 8).answer("tool_01").content)["hint"]
    assert hint.startswith("Can be called now: tool_00, tool_01,")
    assert hint.endswith(", tool_23 and 7 more.")
