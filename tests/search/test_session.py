import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import EMPTY_QUERY, ToolSearchSession, open_session
from tests.search.catalogues import (
    MUSIC,
    builds_indexes,
    catalogues,
    index_of,
    queries,
    result,
    session_of,
    tool,
    view_of,
)

BASE = ("messages.send_message", "end")


@pytest.mark.requirement("TS-6")
def test_a_loaded_tool_is_exposed_from_the_next_turn_on() -> None:
    session = session_of(*MUSIC, base=BASE)
    assert session.next_turn() == (*BASE, "tool_search")
    session.search("select:web.search")
    assert session.exposed == (*BASE, "tool_search")
    assert session.loaded == ("web.search",)
    assert session.next_turn() == (*BASE, "tool_search", "web.search")
    assert session.exposed == session.next_turn()


@pytest.mark.requirement("TS-11")
def test_loaded_tools_follow_in_the_order_of_loading() -> None:
    session = session_of(*MUSIC, base=BASE)
    session.search("select:web.search,music.get_lyrics")
    session.search("select:group.get_member_info")
    session.next_turn()
    session.search("select:group.getMemberAvatar")
    assert session.next_turn() == (
        *BASE,
        "tool_search",
        "web.search",
        "music.get_lyrics",
        "group.get_member_info",
        "group.getMemberAvatar",
    )


@pytest.mark.requirement("TS-6")
@pytest.mark.requirement("TS-11")
def test_a_tool_that_no_search_asked_for_is_loaded_like_one_that_was_found() -> None:
    session = session_of(*MUSIC, base=BASE)
    session.search("select:web.search")
    assert session.load("music.get_lyrics")
    assert session.exposed == (*BASE, "tool_search")
    assert session.next_turn() == (*BASE, "tool_search", "web.search", "music.get_lyrics")
    assert session.loaded == ("web.search", "music.get_lyrics")
    found = session.search("select:music.get_lyrics")
    assert found == result(already=["music.get_lyrics"], total=5)


@pytest.mark.requirement("TS-6")
@pytest.mark.parametrize("name", ["end", "web.search", "nowhere", "music.get_lyrics"])
def test_what_is_there_or_hidden_or_does_not_exist_is_not_loaded_again(name: str) -> None:
    session = session_of(*MUSIC, base=BASE, hidden=["music.get_lyrics"])
    session.search("select:web.search")
    assert session.can_load(name) is (name in {"end", "web.search"})
    assert not session.load(name)
    assert session.next_turn() == (*BASE, "tool_search", "web.search")


@pytest.mark.requirement("ASK-12b")
def test_a_request_that_holds_no_further_tool_takes_none_that_no_search_asked_for() -> None:
    session = session_of(*MUSIC, base=BASE, max_exposed=4)
    assert session.can_load("web.search")
    assert session.load("music.get_lyrics")
    assert not session.can_load("web.search")
    assert not session.load("web.search")
    assert session.next_turn() == (*BASE, "tool_search", "music.get_lyrics")


@pytest.mark.requirement("ASK-12b")
@builds_indexes
@given(catalogues(), st.lists(st.tuples(queries, st.booleans()), max_size=8), st.integers(2, 5))
def test_no_search_loads_more_than_a_request_may_hold_and_what_is_left_out_is_told(
    specs: tuple[ToolSpec, ...], steps: list[tuple[str, bool]], most: int
) -> None:
    session = session_of(*specs, base=[specs[0].name], max_results=2, max_exposed=most)
    free = session_of(*specs, base=[specs[0].name], max_results=2)
    for query, turn_ends in steps:
        try:
            found, wanted = session.search(query), free.search(query)
        except ToolError:
            continue
        fewer = len(found["loaded"]) < len(wanted["loaded"])
        assert found["truncated"] or not fewer
        if turn_ends:
            session.next_turn()
    assert len(session.next_turn()) <= most


@pytest.mark.requirement("TS-6")
@pytest.mark.requirement("TS-11")
@builds_indexes
@given(catalogues(), st.lists(st.tuples(queries, st.booleans()), max_size=8))
def test_what_is_exposed_only_grows_at_its_end_and_never_doubles(
    specs: tuple[ToolSpec, ...], steps: list[tuple[str, bool]]
) -> None:
    session = session_of(*specs, base=[specs[0].name], max_results=2)
    before = session.exposed
    for query, turn_ends in steps:
        try:
            found = session.search(query)
        except ToolError:
            continue
        assert set(found["loaded"]).isdisjoint(found["already_loaded"])
        assert len(found["loaded"]) <= 2
        assert session.exposed == before
        if turn_ends:
            after = session.next_turn()
            assert after[: len(before)] == before
            assert len(set(after)) == len(after)
            before = after
    session.next_turn()
    assert session.exposed == (specs[0].name, "tool_search", *session.loaded)


@pytest.mark.requirement("TS-6")
def test_a_new_session_has_forgotten_what_another_loaded() -> None:
    index = index_of(MUSIC)
    open_session(index).search("select:web.search")
    assert open_session(index).next_turn() == ("tool_search",)


@pytest.mark.requirement("TS-5")
def test_keywords_load_the_best_and_tell_that_more_matched() -> None:
    session = session_of(*MUSIC, base=BASE, max_results=1)
    assert session.search("member portrait") == result(
        ["group.getMemberAvatar"], truncated=True, total=5
    )


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    ("max_results", "count"), [(None, 3), (2, 2), (1, 1), (0, 1), (-5, 1), (99, 3)]
)
def test_max_results_only_lowers_the_cap(max_results: int | None, count: int) -> None:
    specs = [tool(f"song_{n}", "song") for n in range(6)]
    for query in ("song", "select:" + ",".join(spec.name for spec in specs)):
        session = session_of(*specs, max_results=3)
        expected = [spec.name for spec in specs[:count]]
        assert session.search(query, max_results) == result(expected, truncated=True, total=6)


@pytest.mark.requirement("TS-7")
def test_select_counts_newly_loaded_tools_against_the_cap_and_no_others() -> None:
    session = session_of(*MUSIC, base=BASE, max_results=2)
    session.search("select:web.search")
    found = session.search(
        "select:web.search,end,music.get_lyrics,music.search_songs,group.get_member_info"
    )
    assert found == result(
        ["music.get_lyrics", "music.search_songs"],
        already=["web.search", "end"],
        truncated=True,
        total=5,
    )


@pytest.mark.requirement("TS-9")
def test_searching_again_lists_what_was_loaded_as_already_loaded() -> None:
    session = session_of(*MUSIC, base=BASE, max_results=2)
    first = session.search("member")
    assert first == result(["group.getMemberAvatar", "group.get_member_info"], total=5)
    again = session.search("member")
    assert again == result(already=first["loaded"], total=5)


@pytest.mark.requirement("TS-9")
@pytest.mark.parametrize("query", ["tool_search", "select:Tool_Search"])
def test_the_search_itself_is_already_loaded(query: str) -> None:
    assert session_of(*MUSIC).search(query) == result(already=["tool_search"], total=7)


@pytest.mark.requirement("TS-9")
def test_a_base_tool_among_the_best_is_already_loaded_and_takes_no_place() -> None:
    session = session_of(
        *MUSIC, tool("messages.recall", "Take a message back"), base=BASE, max_results=1
    )
    assert session.search("send message") == result(
        ["messages.recall"], already=["messages.send_message"], total=6
    )


@pytest.mark.requirement("TS-9")
@pytest.mark.parametrize("query", ["  volcano eruption ", "???", "+", "火山"])
def test_keywords_without_a_hit_come_back_whole(query: str) -> None:
    assert session_of(*MUSIC).search(query) == result(not_found=[query.strip()], total=7)


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize("query", ["", "   ", "select:", "''"])
def test_an_empty_query_is_an_error_in_the_arguments(query: str) -> None:
    with pytest.raises(ToolError, match="needs a query") as caught:
        session_of(*MUSIC).search(query)
    assert (str(caught.value), caught.value.code) == (EMPTY_QUERY, "tool_search.empty_query")


@pytest.mark.requirement("TS-5")
def test_the_total_is_the_number_at_the_start() -> None:
    session = session_of(*MUSIC, base=BASE)
    for query in ("select:web.search", "member", "volcano"):
        assert session.search(query)["total_deferred_tools"] == 5
        session.next_turn()


@pytest.mark.requirement("TS-4")
def test_the_directory_lists_deferred_names_in_order_and_never_changes() -> None:
    session = session_of(*MUSIC, tool("Alpha"), base=BASE)
    before = session.directory
    session.search("member")
    session.next_turn()
    assert session.directory == before
    assert before.split("\n")[1:-1] == [
        "Alpha",
        "group.get_member_info",
        "group.getMemberAvatar",
        "music.get_lyrics",
        "music.search_songs",
        "web.search",
    ]
    assert session.deferred == tuple(before.split("\n")[1:-1])


@pytest.mark.requirement("TS-4")
@builds_indexes
@given(catalogues())
def test_no_text_of_a_deferred_tool_stands_in_the_directory(specs: tuple[ToolSpec, ...]) -> None:
    marked = [tool(spec.name, "Qx1 " + spec.description, {"Qx2": "Qx3"}) for spec in specs]
    assert "Qx" not in session_of(*marked).directory


@pytest.mark.requirement("TS-5")
def test_an_explaining_session_adds_the_nearest_names_and_what_is_down() -> None:
    session = session_of(*MUSIC, explain=True, unavailable=["jira"])
    assert session.search("select:group.get_membr_infos,end") == {
        **result(["end"], not_found=["group.get_membr_infos"], total=7),
        "hint": "Nearest names: group.get_member_info. Not available at the moment: jira.",
    }
    assert session.search("end")["hint"] == ""


@pytest.mark.requirement("TS-3")
def test_an_open_session_exposes_always_loaded_names_in_any_case_and_drops_unknown_ones() -> None:
    session = open_session(index_of(MUSIC), always_loaded=["END", "nope", "end"])
    assert session.next_turn() == ("end", "tool_search")


@pytest.mark.requirement("TS-2")
def test_base_names_that_are_not_visible_are_not_exposed() -> None:
    index = index_of(MUSIC)
    view = index.view(index.mask(["end", "web.search"]))
    session = ToolSearchSession(
        view, base=["music.get_lyrics", "end"], max_results=5, directory_max_tokens=8000
    )
    assert session.exposed == ("end", "tool_search")
    assert session.total_deferred == 1


@pytest.mark.requirement("TS-5")
def test_only_the_first_three_missing_names_get_nearest_ones() -> None:
    session = session_of(*MUSIC, explain=True)
    missing = [f"absent_{number}" for number in range(3)]
    found = session.search("select:" + ",".join([*missing, "web.serch"]))
    assert found == {**result(not_found=[*missing, "web.serch"], total=7), "hint": ""}


@pytest.mark.requirement("TS-5")
def test_a_text_longer_than_any_name_is_near_to_none() -> None:
    view = view_of(*MUSIC)
    assert view.nearest("songs of " + "x" * 100) == view_of(*MUSIC).nearest("songs") != ()
    assert view.nearest("songs of " + "x" * 120) == ()


@pytest.mark.requirement("REL-9")
def test_what_is_withdrawn_meanwhile_is_neither_found_nor_loaded_but_stays_listed() -> None:
    withdrawn = {"web.search"}
    session = session_of(*MUSIC, withdrawn=lambda: frozenset(withdrawn))
    assert not session.can_load("web.search")
    assert not session.load("web.search")
    result = session.search("select:web.search,music.get_lyrics")
    assert (result["loaded"], result["not_found"]) == (["music.get_lyrics"], ["web.search"])
    assert "web.search" not in session.search("search the web")["loaded"]
    assert "web.search" in session.deferred
    withdrawn.clear()
    assert session.load("web.search")
    withdrawn.add("web.search")
    assert "web.search" in session.next_turn()
    assert session.search("select:web.search")["not_found"] == ["web.search"]
