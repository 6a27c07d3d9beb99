"""``asks``: looking at what runs in a daemon and ending it, on the command line."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from session_runtime import AskRequest, AskResult, Identity
from session_runtime.cli import exits
from session_runtime.types import ErrorInfo
from tests.cli.conftest import Done, Run
from tests.control_daemon import WAIT_S, Daemon, control_daemon
from tests.support import calls, scripted, tool_folder, write_handler

HANGS = """
import asyncio

async def execute(args, context):
    context.progress(0)
    await asyncio.Event().wait()
"""


@dataclass(frozen=True)
class Hanging:
    """A daemon with asks that hang, the oldest first."""

    daemon: Daemon
    asks: list[Future[AskResult]]

    @property
    def ids(self) -> list[str]:
        return [ask.ask_id for ask in self.daemon.do(self._list())]

    async def _list(self) -> tuple[object, ...]:
        return self.daemon.runtime.running.list()

    def add(self, user: str) -> None:
        hangs = threading.Event()
        request = AskRequest("go", identity=Identity(user))
        work = self.daemon.runtime.ask(
            request, lambda event: hangs.set() if event.type == "tool.progress" else None
        )
        self.asks.append(asyncio.run_coroutine_threadsafe(work, self.daemon.loop))
        assert hangs.wait(WAIT_S)


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Hanging]:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    config = tool_folder(tmp_path) + "[skills]\nprefetch_tools = []\n"
    with control_daemon(tmp_path, config + scripted(tmp_path, calls(("hang", {})))) as daemon:
        yield Hanging(daemon, [])


@pytest.mark.requirement("NET-7b")
@pytest.mark.requirement("REL-9")
def test_asks_are_listed_with_what_they_do(run: Run, hanging: Hanging) -> None:
    assert run("asks", "list") == Done(0, "", "no ask is running\n")
    hanging.add("ann")
    [ask_id] = hanging.ids
    done = run("asks", "list")
    before, _, after = done.out.partition(" s  ")
    assert before.startswith(f"{ask_id}  ")
    assert after == "tools       main  ann (local)  1 steps, 1 calls\n"
    [shown] = json.loads(run("asks", "list", "--json").out)
    assert (shown["ask_id"], shown["state"], shown["user"]) == (ask_id, "tools", "ann")


@pytest.mark.requirement("REL-9")
def test_named_asks_are_ended_with_the_reason(run: Run, hanging: Hanging) -> None:
    for user in ("ann", "bob", "eve"):
        hanging.add(user)
    first, _, last = hanging.ids
    done = run("asks", "cancel", first, "ask_gone", last, "--reason", "too slow, 太慢")
    assert (done.code, done.out) == (exits.USAGE, "cancelled 2\n")
    assert done.err == ("error: no ask 'ask_gone' is running; asks list shows those that are\n")
    told = ErrorInfo("cancelled.operator", "too slow, 太慢")
    assert hanging.asks[0].result(WAIT_S).error == hanging.asks[2].result(WAIT_S).error == told
    assert not hanging.asks[1].done()
    assert len(hanging.ids) == 1


@pytest.mark.requirement("REL-9")
def test_an_ask_that_is_ended_without_a_reason_is_told_that_an_operator_did(
    run: Run, hanging: Hanging
) -> None:
    hanging.add("ann")
    assert run("asks", "cancel", *hanging.ids) == Done(0, "cancelled 1\n", "")
    told = ErrorInfo("cancelled.operator", "an operator ended this ask")
    assert hanging.asks[0].result(WAIT_S).error == told


@pytest.mark.requirement("REL-9")
def test_all_asks_are_ended(run: Run, hanging: Hanging) -> None:
    for user in ("ann", "bob"):
        hanging.add(user)
    done = run("asks", "cancel", "--all", "--json")
    assert (done.code, json.loads(done.out)) == (0, {"cancelled": 2, "problems": []})
    assert [ask.result(WAIT_S).outcome for ask in hanging.asks] == ["cancelled"] * 2
    assert run("asks", "cancel", "--all") == Done(0, "cancelled 0\n", "")


@pytest.mark.parametrize("arguments", [(), ("ask_1", "--all")])
def test_either_ids_or_all_is_given(run: Run, arguments: tuple[str, ...]) -> None:
    done = run("asks", "cancel", *arguments)
    assert done.code == exits.USAGE
    assert "Give either IDs or --all." in done.err


def test_all_asks_are_ended_only_by_the_option(run: Run, tmp_path: Path) -> None:
    done = run("asks", "cancel", "all")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "say --all to end every ask" in done.err
