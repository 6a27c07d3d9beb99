"""While a person at a client is asked, others go on, and what holds after the answer decides."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from session_runtime.registry.keyring import hash_of
from tests.support import write_config, write_handler
from tests.transports.mcp.served import ON, Served, serving, text_of, tools
from tests.transports.mcp.test_calls import WAITS, WIPES, events
from tests.transports.stub import bearer, key_of

LOOKS = "def execute(args, context):\n    return 'seen'\n"
DESTRUCTIVE = {"destructive": True}
Change = Callable[[Served, Path], Awaitable[object]]


def wiping(folder: Path, more: str = "") -> str:
    write_handler(folder / "tools", "b.look", code=LOOKS)
    return tools(folder, "a.wipe", code=WIPES, runtime=DESTRUCTIVE) + ON + more


async def rewrite(served: Served, folder: Path, **changes: Any) -> None:
    shutil.rmtree(folder / "tools" / "a")
    write_handler(folder / "tools", "a.wipe", **{"code": WIPES, "runtime": DESTRUCTIVE, **changes})
    await served.runtime.live.reload("cli")


async def configure(served: Served, folder: Path, more: str) -> None:
    shutil.rmtree(folder / "tools")
    write_config(folder, wiping(folder, more))
    await served.runtime.live.reload("cli")


async def remove(served: Served, folder: Path) -> None:
    shutil.rmtree(folder / "tools" / "a")
    await served.runtime.live.reload("cli")


CHANGES: dict[str, tuple[Change, str]] = {
    "code": (lambda s, f: rewrite(s, f, code=WIPES + "# other"), "is not the same any more"),
    "gone": (remove, "there is no tool named 'a.wipe' here"),
    "revoked": (lambda s, f: s.runtime.brake.revoke("a.*"), "no tool named 'a.wipe'"),
    "denied": (
        lambda s, f: configure(s, f, '[access]\ndestructive = "deny"\n'),
        "no tool named 'a.wipe'",
    ),
    "forbidden": (
        lambda s, f: configure(s, f, '[access]\ndefault = "deny"\n'),
        "no tool named 'a.wipe'",
    ),
    "nothing": (lambda s, f: s.runtime.live.reload("cli"), "wiped"),
}


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize(("change", "words"), CHANGES.values(), ids=CHANGES)
async def test_what_holds_after_the_answer_decides_whether_the_call_runs(
    tmp_path: Path, change: Change, words: str
) -> None:
    wiped: list[object] = []

    async def agree(context: object, params: ElicitRequestParams) -> ElicitResult:
        await change(served, tmp_path)
        return ElicitResult(action="accept", content={})

    async with (
        serving(tmp_path, wiping(tmp_path), resources={"wiped": wiped}) as served,
        served.client(elicitation_callback=agree) as client,
    ):
        result = await client.call_tool("a.wipe", {})
    assert words in text_of(result)
    assert len(wiped) == (words == "wiped")


@pytest.mark.requirement("RTE-9b")
async def test_whoever_lost_the_role_while_being_asked_does_not_run_the_call(
    tmp_path: Path,
) -> None:
    def keys(roles: str) -> str:
        return f'[http.keys.bot]\nhash = "{hash_of(key_of("bot"))}"\nroles = [{roles}]\n'

    runtime = {"destructive": True, "requires": ["staff"]}
    config = tools(tmp_path, "a.wipe", code=WIPES, runtime=runtime) + ON

    async def agree(context: object, params: ElicitRequestParams) -> ElicitResult:
        write_config(tmp_path, config + keys(""))
        await served.runtime.live.reload("cli")
        return ElicitResult(action="accept", content={})

    wiped: list[object] = []
    async with (
        serving(tmp_path, config + keys('"staff"'), resources={"wiped": wiped}) as served,
        served.client(headers=bearer("bot"), elicitation_callback=agree) as client,
    ):
        result = await client.call_tool("a.wipe", {})
    assert "no tool named 'a.wipe'" in text_of(result)
    assert wiped == []


@pytest.mark.requirement("NET-5a")
async def test_calls_that_wait_for_a_person_take_no_room_from_others(tmp_path: Path) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def agree_later(context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.set()
        await answer.wait()
        return ElicitResult(action="accept", content={})

    config = wiping(tmp_path, "[runtime]\nmax_concurrent_asks = 1\n")
    async with (
        serving(tmp_path, config, resources={"wiped": []}) as served,
        served.client(elicitation_callback=agree_later) as one,
        served.client() as other,
    ):
        waiting = asyncio.create_task(one.call_tool("a.wipe", {}))
        await asked.wait()
        assert served.runtime.callers.running == 0
        assert text_of(await other.call_tool("b.look", {})) == "seen"
        answer.set()
        assert text_of(await waiting) == "wiped"


@pytest.mark.requirement("NET-5a")
async def test_one_principal_has_only_so_many_calls_that_wait_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session_runtime.transports.mcp.callers.MOST_ASKED", 1)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def decline_later(context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.set()
        await answer.wait()
        return ElicitResult(action="decline")

    async with (
        serving(tmp_path, wiping(tmp_path)) as served,
        served.client(elicitation_callback=decline_later) as one,
        served.client(elicitation_callback=decline_later) as two,
    ):
        waiting = asyncio.create_task(one.call_tool("a.wipe", {}))
        await asked.wait()
        refused = text_of(await two.call_tool("a.wipe", {}))
        answer.set()
        await waiting
    assert "wait for one already" in refused


@pytest.mark.requirement("NET-5a")
async def test_one_principal_of_several_has_half_of_all_calls(tmp_path: Path) -> None:
    resources = events()
    keys = "".join(
        f'[http.keys.{name}]\nhash = "{hash_of(key_of(name))}"\n' for name in ("bot", "desk")
    )
    limit = "[runtime]\nmax_concurrent_asks = 2\n"
    config = tools(tmp_path, "a.wait", code=WAITS) + ON + limit + keys
    async with (
        serving(tmp_path, config, resources=resources) as served,
        served.client(headers=bearer("bot")) as one,
        served.client(headers=bearer("desk")) as other,
    ):
        first = asyncio.create_task(one.call_tool("a.wait", {}))
        await resources["started"].wait()
        refused = text_of(await one.call_tool("a.wait", {}))
        resources["started"].clear()
        second = asyncio.create_task(other.call_tool("a.wait", {}))
        await resources["started"].wait()
        resources["go_on"].set()
        assert [text_of(result) for result in await asyncio.gather(first, second)] == [
            "went on"
        ] * 2
    assert refused.startswith("1 calls of yours are running")


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}


def message(number: int | str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def begun(client: httpx2.AsyncClient) -> dict[str, str]:
    """Begin a session; gives the headers of its requests."""
    answer = await client.post("/mcp", json=message(0, "initialize", HELLO))
    headers = {"mcp-session-id": answer.headers["mcp-session-id"]}
    hello = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await client.post("/mcp", json=hello, headers=headers)
    return headers


async def question_of(response: httpx2.Response) -> dict[str, Any]:
    async for line in response.aiter_lines():
        if line.startswith("data: ") and "elicitation/create" in line:
            return dict(json.loads(line.removeprefix("data: ")))
    raise AssertionError


@pytest.mark.requirement("NET-5a")
async def test_a_client_that_does_not_wait_for_the_result_is_not_asked_any_more(
    tmp_path: Path,
) -> None:
    wipe = message(7, "tools/call", {"name": "a.wipe", "arguments": {}})
    wiped: list[object] = []
    async with (
        serving(tmp_path, wiping(tmp_path), resources={"wiped": wiped}) as served,
        served.bare() as client,
    ):
        headers = await begun(client)
        async with client.stream("POST", "/mcp", json=wipe, headers=headers) as response:
            question = await question_of(response)
            assert served.runtime.callers._asked.total() == 1
        while served.runtime.callers._asked:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0)
        yes = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
        await client.post("/mcp", json=yes, headers=headers)
        async with client.stream("POST", "/mcp", json=wipe, headers=headers) as response:
            assert await question_of(response)
    assert wiped == []


@pytest.mark.requirement("NET-5a")
@pytest.mark.parametrize("again", [7, "7"])
async def test_an_id_that_is_in_use_is_refused_until_its_request_is_answered(
    tmp_path: Path, again: int | str
) -> None:
    resources = events()
    config = tools(tmp_path, "a.wait", code=WAITS) + ON
    call = {"name": "a.wait", "arguments": {}}
    async with serving(tmp_path, config, resources=resources) as served, served.bare() as client:
        headers = await begun(client)
        first = asyncio.create_task(
            client.post("/mcp", json=message(7, "tools/call", call), headers=headers)
        )
        await resources["started"].wait()
        body = message(again, "tools/call", call)
        refused = await client.post("/mcp", json=body, headers=headers)
        resources["go_on"].set()
        assert "went on" in (await first).text
        assert "went on" in (await client.post("/mcp", json=body, headers=headers)).text
    assert refused.status_code == 400
    assert "another request of this session has this id" in refused.text


@pytest.mark.requirement("NET-5a")
async def test_an_id_is_in_use_as_long_as_its_call_runs_though_nobody_listens(
    tmp_path: Path,
) -> None:
    resources = events()
    config = tools(tmp_path, "a.wait", code=WAITS) + ON
    call = message(7, "tools/call", {"name": "a.wait", "arguments": {}})
    async with serving(tmp_path, config, resources=resources) as served, served.bare() as client:
        headers = await begun(client)
        async with client.stream("POST", "/mcp", json=call, headers=headers):
            await resources["started"].wait()
        refused = await client.post("/mcp", json=call, headers=headers)
        resources["go_on"].set()
        await served.runtime.callers.idle()
    assert refused.status_code == 400
