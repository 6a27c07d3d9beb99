"""How many sessions there may be, whose they are and when they end."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime.registry.keyring import hash_of
from session_runtime.transports.mcp.endpoint import SessionLimits
from tests.support import HANGS, write_config
from tests.transports.mcp.served import HANGS_S, ON, STATELESS, Served, serving, tools
from tests.transports.stub import bearer, key_of

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
STARTS_AND_HANGS = HANGS.replace("    try:", "    context.resources['started'].set()\n    try:")


def key_entry(name: str, key: str | None = None) -> str:
    """The entry of a key; another ``key`` under the same name replaces the one of the tests."""
    return f'[http.keys.{name}]\nhash = "{hash_of(key or key_of(name))}"\n'


TWO_KEYS = key_entry("ann") + key_entry("bob")


async def begin(client: httpx2.AsyncClient, headers: Mapping[str, str] | None = None) -> str:
    """Open a session and give its id."""
    answer = await client.post("/mcp", json=HELLO, headers=headers)
    assert answer.status_code == 200, answer.text
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    session = str(answer.headers["mcp-session-id"])
    await client.post("/mcp", json=ready, headers={**(headers or {}), "mcp-session-id": session})
    return session


async def status(
    client: httpx2.AsyncClient, session: str, headers: Mapping[str, str] | None = None
) -> int:
    """The status of a listing in a session."""
    both = {**(headers or {}), "mcp-session-id": session}
    return (await client.post("/mcp", json=LIST, headers=both)).status_code


async def until_gone(served: Served, clients: int) -> None:
    """Wait until no more than so many clients are counted."""
    line = f"session_runtime_mcp_clients {clients}\n"
    async with asyncio.timeout(HANGS_S):
        while True:
            if line in served.runtime.metrics():
                return
            await asyncio.sleep(0.001)


@pytest.mark.requirement("NET-1d")
async def test_a_session_is_for_the_principal_that_opened_it(tmp_path: Path) -> None:
    ann, bob = bearer("ann"), bearer("bob")
    async with (
        serving(tmp_path, tools(tmp_path) + ON + TWO_KEYS) as served,
        served.bare() as client,
    ):
        session = await begin(client, ann)
        assert await status(client, session, ann) == 200
        assert await status(client, session, bob) == 404
        headers = {**bob, "mcp-session-id": session}
        assert (await client.delete("/mcp", headers=headers)).status_code == 404
        assert (await client.get("/mcp", headers=headers)).status_code == 404
        assert await status(client, session, ann) == 200
        assert await status(client, "f" * 32, ann) == 404


@pytest.mark.requirement("NET-5a")
async def test_who_opens_session_after_session_loses_its_own_longest_idle_one(
    tmp_path: Path,
) -> None:
    limits = SessionLimits(most=10, most_per_principal=2)
    ann, bob = bearer("ann"), bearer("bob")
    async with (
        serving(tmp_path, tools(tmp_path) + ON + TWO_KEYS, limits=limits) as served,
        served.bare() as client,
    ):
        of_bob = await begin(client, bob)
        first, second = await begin(client, ann), await begin(client, ann)
        assert await status(client, first, ann) == 200
        third = await begin(client, ann)
        assert [await status(client, each, ann) for each in (first, second, third)] == [
            200,
            404,
            200,
        ]
        assert await status(client, of_bob, bob) == 200


@pytest.mark.requirement("NET-5a")
async def test_sessions_in_use_are_not_ended_for_another(tmp_path: Path) -> None:
    limits = SessionLimits(most=10, most_per_principal=1)
    async with (
        serving(tmp_path, tools(tmp_path) + ON, limits=limits) as served,
        served.bare() as client,
    ):
        session = await begin(client)
        async with client.stream("GET", "/mcp", headers={"mcp-session-id": session}) as stream:
            assert stream.status_code == 200
            answer = await client.post("/mcp", json=HELLO)
            assert answer.status_code == 503
        assert await status(client, session) == 200


@pytest.mark.requirement("NET-5a")
async def test_there_are_only_so_many_sessions_in_all(tmp_path: Path) -> None:
    limits = SessionLimits(most=1)
    async with (
        serving(tmp_path, tools(tmp_path) + ON, limits=limits) as served,
        served.bare() as client,
    ):
        session = await begin(client)
        assert (await client.post("/mcp", json=HELLO)).status_code == 503
        ended = await client.delete("/mcp", headers={"mcp-session-id": session})
        assert ended.status_code == 200
        assert await status(client, session) == 404
        await begin(client)


async def test_sessions_that_begin_at_the_same_time_are_all_counted(tmp_path: Path) -> None:
    limits = SessionLimits(most=3)
    async with (
        serving(tmp_path, tools(tmp_path) + ON, limits=limits) as served,
        served.bare() as client,
    ):
        answers = await asyncio.gather(*(client.post("/mcp", json=HELLO) for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [503] * 9


async def test_a_session_that_nobody_uses_ends(tmp_path: Path) -> None:
    limits = SessionLimits(idle_s=0.01)
    async with (
        serving(tmp_path, tools(tmp_path) + ON, limits=limits) as served,
        served.bare() as client,
    ):
        session = await begin(client)
        await until_gone(served, 0)
        assert await status(client, session) == 404


async def test_what_does_not_begin_a_session_leaves_none(tmp_path: Path) -> None:
    async with serving(tmp_path, tools(tmp_path) + ON) as served, served.bare() as client:
        for wrong in (LIST, {"jsonrpc": "2.0"}, [HELLO]):
            assert (await client.post("/mcp", json=wrong)).status_code == 400
        await until_gone(served, 0)


BAD_HELLO: dict[str, Any] = {**HELLO, "params": {"protocolVersion": 5}}


@pytest.mark.requirement("NET-5a")
@pytest.mark.parametrize(
    ("method", "body", "headers", "refused"),
    [
        ("POST", LIST, {}, 400),
        ("POST", {"jsonrpc": "2.0"}, {}, 400),
        ("POST", BAD_HELLO, {}, 400),
        ("POST", {**HELLO, "params": None}, {}, 400),
        ("POST", HELLO, {"accept": "text/html"}, 406),
        ("GET", None, {}, 400),
        ("DELETE", None, {}, 400),
    ],
)
async def test_what_does_not_begin_a_session_ends_none(
    tmp_path: Path, method: str, body: object, headers: dict[str, str], refused: int
) -> None:
    limits = SessionLimits(most=3, most_per_principal=2)
    async with (
        serving(tmp_path, tools(tmp_path) + ON, limits=limits) as served,
        served.bare() as client,
    ):
        sessions = [await begin(client) for _ in range(2)]
        for _ in range(3):
            answer = await client.request(method, "/mcp", json=body, headers=headers)
            assert answer.status_code == refused
        assert [await status(client, each) for each in sessions] == [200, 200]
        await until_gone(served, 2)


@pytest.mark.requirement("NET-5a")
async def test_sessions_that_begin_at_the_same_time_take_the_place_of_idle_ones_alone(
    tmp_path: Path,
) -> None:
    limits = SessionLimits(most=10, most_per_principal=3)
    async with (
        serving(tmp_path, tools(tmp_path) + ON, limits=limits) as served,
        served.bare() as client,
    ):
        for _ in range(3):
            await begin(client)
        answers = await asyncio.gather(*(client.post("/mcp", json=HELLO) for _ in range(9)))
        assert {answer.status_code for answer in answers} <= {200, 503}
        await until_gone(served, 3)


async def test_a_key_that_is_taken_away_ends_the_sessions_of_its_owner(tmp_path: Path) -> None:
    tools_alone = tools(tmp_path)
    async with (
        serving(tmp_path, tools_alone + ON + TWO_KEYS) as served,
        served.bare() as client,
    ):
        of_ann, of_bob = await begin(client, bearer("ann")), await begin(client, bearer("bob"))
        headers = {**bearer("ann"), "mcp-session-id": of_ann}
        async with client.stream("GET", "/mcp", headers=headers) as stream:
            write_config(tmp_path, tools_alone + ON + key_entry("bob"))
            assert (await served.runtime.live.reload("cli")).good
            assert [part async for part in stream.aiter_text()] == []
        assert await status(client, of_ann, bearer("ann")) == 401
        assert await status(client, of_bob, bearer("bob")) == 200


@pytest.mark.requirement("NET-2b")
async def test_a_key_that_is_replaced_ends_the_sessions_that_it_opened_with_their_calls(
    tmp_path: Path,
) -> None:
    started = asyncio.Event()
    text = tools(tmp_path, "a.slow", code=STARTS_AND_HANGS) + ON
    call = {**LIST, "method": "tools/call", "params": {"name": "a.slow", "arguments": {}}}
    async with (
        serving(tmp_path, text + TWO_KEYS, resources={"started": started}) as served,
        served.bare() as client,
    ):
        of_ann, of_bob = await begin(client, bearer("ann")), await begin(client, bearer("bob"))
        headers = {**bearer("ann"), "mcp-session-id": of_ann}
        calling = asyncio.create_task(client.post("/mcp", json=call, headers=headers))
        await started.wait()
        async with client.stream("GET", "/mcp", headers=headers) as stream:
            write_config(tmp_path, text + key_entry("ann", "sr_new") + key_entry("bob"))
            assert (await served.runtime.live.reload("cli")).good
            assert await status(client, of_ann, {"authorization": "Bearer sr_new"}) == 404
            assert [part async for part in stream.aiter_text()] == []
        assert '"result"' not in (await calling).text
        assert served.runtime.callers.running == 0
        assert await status(client, of_bob, bearer("bob")) == 200


async def test_switching_it_off_ends_all_sessions_and_on_again_lets_clients_in(
    tmp_path: Path,
) -> None:
    config = tools(tmp_path)
    async with serving(tmp_path, config + ON) as served, served.bare() as client:
        session = await begin(client)
        write_config(tmp_path, config)
        await served.runtime.live.reload("cli")
        assert await status(client, session) == 404
        await until_gone(served, 0)
        write_config(tmp_path, config + ON)
        await served.runtime.live.reload("cli")
        await begin(client)


@pytest.mark.requirement("REL-8")
async def test_stopping_ends_calls_and_sessions(tmp_path: Path) -> None:
    cancelled: list[str] = []
    started = asyncio.Event()
    config = tools(tmp_path, "a.hang", code=STARTS_AND_HANGS) + ON
    resources = {"cancelled": cancelled, "started": started}
    async with serving(tmp_path, config, resources=resources) as served:
        async with served.bare() as client:
            session = await begin(client)
            call: dict[str, Any] = {"name": "a.hang", "arguments": {}}
            asking = asyncio.create_task(
                client.post(
                    "/mcp",
                    json={"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call},
                    headers={"mcp-session-id": session},
                )
            )
            await started.wait()
            await served.runtime.drain(0)
            answer = await asking
            refused = await client.post(
                "/mcp",
                json={"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call},
                headers={"mcp-session-id": session},
            )
    assert len(cancelled) == 1
    assert "The call was stopped because the daemon stops" in answer.text
    assert "The daemon is stopping" in refused.text


@pytest.mark.requirement("REL-8")
async def test_nothing_is_left_running_when_it_has_stopped(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with serving(tmp_path, tools(tmp_path) + ON) as served:
        async with served.client() as client, served.client(STATELESS) as other:
            await client.list_tools()
            await other.list_tools()
            await client.call_tool("mail.list", {})
    assert asyncio.all_tasks() == before
