"""Exact names: what a query may call a tool, and what it gets."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import FieldWeights, build_index, resolve_names
from tests.search.catalogues import (
    MUSIC,
    builds_indexes,
    catalogues,
    index_of,
    ranked,
    result,
    session_of,
    tool,
    view_of,
)


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    "query",
    [
        "select:group.get_member_info",
        "SELECT: Group.Get_Member_Info ",
        "select:group__get_member_info",
        "select:'group.get_member_info'.",
        'select:"group.get_member_info"',
        "select:`group.get_member_info`",
        "group.get_member_info",
        "GROUP.GET_MEMBER_INFO",
        "group__get_member_info",
        "`group.get_member_info`.",
        '"group.get_member_info"',
    ],
)
def test_a_name_in_full_loads_that_tool_alone(query: str) -> None:
    assert session_of(*MUSIC).search(query) == result(["group.get_member_info"], total=7)


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    "around", ["{}", "select:{}", "(select:{})", "`{}`", "{}.", "select:'{}'."]
)
@pytest.mark.parametrize("name", ["feeds.Delete Feed(s)", "feeds.List [all]", "a<b>"])
def test_a_bracket_that_ends_a_name_belongs_to_it(around: str, name: str) -> None:
    assert [name] == ranked(view_of(tool(name), *MUSIC), around.format(name))


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    "query",
    [
        "get_member_info",
        "getMemberInfo",
        "get-member-info",
        "GetMemberInfo please",
        "get member info",
        "getmemberinfo",
        "groupGetMemberInfo",
        "use group.get_member_info for this",
    ],
)
def test_another_form_of_a_name_comes_first(query: str) -> None:
    assert ranked(view_of(*MUSIC), query)[0] == "group.get_member_info"


@pytest.mark.requirement("TS-8")
def test_a_form_that_names_several_tools_puts_all_of_them_first() -> None:
    view = view_of(
        tool("b.search", "x"),
        tool("a.search", "x"),
        tool("search_engine", "search search search"),
    )
    assert ranked(view, "search") == ["a.search", "b.search", "search_engine"]


@pytest.mark.requirement("TS-8")
def test_of_several_tools_that_a_word_names_the_one_that_fits_the_others_too_comes_first() -> None:
    others = (tool(f"o.{word}") for word in ("lorry", "ferry", "wagon"))
    view = view_of(tool("a.get_user"), tool("z.get_user", "of a sled"), *others)
    found = view.explain("get_user sled lorry ferry wagon", 2)
    assert [item["name"] for item in found] == ["z.get_user", "a.get_user"]
    for item in found:
        parts = item["parts"]
        assert isinstance(parts, list)
        assert sum(part["score"] for part in parts) == pytest.approx(item["score"])


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    "query",
    [
        "redis.list,",
        "#redis.list",
        "**redis.list**",
        "redis.list?",
        "use redis.list for it",
        "functions.redis.list?",
    ],
)
def test_a_name_in_full_within_a_text_goes_before_other_forms_of_it(query: str) -> None:
    view = view_of(tool("redis_list"), tool("list_redis"), tool("redis.list"))
    assert ranked(view, query)[0] == "redis.list"


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize("query", ["{}", "select:{}", "select:end,{}", "call {} now", "{}, end"])
@pytest.mark.parametrize(
    "before", ["functions.", "function:", "default_api.", "default_api:", "tools/", "mcp__"]
)
def test_what_models_write_before_a_name_they_call_is_passed_over(query: str, before: str) -> None:
    found = ranked(view_of(*MUSIC), query.format(f"{before}music.search_songs"))
    assert "music.search_songs" in found[:2]
    assert found[0] in ("music.search_songs", "end")


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize("query", ["functions.tool_search", "select:functions.tool_search, end"])
def test_the_search_itself_is_known_by_what_models_write_before_it(query: str) -> None:
    found = session_of(*MUSIC).search(query)
    assert (found["already_loaded"], found["not_found"]) == (["tool_search"], [])


@pytest.mark.requirement("TS-7")
def test_a_name_that_begins_as_a_call_does_is_that_name() -> None:
    view = view_of(tool("functions.list"), tool("list"), tool("other"))
    assert ranked(view, "select:functions.list") == ["functions.list"]
    assert session_of(tool("list")).search("select:nope.list")["not_found"] == ["nope.list"]


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize("quotes", ["''", '""', "``", "“”", "「」"])
def test_a_name_with_blanks_is_known_by_the_quotes_around_it_in_a_phrase(quotes: str) -> None:
    view = view_of(tool("aws.Repository Indexing", "x"), tool("a.repository", "index aws tool"))
    query = f"the tool {quotes[0]}aws.Repository Indexing{quotes[1]}"
    for text in (query, f"{query} please", f"please: {query}."):
        assert ranked(view, text)[0] == "aws.Repository Indexing"


@pytest.mark.requirement("TS-7")
def test_a_semicolon_parts_names_as_a_comma_does_but_ends_no_escaped_letter() -> None:
    view = view_of(tool("r&d.list"), tool("end"), tool("calculator"))
    assert ranked(view, "select:end;calculator") == ["end", "calculator"]
    assert ranked(view, "end; calculator") == ["end", "calculator"]
    assert ranked(view, "select:r&amp;d.list;end") == ["r&d.list", "end"]


@pytest.mark.requirement("TS-7")
def test_an_alias_names_its_tool() -> None:
    session = session_of(*MUSIC, tool("clock.now", aliases=("Get-Time", "what time")))
    assert session.search("get-time") == result(["clock.now"], total=8)
    assert session.search("select:what time") == result(already=["clock.now"], total=8)


@pytest.mark.requirement("TS-7")
def test_exact_spelling_goes_before_any_case_and_that_before_wire_names_and_aliases() -> None:
    view = view_of(tool("Foo"), tool("foo"), tool("bar", aliases=("foo", "baz")), tool("b.az"))
    assert ranked(view, "select:foo") == ["foo"]
    assert ranked(view, "select:Foo") == ["Foo"]
    assert ranked(view, "select:FOO") == ["Foo", "foo"]
    assert ranked(view, "select:baz") == ["bar"]


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    "query",
    [
        "music.search_songs group.get_member_info end",
        "music.search_songs, group.get_member_info, end",
        "music__search_songs\ngroup.get_member_info 'end'",
    ],
)
def test_a_bare_list_of_names_loads_every_one(query: str) -> None:
    expected = ["music.search_songs", "group.get_member_info", "end"]
    assert session_of(*MUSIC).search(query) == result(expected, total=7)


@pytest.mark.requirement("TS-7")
@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("query", ["web search", "Search web", "find web search"])
def test_plain_words_that_happen_to_be_names_are_keywords(query: str) -> None:
    view = view_of(tool("web"), tool("search"), tool("end"), tool("x.web_search"))
    assert ranked(view, query)[0] == "x.web_search"
    assert {"web", "search"} < set(ranked(view, query))


@pytest.mark.requirement("TS-8")
def test_words_that_join_to_a_form_of_a_name_are_that_form_though_each_is_a_name() -> None:
    view = view_of(tool("list_all"), tool("users"), tool("db.listAllUsers"))
    assert ranked(view, "list_all users")[0] == "db.listAllUsers"
    assert ranked(view, "list_all, users") == ["list_all", "users"]


@pytest.mark.requirement("TS-7")
def test_plain_names_are_a_list_where_commas_part_them_or_another_is_no_plain_word() -> None:
    view = view_of(tool("web"), tool("search"), tool("web_search"))
    assert ranked(view, "web, search") == ["web", "search"]
    assert ranked(view, "search web_search") == ["search", "web_search"]
    index = index_of((tool("web"), tool("mcp:look"), tool("websearch")))
    assert ranked(index.view(0b011), "mcp:look web") == ["mcp:look", "web"]


@pytest.mark.requirement("TS-7")
def test_of_an_endless_list_the_first_names_are_loaded_and_the_rest_is_told_as_truncated() -> None:
    endless = ["end", *(f"nope{n}" for n in range(5_000)), "web.search"]
    for query in ("select:" + ",".join(endless), "select:" + " ,".join(endless)):
        found = session_of(*MUSIC).search(query)
        assert (found["loaded"], found["truncated"]) == (["end"], True)
        assert found["not_found"] == endless[1:400]


@pytest.mark.requirement("TS-7")
def test_a_name_is_known_by_decomposed_and_by_escaped_letters() -> None:
    specs = (tool("각각각", "of syllables"), tool("a&b<c>", "of escapes"))
    apart = unicodedata.normalize("NFD", "각각각")
    assert ranked(view_of(*specs), f"select:{apart}") == ["각각각"]
    assert ranked(view_of(*specs), "select:a&amp;b&lt;c&gt;") == ["a&b<c>"]


@pytest.mark.requirement("TS-9")
def test_a_bare_list_may_name_the_search_itself() -> None:
    found = session_of(*MUSIC).search("web.search, tool_search")
    assert found == result(["web.search"], already=["tool_search"], total=7)


@pytest.mark.requirement("TS-7")
def test_among_a_thousand_tools_no_listed_name_is_lost_to_ranking() -> None:
    specs = [tool(f"server_{n % 20}.do_thing_{n}", "does the thing") for n in range(1000)]
    names = [spec.name for spec in specs[::167]]
    assert session_of(*specs, max_results=6).search(" ".join(names)) == result(names, total=1000)
    cut = session_of(*specs, max_results=4).search(", ".join(names))
    assert cut == result(names[:4], truncated=True, total=1000)


@pytest.mark.requirement("TS-8")
def test_the_last_segment_finds_its_tool_where_many_share_the_beginning() -> None:
    specs = [tool(f"mcp__plugin_tools__ask_{n}", "asks another model") for n in range(50)]
    view = view_of(*specs, tool("mcp__plugin_tools__ask_codex", "asks another model"))
    assert ranked(view, "ask_codex")[0] == "mcp__plugin_tools__ask_codex"


@pytest.mark.requirement("TS-7")
def test_missing_names_come_back_in_the_spelling_of_the_caller_and_once() -> None:
    found = session_of(*MUSIC).search("select:Nope, 'end', nope, No.Such-Tool")
    assert found == result(["end"], not_found=["Nope", "No.Such-Tool"], total=7)


@pytest.mark.requirement("TS-7")
def test_a_name_with_blanks_or_commas_can_be_selected() -> None:
    odd = tool("azure.List, show and query databases")
    assert ranked(view_of(odd, *MUSIC), f"select:{odd.name}") == [odd.name]
    assert ranked(view_of(odd, *MUSIC), "select: end web.search") == ["end", "web.search"]


@pytest.mark.requirement("TS-4")
def test_a_name_can_be_selected_as_the_directory_shows_it() -> None:
    session = session_of(tool("r&d.list"), tool("x" * 200), base=[])
    shown = session.directory.split("\n")[1:-1]
    found = session.search("select:" + ",".join(shown))
    assert sorted(found["loaded"]) == sorted(session.deferred)


@pytest.mark.requirement("TS-7")
@builds_indexes
@given(catalogues(), st.sampled_from(["__", "-"]))
def test_every_tool_is_found_by_name_and_by_wire_name(
    specs: tuple[ToolSpec, ...], separator: str
) -> None:
    names = build_wire_names([spec.name for spec in specs], separator)
    index = build_index(specs, names, FieldWeights())
    for spec in specs:
        assert index.rank(f"select:{spec.name}", 1)[0][0] == spec.name
        by_wire = [name for name, _ in index.rank(f"select:{names.encode(spec.name)}", 99)]
        assert spec.name in by_wire


@pytest.mark.requirement("TS-3")
def test_configured_names_resolve_in_order_and_missing_ones_are_told() -> None:
    names = ["END", "web.search", "end", "sned_message", "edn", "edn"]
    found = ("end", "web.search"), ("sned_message", "edn")
    assert resolve_names(view_of(*MUSIC), names) == found


@pytest.mark.requirement("TS-3")
def test_looking_for_configured_names_ranks_nothing_even_if_one_is_missing() -> None:
    index = index_of([tool(f"group.number_{number}") for number in range(3_000)])
    view = index.view(index.full_mask - 1)
    resolve_names(view, ["group.number_1", "nobody.has_it"])
    assert view.slow


@pytest.mark.requirement("TS-3")
def test_a_configured_name_is_not_an_alias_or_wire_name() -> None:
    view = view_of(*MUSIC, tool("clock.now", aliases=("time",)))
    resolved, missing = resolve_names(view, ["time", "clock__now"])
    assert (resolved, missing) == ((), ("time", "clock__now"))


@pytest.mark.requirement("TS-2")
@builds_indexes
@given(catalogues())
def test_indexing_a_catalogue_again_with_nothing_changed_reuses_what_it_knew(
    specs: tuple[ToolSpec, ...],
) -> None:
    first = index_of(specs)
    names = build_wire_names([spec.name for spec in specs], "__")
    again = build_index(specs, names, FieldWeights(), previous=first)
    assert again.names == first.names
    assert again.rank("member info", 5) == first.rank("member info", 5)


@pytest.mark.requirement("TS-9")
@pytest.mark.parametrize("alias", ["tool_search", "Tool_Search", "ｔｏｏｌ_search"])
@pytest.mark.parametrize("query", ["tool_search", "select:tool_search", "select:'Tool_Search'."])
def test_no_alias_takes_the_name_of_the_search_itself(alias: str, query: str) -> None:
    found = session_of(tool("clock.now", aliases=(alias,))).search(query)
    assert found == result(already=["tool_search"], total=1)


@pytest.mark.requirement("TS-9")
def test_a_name_that_only_folds_to_that_of_the_search_does_not_take_it() -> None:
    session = session_of(tool("ｔｏｏｌ_search"))
    assert session.search("tool_search") == result(already=["tool_search"], total=1)
    assert session.search("select:ｔｏｏｌ_search") == result(["ｔｏｏｌ_search"], total=1)


def test_what_is_hidden_does_not_decide_how_long_a_spelling_may_be() -> None:
    spelling = "ab&#x000000000000000000000000000000002e;c"
    few = index_of([tool("ab.c"), tool("zz")])
    more = index_of([tool("ab.c"), tool("zz"), tool("n" * 80)])
    visible = more.view(more.mask(["ab.c", "zz"]))
    told = [view.resolve(spelling) for view in (few.own_view(), visible)]
    assert [len(found) for found in told] == [1, 1]
