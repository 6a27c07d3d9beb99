"""What tools of servers are called, and what the operator says about them (RTE-3)."""

from collections.abc import Mapping
from typing import Any

import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.mcp.advice import advice
from session_runtime.mcp.base import Listing
from session_runtime.mcp.naming import Listed, Named, name_tools
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.spec import Annotations, Deprecated, ToolSpec
from tests.mcp.links import definition, listing

pytestmark = pytest.mark.requirement("RTE-3")


def server(name: str, *tools: Any, own: Listing | None = None, **settings: Any) -> Listed:
    settings = {"command": "x", **settings}
    return Listed(name, McpServer.model_validate(settings), {"": own or listing(*tools)})


def named(
    *servers: Listed,
    taken: Mapping[str, str] | None = None,
    known: Mapping[str, ToolSpec] | None = None,
) -> Named:
    return name_tools(servers, taken or {}, known or {})


def names(found: Named) -> dict[str, str]:
    """The servers' names of all tools by what they are called here."""
    return {
        tool.spec.name: f"{tool.spec.source_id} {tool.spec.native_name}"
        for tools in found.tools.values()
        for tool in tools
    }


def specs(found: Named) -> dict[str, ToolSpec]:
    return {tool.spec.name: tool.spec for tools in found.tools.values() for tool in tools}


def test_two_servers_with_a_tool_of_one_name_are_told_apart_by_their_own_names() -> None:
    found = named(server("oceanbase", "execute_sql"), server("clickhouse", "execute_sql"))
    assert names(found) == {
        "oceanbase.execute_sql": "mcp:oceanbase execute_sql",
        "clickhouse.execute_sql": "mcp:clickhouse execute_sql",
    }
    assert found.refused == ()


def test_dots_stay_and_what_breaks_names_is_replaced_while_the_server_hears_its_own_name() -> None:
    found = named(server("work", "calendar.respondToEvent", "two words", naming="bare"))
    assert names(found) == {
        "calendar.respondToEvent": "mcp:work calendar.respondToEvent",
        "two_words": "mcp:work two words",
    }


@pytest.mark.parametrize("other", ["two words", "two,words"])
def test_two_tools_of_a_server_whose_names_become_one_cost_the_one_that_is_spelt_worse(
    other: str,
) -> None:
    found = named(server("a", other, "two_words"))
    assert names(found) == {"a.two_words": "mcp:a two_words"}
    reason = f"its name {other!r} becomes that of the server's tool 'two_words'"
    assert found.refused == (Quarantined("a.two_words", "mcp.servers.a", reason),)


def test_a_bare_name_that_another_source_has_is_left_out_alone_with_the_way_out() -> None:
    found = named(server("a", "x", "y", naming="bare"), taken={"x": "handlers"})
    assert names(found) == {"y": "mcp:a y"}
    reason = (
        "tool 'x' of 'mcp:a' also exists in 'handlers': set mcp.servers.a.naming = \"prefix\" to call it"
        " a.x, or set mcp.servers.a.tools.x.enabled = false"
    )
    assert found.refused == (Quarantined("x", "mcp.servers.a", reason),)


def test_two_equal_bare_names_are_both_left_out_whoever_comes_first() -> None:
    servers = [server(name, "x", name, naming="bare") for name in "ab"]
    for order in (servers, servers[::-1]):
        found = named(*order)
        assert sorted(names(found)) == ["a", "b"]
        assert sorted((bad.name, bad.place) for bad in found.refused) == [
            ("x", "mcp.servers.a"),
            ("x", "mcp.servers.b"),
        ]


@pytest.mark.parametrize(
    ("other", "taken", "called"),
    [
        ([], {}, ["x"]),
        ([], {"x": "handlers"}, ["a.x"]),
        ([server("b", "x", naming="auto")], {}, ["a.x", "b.x"]),
        ([server("b", "x", naming="bare")], {}, ["a.x", "x"]),
        ([server("b", "x")], {}, ["b.x", "x"]),
    ],
)
def test_an_automatic_name_gets_the_server_in_front_only_where_another_source_has_it_too(
    other: list[Listed], taken: dict[str, str], called: list[str]
) -> None:
    assert sorted(names(named(server("a", "x", naming="auto"), *other, taken=taken))) == called


def test_a_name_with_its_server_in_front_that_a_handler_has_is_left_out() -> None:
    found = named(server("github", "search", "get"), taken={"github.search": "handlers"})
    assert names(found) == {"github.get": "mcp:github get"}
    assert [bad.name for bad in found.refused] == ["github.search"]
    assert "also exists in 'handlers'" in found.refused[0].reason


@pytest.mark.parametrize("name", ["tool_search", "end", "results.read"])
def test_no_server_takes_the_name_of_what_the_runtime_itself_means_something_by(name: str) -> None:
    found = named(server("a", name, naming="bare"))
    assert names(found) == {}
    assert "also exists in 'the runtime'" in found.refused[0].reason


def test_a_group_has_one_tool_of_each_name_and_its_best_server_describes_it() -> None:
    found = named(
        server("backup", definition("x", "Older words."), "y", group="db"),
        server("main", definition("x", "Newer words."), group="db", priority=5),
    )
    assert names(found) == {"db.x": "mcp:group:db x", "db.y": "mcp:group:db y"}
    (x, y) = found.tools["mcp:group:db"]
    assert x.spec.description == "Newer words."
    assert [way.server for way in x.ways] == ["main", "backup"]
    assert [way.server for way in y.ways] == ["backup"]


def test_a_server_of_a_group_whose_tool_takes_something_else_does_not_stand_in_for_the_others() -> (
    None
):
    other = {"type": "object", "properties": {"q": {"type": "string"}}}
    found = named(
        server("one", "x", group="db"), server("two", definition("x", None, other), group="db")
    )
    (x,) = found.tools["mcp:group:db"]
    assert [way.server for way in x.ways] == ["one"]
    assert [(bad.name, bad.place) for bad in found.refused] == [("db.x", "mcp.servers.two")]
    assert "with other parameters" in found.refused[0].reason


@pytest.mark.requirement("RTE-2")
def test_what_one_credential_is_told_of_a_tool_is_not_shown_to_others() -> None:
    settings = {"command": "x", "credentials": {"boss": {"roles": ("boss",)}}}
    lists = {"": listing("x"), "boss": listing(definition("x", "Account of Ms Boss."), "y")}
    found = named(Listed("a", McpServer.model_validate(settings), lists))
    (x, y) = found.tools["mcp:a"]
    assert (x.spec.description, [way.credential for way in x.ways]) == ("Does x.", [""])
    assert [way.credential for way in y.ways] == ["boss"]
    assert [bad.place for bad in found.refused] == ["mcp.servers.a.credentials.boss"]
    assert "mcp.servers.a.tools.x" in found.refused[0].reason
    settings["tools"] = {"x": {"description": "Looks at an account."}}
    found = named(Listed("a", McpServer.model_validate(settings), lists))
    assert [way.credential for way in found.tools["mcp:a"][0].ways] == ["", "boss"]


WORDS = {
    "description": "Ours.",
    "aliases": ("find",),
    "search_hints": ("seek",),
    "examples": ("find it",),
    "requires": ("staff",),
    "feature": "beta",
    "read_only": True,
    "idempotent": True,
    "idempotency_key": "key",
    "idle_timeout_s": 2.0,
    "hard_timeout_s": 9.0,
    "max_result_chars": 500,
    "deprecated": "It is old.",
    "replacement": "a.y",
}
KEYED = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "key": {"type": "string"}},
    "required": ["q", "key"],
}


def test_what_the_operator_says_about_a_tool_stands_above_what_its_server_says() -> None:
    found = named(
        server("a", definition("x", "Theirs.", KEYED), hard_timeout_s=99.0, tools={"x": WORDS})
    )
    spec = specs(found)["a.x"]
    assert (spec.description, spec.aliases, spec.search_hints) == ("Ours.", ("find",), ("seek",))
    assert (spec.examples, spec.requires, spec.feature) == (("find it",), {"staff"}, "beta")
    assert spec.annotations == Annotations(read_only=True, idempotent=True)
    assert (spec.timeout_s, spec.idle_timeout_s, spec.max_result_chars) == (9.0, 2.0, 500)
    assert spec.deprecated == Deprecated("It is old.", "a.y")
    assert (spec.origin, spec.place, spec.keyed) == ("mcp", "mcp.servers.a", True)
    assert spec.parameters == {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
    }
    assert found.tools["mcp:a"][0].ways[0].key_argument == "key"


@pytest.mark.requirement("RTE-9c")
def test_a_tool_is_as_its_server_says_where_the_operator_says_nothing() -> None:
    spec = specs(named(server("a", definition("x", "Theirs.", KEYED), idle_timeout_s=7.0)))["a.x"]
    assert (spec.description, spec.parameters, spec.keyed) == ("Theirs.", KEYED, False)
    assert (spec.timeout_s, spec.idle_timeout_s, spec.max_result_chars) == (600.0, 7.0, None)
    assert spec.annotations == Annotations()


@pytest.mark.requirement("RTE-9c")
@pytest.mark.parametrize(
    ("theirs", "ours", "destructive"),
    [(True, None, True), (True, False, True), (False, True, True), (False, None, False)],
)
def test_neither_server_nor_operator_makes_a_tool_harmless_that_the_other_calls_destructive(
    theirs: bool, ours: bool | None, destructive: bool
) -> None:
    tool = definition("x", destructive=theirs)
    spec = specs(named(server("a", tool, tools={"x": {"destructive": ours}})))["a.x"]
    assert spec.annotations.destructive is destructive


@pytest.mark.requirement("RTE-8")
def test_a_tool_of_a_group_may_be_called_again_only_if_each_of_its_servers_is_said_to_allow_it() -> (
    None
):
    said = {"x": {"idempotent": True}}
    one, two = server("one", "x", group="g", tools=said), server("two", "x", group="g")
    both = server("two", "x", group="g", tools=said)
    assert specs(named(one, two))["g.x"].repeatable is False
    assert specs(named(one, both))["g.x"].repeatable is True


@pytest.mark.requirement("RTE-8")
def test_a_call_may_be_made_again_at_another_server_only_if_each_knows_it_by_its_key() -> None:
    said = {"x": {"idempotency_key": "key"}}
    tool = definition("x", None, KEYED)
    one, two = server("one", tool, group="g", tools=said), server("two", tool, group="g")
    both = server("two", tool, group="g", tools=said)
    assert specs(named(one, two))["g.x"].keyed is False
    assert specs(named(one, both))["g.x"].keyed is True


@pytest.mark.parametrize("priority", [-1, 1])
def test_a_tool_of_a_group_needs_all_that_is_required_at_any_of_its_servers(priority: int) -> None:
    found = named(
        server("one", "x", group="g", tools={"x": {"requires": ("staff",), "feature": "beta"}}),
        server("two", "x", group="g", priority=priority, tools={"x": {"requires": ("db",)}}),
    )
    spec = specs(found)["g.x"]
    assert (spec.requires, spec.feature) == ({"staff", "db"}, "beta")
    assert len(found.tools["mcp:group:g"][0].ways) == 2


def test_a_server_of_a_group_whose_tool_has_another_switch_does_not_stand_in_for_the_others() -> (
    None
):
    switches = ("beta", None, "gamma", "beta")
    found = named(
        *(
            server(f"s{number}", "x", group="g", tools={"x": {"feature": switch}})
            for number, switch in enumerate(switches)
        )
    )
    (x,) = found.tools["mcp:group:g"]
    assert (x.spec.feature, [way.server for way in x.ways]) == ("beta", ["s0", "s1", "s3"])
    (refused,) = found.refused
    assert (refused.name, refused.place) == ("g.x", "mcp.servers.s2")
    assert "server 's0' has it with the feature 'beta' instead of 'gamma'" in refused.reason
    assert "set mcp.servers.s2.tools.x.feature" in refused.reason


def test_a_switch_that_only_a_later_server_sets_is_that_of_all_and_no_other_one_joins() -> None:
    switches = (None, "beta", "gamma")
    found = named(
        *(
            server(f"s{number}", "x", group="g", tools={"x": {"feature": switch}})
            for number, switch in enumerate(switches)
        )
    )
    (x,) = found.tools["mcp:group:g"]
    assert (x.spec.feature, [way.server for way in x.ways]) == ("beta", ["s0", "s1"])


def test_a_tool_that_is_switched_off_is_gone_without_a_word() -> None:
    found = named(server("a", "x", "y", tools={"x": {"enabled": False}}))
    assert (list(names(found)), found.refused) == (["a.y"], ())


def test_a_tool_that_stays_the_same_is_the_same_object_and_a_changed_one_is_not() -> None:
    before = specs(named(server("a", "x", "y"), server("b", "z")))
    after = specs(named(server("a", "x", definition("y", "New.")), server("b", "z"), known=before))
    assert after["a.x"] is before["a.x"]
    assert after["b.z"] is before["b.z"]
    assert after["a.y"] is not before["a.y"]
    slower = specs(named(server("a", "x", hard_timeout_s=900.0), known=before))
    assert slower["a.x"] is not before["a.x"]
    assert slower["a.x"].digest == before["a.x"].digest


@pytest.mark.requirement("RTE-5")
def test_what_a_server_lists_badly_is_left_out_under_its_name_here() -> None:
    bad = Quarantined("no way", "a", "its schema is null")
    found = named(server("a", own=listing("x", refused=(bad,))))
    assert found.refused == (Quarantined("a.no_way", "mcp.servers.a", "its schema is null"),)


@pytest.mark.requirement("RTE-5")
def test_tools_without_a_description_are_kept_and_told_of() -> None:
    bare = [definition(name, "") for name in "rstuvw"]
    listed = server("a", *bare, tools={"r": {"description": "Ours."}})
    assert len(names(named(listed))) == 6
    assert tuple(advice(listed)) == (
        "mcp.servers.a: tools without a description are hardly found: 's', 't', 'u', 'v', 'w'; give them"
        " one under mcp.servers.a.tools",
    )


def test_words_about_a_tool_or_an_argument_that_is_not_there_are_told_of() -> None:
    words = {"search_cod": {"aliases": ("q",)}, "x": {"idempotency_key": "key"}}
    listed = server("a", "search_code", "x", tools=words)
    assert tuple(advice(listed)) == (
        "mcp.servers.a.tools.search_cod: the server lists no tool of that name; did you mean"
        " 'search_code'?",
        "mcp.servers.a.tools.x.idempotency_key: the tool has no argument 'key'",
    )
    assert specs(named(listed))["a.x"].keyed is False
