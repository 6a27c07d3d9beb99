"""Servers of tools as real processes: good and bad ones side by side, edits, lists that change (RTE-1..4)."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.testing.mcp_servers.script import Script
from session_runtime.types import TurnStarted
from tests.support import Asked, ask, calls, opened, says, scripted, write_config
from tests.system.leftovers import nothing_left, running_children
from tests.system.server_config import alive, environment, open_handles, server, table
from tests.system.test_daemon import daemon

WAIT_S = 30
ALL_TOOLS = "[handlers]\nbundled = false\n[skills]\nprefetch_tools = []\n"
SEARCHED = f"{ALL_TOOLS}tool_search_enabled = true\ntool_search_explain = true\n"
STUCK = Script(silent=("initialize", "server/discover"))


def mcp(*tables: str, wait_s: float = 20.0) -> str:
    return "".join([f"[mcp]\nwait_s = {wait_s}\n", *tables])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.01)


def names(runtime: Runtime) -> list[str]:
    return [spec.name for spec in runtime.generation.catalog.specs]


def statuses(runtime: Runtime) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in runtime.status()["servers"] if "name" in each}


def results(asked: Asked) -> list[str]:
    return [str(message.content) for message in asked.result.new_messages if message.role == "tool"]


@asynccontextmanager
async def site(folder: Path, text: str) -> AsyncIterator[Runtime]:
    """A runtime that leaves neither tasks nor processes."""
    with nothing_left():
        async with opened(folder, text) as runtime:
            yield runtime


async def edit(runtime: Runtime, folder: Path, text: str) -> None:
    write_config(folder, text)
    receipt = await runtime.live.reload("watch")
    assert receipt.good, receipt.errors


@pytest.mark.requirement("RTE-1")
@pytest.mark.requirement("TS-7")
async def test_seventeen_good_servers_are_ready_while_three_bad_ones_are_named_wherever_one_looks(
    tmp_path: Path,
) -> None:
    good = [f"good{number}" for number in range(17)]
    text = mcp(
        *(server(name) for name in good),
        server("stuck", STUCK, connect_timeout_s=60.0),
        server("dying", Script(dies_at=("initialize", "server/discover"))),
        table("absent", command="/no/such/program"),
        wait_s=2.0,
    )
    search = {"query": "select:stuck.echo, nothing.else"}
    script = scripted(
        tmp_path,
        calls(("tool_search", search)),
        calls(("tool_search", {"query": "select:good7.echo"})),
        calls(("good7.echo", {"text": "hello"})),
        says("done"),
    )
    async with site(tmp_path, SEARCHED + text + script) as runtime:
        await until(lambda: len(names(runtime)) == 34)
        assert runtime.ready() == (True, "ready")
        assert runtime.missing() == ("stuck", "dying", "absent")
        told = statuses(runtime)
        assert {name: told[name]["state"] for name in good} == dict.fromkeys(good, "ready")
        assert told["stuck"]["state"] == "connecting"
        assert "/no/such/program" in told["absent"]["error"]
        assert told["dying"]["error"]
        asked = await ask(runtime, "go")
        first, _, echoed = results(asked)
        hint = json.loads(first)["hint"]
        assert "Not available at the moment: stuck, dying, absent." in hint
        assert "hello" in echoed


@pytest.mark.requirement("RTE-1")
@pytest.mark.requirement("REL-1")
async def test_editing_the_file_adds_changes_and_removes_servers_and_touches_no_other_process(
    tmp_path: Path,
) -> None:
    script = scripted(tmp_path, calls(("new.echo", {"text": "hello"})), says("done"))
    rest = ALL_TOOLS + script
    before = mcp(server("kept"), server("changed"), server("removed"))
    async with site(tmp_path, before + rest) as runtime:
        pids = {name: each["pid"] for name, each in statuses(runtime).items()}
        assert all(alive(pid) for pid in pids.values())
        changed = server("changed", Script(tools=("read",)))
        await edit(
            runtime, tmp_path, mcp(server("kept", naming="bare"), changed, server("new")) + rest
        )
        assert names(runtime) == ["add", "changed.read", "echo", "new.add", "new.echo"]
        assert statuses(runtime)["kept"]["pid"] == pids["kept"]
        await until(lambda: not alive(pids["changed"]) and not alive(pids["removed"]))
        assert "hello" in results(await ask(runtime, "go"))[0]
        assert alive(pids["kept"])
        await edit(runtime, tmp_path, rest)
        assert names(runtime) == []
        await until(lambda: not alive(pids["kept"]))


@pytest.mark.requirement("RTE-4")
async def test_a_changed_list_is_seen_by_the_next_ask_while_the_running_one_keeps_its_own(
    tmp_path: Path,
) -> None:
    changing = Script(tools=("change_list", "echo"), next_tools=("change_list", "add"))
    turns = (
        calls(("a.change_list", {})),
        calls(("a.echo", {"text": "gone"})),
        says("done"),
    )
    text = mcp(server("a", changing)) + ALL_TOOLS + scripted(tmp_path, *turns)
    async with site(tmp_path, text) as runtime:
        asked = await ask(runtime, "go")
        await until(lambda: names(runtime) == ["a.add", "a.change_list"])
        exposed = [turn.exposed for turn in asked.of(TurnStarted)]
        assert exposed == [("a.change_list", "a.echo")] * 3
        removed = results(asked)[1]
        assert "does not offer it in this form any more" in removed
        again = await ask(runtime, "go")
        assert again.of(TurnStarted)[0].exposed == ("a.add", "a.change_list")
        receipt = next(each for each in runtime.live.receipts.newest() if each.trigger == "servers")
        assert receipt.tools == {"added": ("a.add",), "removed": ("a.echo",)}


@pytest.mark.requirement("RTE-3")
async def test_a_tool_that_two_servers_have_is_called_at_the_one_that_was_meant(
    tmp_path: Path,
) -> None:
    ran = {name: tmp_path / f"{name}.jsonl" for name in ("oceanbase", "clickhouse")}
    servers = [
        server(name, Script(tools=("execute_sql",), executions=str(path)))
        for name, path in ran.items()
    ]
    script = scripted(tmp_path, calls(("clickhouse.execute_sql", {})), says("done"))
    async with site(tmp_path, mcp(*servers) + ALL_TOOLS + script) as runtime:
        assert names(runtime) == ["clickhouse.execute_sql", "oceanbase.execute_sql"]
        await ask(runtime, "go")
    assert not ran["oceanbase"].exists()
    assert json.loads(ran["clickhouse"].read_text("utf-8"))["tool"] == "execute_sql"


@pytest.mark.requirement("RTE-3")
async def test_names_with_dots_are_legal_for_the_model_and_reach_the_server_as_it_spells_them(
    tmp_path: Path,
) -> None:
    ran = tmp_path / "ran.jsonl"
    tools = ("calendar.respondToEvent", "admin.tools.list")
    script = scripted(
        tmp_path,
        calls(("tool_search", {"query": "select:calendar.respondToEvent"})),
        calls(("tool_search", {"query": "admin tools list"})),
        calls(("calendar__respondToEvent", {}), ("admin.tools.list", {})),
        says("done"),
    )
    text = mcp(server("work", Script(tools=tools, executions=str(ran)), naming="bare"))
    async with site(tmp_path, text + SEARCHED + script) as runtime:
        asked = await ask(runtime, "go")
        profile = runtime.generation.profiles["main"]
        assert profile.names.encode("admin.tools.list") == "admin__tools__list"
    assert asked.result.loaded_tools == ("calendar.respondToEvent", "admin.tools.list")
    called = [json.loads(line)["tool"] for line in ran.read_text("utf-8").splitlines()]
    assert sorted(called) == ["admin.tools.list", "calendar.respondToEvent"]


@pytest.mark.requirement("RTE-6")
async def test_tools_of_a_server_that_went_down_answer_at_once_and_a_restart_brings_them_back(
    tmp_path: Path,
) -> None:
    wanted = (("a.echo", {"text": "hello"}), ("no.such", {}))
    script = scripted(tmp_path, calls(*wanted), says("done"))
    text = mcp(server("a", Script(dies_at=("tools/call",)))) + ALL_TOOLS + script
    async with site(tmp_path, text) as runtime:
        pid = statuses(runtime)["a"]["pid"]
        await ask(runtime, "go")
        await until(lambda: not alive(pid))
        await until(lambda: runtime.missing() == ("a",))
        assert names(runtime) == ["a.add", "a.echo"]
        assert "temporarily unavailable" in results(await ask(runtime, "go"))[0]
        counted = re.findall(r'tool_lookups_total{found="(\w+)"} (\d)', runtime.metrics())
        assert counted == [("hit", "1"), ("unavailable", "1"), ("unknown", "2")]
        told = await runtime.servers.restart("a")
        assert (told["servers"][0]["state"], told["receipt"]["verdict"]) == ("ready", "unchanged")
        assert statuses(runtime)["a"]["pid"] not in (pid, None)


@pytest.mark.requirement("RTE-1")
@pytest.mark.requirement("REL-8c")
async def test_a_daemon_names_the_server_that_is_stuck_and_stops_without_a_trace_of_any(
    tmp_path: Path,
) -> None:
    stuck = server("stuck", STUCK, connect_timeout_s=60.0)
    config = write_config(tmp_path, ALL_TOOLS + mcp(server("a"), server("b"), stuck, wait_s=0.5))
    async with daemon(config) as running, httpx2.AsyncClient(trust_env=False) as client:
        ready = (await client.get(f"{running.url}/readyz")).json()
        assert "stuck" in ready["missing"]
        told = (await client.get(f"{running.url}/v1/status")).json()["servers"]
        pids = {each["name"]: each["pid"] for each in told if "name" in each}
        metrics = (await client.get(f"{running.url}/metrics")).text
        assert 'session_runtime_server_ready{server="stuck"} 0' in metrics
        write_config(tmp_path, ALL_TOOLS + mcp(server("b"), stuck, wait_s=0.5))
        applied = await running.logged("configuration applied (watch")
        assert "tools removed: a.add, a.echo" in applied
        await until(lambda: not alive(pids["a"]))
        assert alive(pids["b"])
        running.process.send_signal(signal.SIGTERM)
        _, log = await running.process.communicate()
    assert running.process.returncode == 0
    said = running.log + log.decode()
    assert not [line for line in said.splitlines() if "Traceback" in line or "ERROR" in line]
    await until(lambda: not any(map(alive, pids.values())))


@pytest.mark.requirement("RTE-2")
async def test_a_credential_has_a_process_and_tools_of_its_own_that_only_its_callers_reach(
    tmp_path: Path,
) -> None:
    boss = '[mcp.servers.a.credentials.boss]\nroles = ["boss"]\nenv = {KEY = "env:BOSS_TOKEN"}\n'
    script = scripted(tmp_path, calls(("a.echo", {"text": "hello"})), says("done"))
    text = mcp(server("a"), boss) + ALL_TOOLS + script
    with nothing_left():
        async with opened(tmp_path, text, env={"BOSS_TOKEN": "the boss's"}) as runtime:
            told = statuses(runtime)["a"]
            own, others = told["credentials"][0]["pid"], told["pid"]
            assert own != others
            environments = [environment(pid) for pid in (own, others)]
            assert [b"the boss's" in each for each in environments] == [True, False]
            os.kill(others, signal.SIGSTOP)  # only the other session can answer
            request = AskRequest("go", identity=Identity("ann", frozenset({"boss"})))
            assert "hello" in results(await ask(runtime, request))[0]
            os.kill(others, signal.SIGCONT)


@pytest.mark.requirement("RTE-4")
async def test_a_server_that_tells_of_changes_without_end_makes_no_generation(
    tmp_path: Path,
) -> None:
    text = mcp(server("a", Script(flood=2_000)), server("b")) + ALL_TOOLS
    async with site(tmp_path, text) as runtime:
        await runtime.servers.refresh("a")
        assert names(runtime) == ["a.add", "a.echo", "b.add", "b.echo"]
        assert runtime.generation.number == 1


@pytest.mark.requirement("REL-1")
async def test_edits_of_servers_leave_neither_processes_nor_tasks_nor_handles(
    tmp_path: Path,
) -> None:
    rounds = [
        mcp(server("a"), server("b", Script(name=str(number))), wait_s=20.0) for number in range(6)
    ]
    async with site(tmp_path, ALL_TOOLS) as runtime:
        await edit(runtime, tmp_path, rounds[0] + ALL_TOOLS)
        await edit(runtime, tmp_path, ALL_TOOLS)
        await until(lambda: not running_children())
        tasks, handles = len(asyncio.all_tasks()), open_handles()
        for tables in rounds:
            await edit(runtime, tmp_path, tables + ALL_TOOLS)
        assert len(names(runtime)) == 4
        await edit(runtime, tmp_path, ALL_TOOLS)
        await until(lambda: len(asyncio.all_tasks()) <= tasks and not running_children())
        await until(lambda: open_handles() <= handles)
        assert len(runtime.status()["generations"]) == 1
