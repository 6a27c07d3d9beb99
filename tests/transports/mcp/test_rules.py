"""A client sees and calls what an ask of the same caller would, and never anything else."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime import Runtime
from session_runtime.registry.keyring import hash_of
from session_runtime.types import AskRequest, Identity, Principal, TurnStarted
from tests.support import ECHO, ask, says, scripted, write_agent
from tests.transports.mcp.served import (
    HANDSHAKE,
    NAMES,
    ON,
    SEARCHING,
    STATELESS,
    Served,
    listed,
    serving,
    text_of,
    tools,
)
from tests.transports.stub import bearer, key_of

RECORD = "def execute(args, context):\n    context.resources['ran'].append('NAME')\n"
PATTERNS = ("*", "mail.*", "*.list", "clock.now", "music.play")
SOME_PATTERNS = st.sets(st.sampled_from(PATTERNS), max_size=2).map(sorted)
ROLES = st.sampled_from(([], ["staff"], ["guest"], ["staff", "guest"]))
RULE = st.fixed_dictionaries(
    {"allow": SOME_PATTERNS, "deny": SOME_PATTERNS},
    optional={
        "roles": st.sampled_from((["staff"], ["guest"])),
        "users": st.sampled_from((["bot"], ["b*"], ["ann"])),
        "channels": st.sampled_from((["web"], ["chat"])),
    },
).filter(lambda rule: rule["allow"] or rule["deny"])
KEY = st.fixed_dictionaries({"roles": ROLES}, optional={"channel": st.just("web")})


def table(name: str, values: dict[str, object]) -> str:
    return "\n".join([f"[{name}]", *(f"{key} = {value!r}" for key, value in values.items()), ""])


def config_of(
    default: str, rules: Iterable[dict[str, object]], key: dict[str, object], searching: bool
) -> str:
    parts = [ON, SEARCHING if searching else "[skills]\nprefetch_tools = []\n"]
    parts += [table("http.keys.bot", {"hash": hash_of(key_of("bot")), **key})]
    parts += [table("access", {"default": default})]
    parts += [table(f"access.rules.r{number}", rule) for number, rule in enumerate(rules)]
    return "".join(parts)


def bot(runtime: Runtime) -> Principal:
    [(_, principal)] = runtime.keys().owners
    return principal


async def exposed_in_an_ask(runtime: Runtime) -> tuple[str, ...]:
    asked = await ask(runtime, AskRequest("go", principal=bot(runtime)))
    return tuple(asked.of(TurnStarted)[0].exposed)


async def check_client(served: Served, ran: list[str]) -> None:
    """Compare lists, then call every tool there is."""
    permitted = {tool["name"] for tool in served.runtime.tools(Identity(), bot(served.runtime))}
    async with served.client(HANDSHAKE, bearer("bot")) as client:
        assert tuple(await listed(client)) == await exposed_in_an_ask(served.runtime)
        now = set(await listed(client))
        for name in NAMES:
            await client.call_tool(name, {})
        assert set(ran) == now - {"tool_search"}
    ran.clear()
    async with served.client(STATELESS, bearer("bot")) as client:
        assert set(await listed(client)) == permitted
        for name in NAMES:
            await client.call_tool(name, {})
        assert set(ran) == permitted


@pytest.mark.requirement("NET-1d")
@pytest.mark.requirement("NET-2b")
@given(
    default=st.sampled_from(("allow", "deny")),
    rules=st.lists(RULE, max_size=3),
    key=KEY,
    searching=st.booleans(),
)
@settings(max_examples=10)
async def test_a_client_sees_what_an_ask_of_its_principal_sees(
    default: str, rules: list[dict[str, object]], key: dict[str, object], searching: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        handlers = tools(folder)
        for tool in NAMES:
            path = folder.joinpath("tools", *tool.split("."), "handler.py")
            path.write_text(RECORD.replace("NAME", tool), "utf-8")
        config = handlers + config_of(default, rules, key, searching)
        ran: list[str] = []
        config += scripted(folder, says("hi"))
        async with serving(folder, config, resources={"ran": ran}) as served:
            await check_client(served, ran)


@pytest.mark.requirement("NET-2b")
async def test_a_client_without_a_key_gets_nothing(tmp_path: Path) -> None:
    config = tools(tmp_path) + config_of("allow", [], {"roles": []}, False)
    async with serving(tmp_path, config) as served, served.bare() as client:
        for headers in ({}, {"authorization": "Bearer sr_wrong"}):
            answer = await client.post("/mcp", json={}, headers=headers)
            assert answer.status_code == 401


@pytest.mark.requirement("NET-2a")
async def test_a_page_from_elsewhere_is_not_served(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare() as client:
        strangers: list[dict[str, str]] = [
            {"origin": "https://evil.example"},
            {"host": "evil.example"},
            {"x-forwarded-for": "10.0.0.1"},
        ]
        codes = [
            (await client.post("/mcp", json={}, headers=each)).json()["error"]["code"]
            for each in strangers
        ]
    assert codes == ["request.origin", "request.host", "request.forwarded"]


@pytest.mark.requirement("REL-9")
async def test_a_revoked_tool_is_neither_listed_nor_called(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.client() as client:
        assert "mail.send" in await listed(client)
        await served.runtime.brake.revoke("mail.*", "", "operator")
        assert await listed(client) == ["clock.now", "music.play"]
        assert (await client.call_tool("mail.send", {})).is_error


@pytest.mark.requirement("NET-1d")
async def test_the_server_is_off_unless_it_is_wanted(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path)) as served, served.bare() as client:
        answer: httpx2.Response = await client.post("/mcp", json={})
    assert answer.status_code == 404
    assert "http.mcp = true" in answer.json()["error"]["message"]


@pytest.mark.requirement("ASK-11")
async def test_no_client_sees_a_sub_agent_or_its_tools(tmp_path: Path) -> None:
    config = tools(tmp_path, "shared") + ON
    write_agent(tmp_path / "tools", "writer", tools={"draft": ECHO})
    async with serving(tmp_path, config) as served, served.client() as client:
        assert await listed(client) == ["shared"]
        result = await client.call_tool("writer", {"task": "x"})
    assert "no tool named 'writer'" in text_of(result)
