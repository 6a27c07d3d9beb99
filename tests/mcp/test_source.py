"""Which session a call takes, and what a caller is offered (RTE-2)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.config.http import HttpKey
from session_runtime.config.mcp import McpServer
from session_runtime.config.tools import AccessRule, AccessSettings
from session_runtime.errors import PermanentError, RequestError
from session_runtime.handler import HandlerContext
from session_runtime.mcp.base import Listing
from session_runtime.mcp.naming import Listed, name_tools
from session_runtime.mcp.session import Session, Wanted
from session_runtime.mcp.source import McpSource, open_sources
from session_runtime.registry.keyring import hash_of
from session_runtime.registry.policy import acting_for, compile_policy, routed_as
from session_runtime.registry.spec import Limits, ToolSpec
from session_runtime.trace_context import TraceContext
from session_runtime.types import LOCAL, Identity, Principal
from tests.mcp.links import FakeLink, Switchboard, definition, listing
from tests.registry.access import IDENTITIES, PRINCIPALS, RULES, owner_of

BOSS, STAFF = Identity("ann", frozenset({"boss"})), Identity("bob", frozenset({"staff"}))
CONTEXT = HandlerContext(idempotency_key="ask:call")


class Place:
    """Servers with fake connections, and the sources made of their lists."""

    def __init__(self) -> None:
        self.board = Switchboard()
        self.listed: list[Listed] = []
        self.sessions: dict[tuple[str, str], Session] = {}

    def add(self, name: str, lists: dict[str, Listing], **settings: Any) -> None:
        server = McpServer.model_validate({"command": "x", **settings})
        self.listed.append(Listed(name, server, lists))
        for credential, listed in lists.items():
            wanted = Wanted(name, credential, server, Path(), Path(), f"{name}/{credential}")
            self.board.answers[wanted.name] = listed
            self.sessions[name, credential] = Session(wanted, self.board, None, lambda: None)

    def sources(self) -> tuple[McpSource, ...]:
        return open_sources(self.listed, name_tools(self.listed, {}, {}).tools, self.sessions)

    def link(self, name: str) -> FakeLink:
        return self.board.last(name)


def spec_of(source: McpSource, name: str) -> ToolSpec:
    return next(spec for spec in source.specs if spec.name == name)


def reached(source: McpSource, name: str, identity: Identity) -> list[str]:
    """The sessions that a caller's calls may take, the best first."""
    return [route.reaches for route in source.routes(spec_of(source, name), identity)]


async def call(source: McpSource, name: str, identity: Identity = BOSS, at: int = 0) -> object:
    route = source.routes(spec_of(source, name), identity)[at]
    return await route.run({"q": 1}, CONTEXT)


@pytest.mark.requirement("RTE-2")
async def test_a_caller_has_the_session_of_the_first_credential_about_it_or_else_the_servers_own() -> (
    None
):
    place = Place()
    place.add(
        "a",
        {"": listing("x"), "boss": listing("x", "y"), "ops": listing("x", "z")},
        credentials={"boss": {"roles": ("boss",)}, "ops": {"channels": ("ops",)}},
    )
    (source,) = place.sources()
    both = Identity("ann", frozenset({"boss"}), "ops")
    assert reached(source, "a.x", BOSS) == ["a/boss"]
    assert reached(source, "a.x", STAFF) == ["a/"]
    assert reached(source, "a.x", both) == ["a/boss"]
    assert reached(source, "a.y", BOSS) == ["a/boss"]
    assert reached(source, "a.y", STAFF) == []
    assert reached(source, "a.z", both) == []
    assert await call(source, "a.x") == {"tool": "x", "arguments": {"q": 1}, "key": "ask:call"}


@pytest.mark.requirement("OPS-1b")
async def test_the_trace_that_a_call_is_part_of_is_given_to_its_session() -> None:
    place = Place()
    place.add("a", {"": listing("x")})
    (source,) = place.sources()
    trace = TraceContext(f"00-{'a' * 32}-{'b' * 16}-01")
    await source.routes(spec_of(source, "a.x"), STAFF)[0].run({}, replace(CONTEXT, trace=trace))
    assert place.link("a").trace == trace


@pytest.mark.requirement("RTE-2")
async def test_where_only_credentials_count_others_are_offered_nothing() -> None:
    place = Place()
    credentials = {"boss": {"roles": ("boss",)}}
    place.add("a", {"boss": listing("x")}, credentials=credentials, credentials_only=True)
    (source,) = place.sources()
    compiled = compile_policy(AccessSettings(), {}, source.specs, [source])
    assert reached(source, "a.x", STAFF) == []
    assert compiled.mask(STAFF) == 0
    assert (
        compiled.why(STAFF, "a.x") == "denied: mcp:a has no session for this caller that lists it"
    )
    assert compiled.mask(BOSS) == 1
    assert compiled.why(BOSS, "a.x") == "allowed by access.default"
    bot = Principal("bot", Identity("bot"), act_for=("ann",))
    assert compiled.permitted(bot, BOSS) == 0
    assert compiled.why(BOSS, "a.x", bot) == compiled.why(STAFF, "a.x")


@pytest.mark.requirement("RTE-3")
async def test_equal_servers_stand_in_for_each_other_in_the_order_of_their_priority() -> None:
    place = Place()
    place.add("second", {"": listing("x")}, group="db", max_concurrency=2, rate_per_minute=9)
    place.add("first", {"": listing("x")}, group="db", priority=1)
    (source,) = place.sources()
    best, other = source.routes(spec_of(source, "db.x"), BOSS)
    assert (best.id, other.id) == ("mcp:first", "mcp:second")
    assert best.limits == Limits(16, 0, 5, 30.0)
    assert other.limits == Limits(2, 9, 5, 30.0)
    assert best.obstacle() is None
    place.link("first").fails()
    assert best.obstacle() == "the server 'first' is temporarily unavailable"


@pytest.mark.requirement("RTE-6")
async def test_all_callers_of_a_server_share_what_it_bears_and_each_connection_has_its_own_failures() -> (
    None
):
    place = Place()
    credentials = {"boss": {"roles": ("boss",)}}
    place.add("a", {"": listing("x"), "boss": listing("x")}, credentials=credentials)
    (source,) = place.sources()
    own, boss = (source.routes(spec_of(source, "a.x"), each)[0] for each in (STAFF, BOSS))
    assert (own.id, boss.id) == ("mcp:a", "mcp:a")
    assert own.limits == boss.limits == Limits(16, 0, 5, 30.0)
    assert (own.reaches, boss.reaches) == ("a/", "a/boss")


async def test_the_runtime_fills_in_the_argument_by_which_a_server_knows_a_call_again() -> None:
    place = Place()
    keyed = {"type": "object", "properties": {"q": {}, "key": {}}}
    tools = {"x": {"idempotency_key": "key"}}
    place.add("a", {"": listing(definition("x", None, keyed))}, tools=tools)
    (source,) = place.sources()
    assert await call(source, "a.x") == {
        "tool": "x",
        "arguments": {"q": 1, "key": "ask:call"},
        "key": "ask:call",
    }


@pytest.mark.requirement("RTE-2")
@pytest.mark.parametrize(
    ("key", "stated", "session"),
    [
        ({}, Identity("ann", frozenset({"boss"})), "a/"),
        ({"roles": ("boss",)}, Identity("ann", frozenset({"boss"})), "a/boss"),
        ({"roles": ("boss",)}, Identity("ann"), "a/"),
        ({}, Identity("ann", channel="ops"), "a/"),
        ({"channel": "ops"}, Identity("ann", channel="ops"), "a/ops"),
        ({"channel": "web"}, Identity("ann", channel="ops"), "a/"),
        ({}, Identity("eve"), "a/eve"),
    ],
)
async def test_roles_and_channel_of_a_request_count_as_far_as_the_key_has_them_and_users_by_act_for(
    key: dict[str, Any], stated: Identity, session: str
) -> None:
    place = Place()
    about = {
        "boss": {"roles": ("boss",)},
        "ops": {"channels": ("ops",)},
        "eve": {"users": ("eve",)},
    }
    place.add("a", {name: listing("x") for name in ("", *about)}, credentials=about)
    (source,) = place.sources()
    principal = owner_of("bot", HttpKey(hash=hash_of("sr_test"), act_for=("*",), **key))
    assert reached(source, "a.x", routed_as(principal, acting_for(principal, stated))) == [session]


class Forgetful:
    """Does not know a tool the first time."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.calls = 0

    async def __call__(self, tool: str, arguments: object, key: str) -> object:
        self.calls += 1
        if self.calls == 1:
            raise PermanentError("there is no such tool", code=self.code)
        return f"{tool} now"


@pytest.mark.requirement("RTE-4")
@pytest.mark.parametrize(
    ("code", "then", "calls", "refreshes"),
    [
        ("mcp.tool_not_found", listing("x"), 2, 1),
        ("mcp.tool_not_found", listing(definition("x", "Said otherwise.")), 2, 1),
        ("mcp.tool_not_found", listing(definition("x", None, {"type": "object"})), 1, 1),
        ("mcp.tool_not_found", listing("y"), 1, 1),
        ("mcp.internal", listing("x"), 1, 0),
    ],
)
async def test_a_tool_that_its_server_does_not_know_is_called_again_if_it_lists_it_in_the_same_form(
    code: str, then: Listing, calls: int, refreshes: int
) -> None:
    place = Place()
    place.add("a", {"": listing("x")})
    (source,) = place.sources()
    link = place.link("a")
    link.answer, link.after_refresh = (answer := Forgetful(code)), then
    if calls == 2:
        assert await call(source, "a.x") == "x now"
    else:
        with pytest.raises(PermanentError) as caught:
            await call(source, "a.x")
        assert caught.value.code == code
    assert (answer.calls, link.refreshes) == (calls, refreshes)


CREDENTIALS = st.dictionaries(
    st.sampled_from(["one", "two"]),
    st.fixed_dictionaries(
        {
            "roles": st.sampled_from([(), ("admin",), ("guest",), ("admin", "guest")]),
            "users": st.sampled_from([(), (), ("al*",), ("eve",), ("bot",)]),
            "channels": st.sampled_from([(), (), ("web",), ("ops",)]),
        }
    ).filter(lambda each: any(each.values())),
    min_size=1,
)


def may_have(credential: dict[str, Any], principal: Principal, stated: Identity) -> bool:
    """Whether a credential is about a caller, by what the daemon knows of it and not by what it says."""
    own = principal.identity
    roles, channel = stated.roles or frozenset(), stated.channel
    if own is not None:
        roles &= own.roles or frozenset()
        channel = channel if channel == own.channel else None
    users = {"al*": "alice", "eve": "eve", "bot": "bot"}
    return (
        (not credential["roles"] or any(role in roles for role in credential["roles"]))
        and all(stated.user == users[user] for user in credential["users"])
        and all(channel == each for each in credential["channels"])
    )


@pytest.mark.requirement("RTE-2")
@pytest.mark.requirement("NET-2b")
@settings(max_examples=400)
@given(
    st.lists(RULES, max_size=1),
    st.sampled_from(["allow", "deny"]),
    CREDENTIALS,
    st.booleans(),
    PRINCIPALS | st.just(LOCAL),
    IDENTITIES,
)
async def test_nobody_sees_a_tool_or_reaches_a_session_that_no_rule_and_no_key_grants(
    rules: list[AccessRule],
    default: str,
    credentials: dict[str, Any],
    only: bool,
    principal: Principal,
    stated: Identity,
) -> None:
    place = Place()
    sessions = [*credentials] if only else ["", *credentials]
    lists = {name: listing("common", f"of_{name or 'all'}") for name in sessions}
    place.add("s", lists, credentials=credentials, credentials_only=only)
    (source,) = place.sources()
    access = {"default": default, "rules": {str(n): rule for n, rule in enumerate(rules)}}
    compiled = compile_policy(AccessSettings.model_validate(access), {}, source.specs, [source])
    without = compile_policy(AccessSettings.model_validate(access), {}, source.specs)
    try:
        identity = acting_for(principal, stated)
    except RequestError:
        return
    mask = compiled.permitted(principal, identity)
    assert mask & ~without.permitted(principal, identity) == 0
    allowed = {name for name, each in credentials.items() if may_have(each, principal, identity)}
    for position, spec in enumerate(source.specs):
        routes = source.routes(spec, routed_as(principal, identity))
        taken = {route.reaches.removeprefix("s/") for route in routes}
        assert taken <= (allowed or (set() if only else {""}))
        assert len(taken) <= 1
        if mask >> position & 1:
            assert taken
            assert spec.name in {"s.common", *(f"s.of_{name or 'all'}" for name in taken)}
