"""Calls of servers' tools through the whole runtime: time, size, real servers of both kinds (RTE-7)."""

import asyncio
import gc
import json
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from session_runtime.testing.mcp_servers.official import official_server
from session_runtime.testing.mcp_servers.script import Era, Script
from session_runtime.types import ToolFinished, ToolProgress
from tests.support import ask, calls, says, scripted
from tests.system.server_config import server, table
from tests.system.test_servers import ALL_TOOLS, mcp, names, results, site, statuses, until

ERAS: tuple[Era, ...] = ("handshake", "stateless")
TURN_S = 0.1
"""The most of the processor that the event loop may spend between two turns of a test."""
MARKS = 200
"""Room for the two lines around what comes from a server."""


def lines(path: Path) -> list[Any]:
    """What a server noted, as far as it has."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def cancelled(log: Path) -> list[str]:
    """The tools whose calls were cancelled, once for each time."""
    received = lines(log)
    called = {
        each["id"]: each["params"]["name"]
        for each in received
        if each.get("method") == "tools/call"
    }
    notices = [each for each in received if each.get("method") == "notifications/cancelled"]
    ids = [each["params"]["requestId"] for each in notices]
    return [called[id_] for id_ in ids if id_ in called]


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize("era", ERAS)
async def test_progress_carries_a_call_past_its_idle_limit_and_not_past_its_hard_one(
    tmp_path: Path, era: Era
) -> None:
    log = tmp_path / "received"
    script = Script(era=era, tools=("progress", "forever"), received=str(log))
    limits = "[mcp.servers.a.tools.progress]\nhard_timeout_s = 1.2\n"
    model = scripted(
        tmp_path,
        calls(("a.progress", {"times": 25, "every": 0.02})),
        calls(("a.progress", {"times": 1_000_000, "every": 0.02})),
        calls(("a.forever", {})),
        says("done"),
    )
    text = mcp(server("a", script, idle_timeout_s=0.4, hard_timeout_s=60.0), limits)
    async with site(tmp_path, text + ALL_TOOLS + model) as runtime:
        asked = await ask(runtime, "go")
        codes = [each.error_code for each in asked.of(ToolFinished)]
        assert codes == [None, "tool.timeout", "tool.timeout"]
        assert [each.done for each in asked.of(ToolProgress)][:25] == [*range(1, 26)]
        _, endless, silent = results(asked)
        assert "1.2 s" in endless
        assert "0.4 s" in silent
        assert statuses(runtime)["a"]["calls"] == 0
        await until(lambda: len(cancelled(log)) == 2)
    assert cancelled(log) == ["progress", "forever"]


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize("era", ERAS)
async def test_cancelling_an_ask_tells_the_server_once_and_leaves_nothing_waiting(
    tmp_path: Path, era: Era
) -> None:
    log = tmp_path / "received"
    script = Script(era=era, tools=("forever",), received=str(log))
    model = scripted(tmp_path, calls(("a.forever", {})), says("done"))
    async with site(tmp_path, mcp(server("a", script)) + ALL_TOOLS + model) as runtime:
        asking = asyncio.create_task(ask(runtime, "go"))
        await until(lambda: any(each.get("method") == "tools/call" for each in lines(log)))
        asking.cancel()
        asking.cancel()
        await asyncio.wait((asking,))
        assert asking.cancelled()
        await until(lambda: bool(cancelled(log)))
        await runtime.servers.refresh("a")  # what was sent before has arrived by then
        assert cancelled(log) == ["forever"]
        told = statuses(runtime)["a"]
        assert (told["state"], told["calls"], told["restarts"]) == ("ready", 0, 0)
        assert runtime.asks == 0


@pytest.mark.requirement("RTE-1")
async def test_real_servers_of_both_generations_are_used_in_one_ask(tmp_path: Path) -> None:
    tables = []
    for era in ERAS:
        program, args = official_server(era)
        tables.append(table(era, command=program, args=list(args)))
    both = [
        *(calls((f"{era}.add", {"a": 2, "b": 3}), (f"{era}.slow", {})) for era in ERAS),
        *(calls((f"{era}.fail", {}), (f"{era}.change_list", {})) for era in ERAS),
        says("done"),
    ]
    async with site(tmp_path, mcp(*tables) + ALL_TOOLS + scripted(tmp_path, *both)) as runtime:
        told = statuses(runtime)
        assert {name: told[name]["protocol"] for name in ERAS} == {
            "handshake": "2025-11-25",
            "stateless": "2026-07-28",
        }
        asked = await ask(runtime, "go")
        assert {(each.name, each.status) for each in asked.of(ToolFinished)} == {
            (f"{era}.{tool}", "error" if tool == "fail" else "ok")
            for era in ERAS
            for tool in ("add", "slow", "fail", "change_list")
        }
        assert sum('{"sum":5}' in content for content in results(asked)) == 2
        assert len(asked.of(ToolProgress)) == 6
        await until(lambda: {f"{era}.added" for era in ERAS} <= set(names(runtime)))


@dataclass
class Held:
    """How many bytes more a block holds at its end than at its beginning."""

    bytes: int = 0


@contextmanager
def memory_of() -> Iterator[Held]:
    held = Held()
    tracemalloc.start()
    try:
        yield held
        gc.collect()
        held.bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


class Turns:
    """Counts turns of the event loop, and what the longest of them took of the processor."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_s = 0.0

    async def watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest_s = max(self.longest_s, now - before)
            self.count += 1
            before = now


@pytest.mark.requirement("ASK-8b")
@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize(
    ("size", "told"),
    [
        (16_000_000, "results.read gives them by the reference"),
        (20_000_000, "They are not kept."),  # what is as long as this never is
    ],
)
async def test_a_huge_result_is_shortened_while_the_loop_goes_on_and_its_memory_comes_back(
    tmp_path: Path, size: int, told: str
) -> None:
    model = scripted(tmp_path, calls(("a.big", {"bytes": size})), says("done"))
    bundled = "[skills]\nprefetch_tools = []\n"  # results.read is one of them
    text = mcp(server("a", Script(tools=("big", "echo")))) + bundled + model
    async with site(tmp_path, text) as runtime:
        turns = Turns()
        with memory_of() as held:
            watching = asyncio.create_task(turns.watch())
            (content,) = results(await ask(runtime, "go"))
            watching.cancel()
            await asyncio.wait((watching,))
            await runtime.servers.refresh("a")  # a connection holds its last message until the next
        assert told in content
        assert len(content) <= 20_000 + MARKS
    assert held.bytes < size // 10
    assert turns.count > 1_000
    assert turns.longest_s < TURN_S
