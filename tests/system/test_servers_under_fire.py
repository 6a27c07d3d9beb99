"""Servers are killed one after the other while many ask: each costs its own calls alone (RTE-1, RTE-6)."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import Runtime
from session_runtime.testing.conversation import Request, messages_of, question_of
from session_runtime.testing.mcp_servers.raw import orphan_maker
from session_runtime.testing.mcp_servers.script import Script
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from tests.support import Asked, ask, chat_profile, opened, write_config
from tests.system.leftovers import nothing_left
from tests.system.server_config import alive, environment, open_handles, server, table
from tests.system.test_daemon import daemon
from tests.system.test_servers import ALL_TOOLS, STUCK, mcp, results, statuses, until

LOST = "It may have taken effect: find that out before it is called again."
HANGING = 6
"""How many calls hang at a server when it is killed: more than the failures in a row that close a server."""


def bad_servers() -> str:
    """One that never answers, one that dies at once, one that is not there."""
    return (
        server("stuck", STUCK, connect_timeout_s=600.0)
        + server("dying", Script(dies_at=("initialize", "server/discover")))
        + table("absent", command="/no/such/program")
    )


@dataclass
class Fire:
    """Asks that all make one call per round, of which some hang at the victim of the round.

    Ask ``n`` calls the ``n + round``-th of the ``good`` servers, so that each meets every one of them.
    A round begins when its gate opens, and is over when all asks are back at the model.
    """

    good: list[str]
    asks: int
    gates: list[asyncio.Event] = field(default_factory=list)
    back: asyncio.Condition = field(default_factory=asyncio.Condition)
    arrived: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gates = [asyncio.Event() for _ in self.good]
        self.arrived = [0] * (len(self.good) + 1)

    def server_of(self, number: int, round_: int) -> str:
        return self.good[(number + round_) % len(self.good)]

    def hangs(self, number: int, round_: int) -> bool:
        """Whether the call of this ask hangs until its server is killed."""
        mine = number // len(self.good)
        return self.server_of(number, round_) == self.good[round_] and mine < HANGING

    async def reply(self, request: Request) -> Reply:
        number = int(question_of(request))
        round_ = sum(message["role"] == "tool" for message in messages_of(request))
        async with self.back:
            self.arrived[round_] += 1
            self.back.notify_all()
        if round_ == len(self.good):
            return reply_text("done")
        await self.gates[round_].wait()
        tool = "forever" if self.hangs(number, round_) else "echo"
        text = f"{number} in {round_}"
        return reply_calls((f"{self.server_of(number, round_)}__{tool}", {"text": text}))

    async def all_back(self, round_: int, count: int) -> None:
        """Wait until so many asks ask the model what to do in this round."""
        async with self.back:
            await self.back.wait_for(lambda: self.arrived[round_] >= count)


async def kill_in_turn(fire: Fire, runtime: Runtime) -> None:
    await fire.all_back(0, fire.asks)
    for round_ in range(len(fire.good)):
        await kill(fire, runtime, round_)


async def kill(fire: Fire, runtime: Runtime, round_: int) -> None:
    """Kill the server of a round while calls hang there; then wait until it has recovered."""

    def now() -> dict[str, Any]:
        return statuses(runtime)[fire.good[round_]]

    before = now()
    hanging = sum(fire.hangs(number, round_) for number in range(fire.asks))
    fire.gates[round_].set()
    # all others are done while these hang: nobody waits for a server that is not its own
    await fire.all_back(round_ + 1, fire.asks - hanging)
    await until(lambda: now()["calls"] == hanging)
    os.kill(before["pid"], signal.SIGKILL)
    await fire.all_back(round_ + 1, fire.asks)
    await until(lambda: now()["state"] == "ready")
    assert now()["pid"] != before["pid"]
    assert now()["restarts"] == before["restarts"] + 1


def zombies() -> Iterator[str]:
    """Children of this process that have ended and that nobody has waited for."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] == "Z":
            yield stat.parent.name


async def under_fire(folder: Path, good: int, asks: int, bad: str) -> None:
    fire = Fire([f"s{number}" for number in range(good)], asks)
    tools = Script(tools=("echo", "forever"))
    async with Upstream(fire.reply, keep=False) as upstream:
        text = (
            ALL_TOOLS
            + mcp(*(server(name, tools) for name in fire.good), bad, wait_s=0.5)
            + chat_profile(upstream.base_url)
            + f"[runtime]\nmax_concurrent_asks = {asks}\n[ask]\nmax_tool_calls = {good}\n"
        )
        with nothing_left():
            async with opened(folder, text) as runtime:
                await until(lambda: runtime.missing() == tuple(missing(bad)))
                handles = open_handles()
                asking = [asyncio.create_task(ask(runtime, str(number))) for number in range(asks)]
                await kill_in_turn(fire, runtime)
                asked = await asyncio.gather(*asking)
                await all_as_before(runtime, fire, bad)
                to_model = 2 * upstream.open_connections  # both ends are in this process
                await until(lambda: open_handles() <= handles + to_model)
        assert list(zombies()) == []
    for number, each in enumerate(asked):
        check(fire, number, each)


def missing(bad: str) -> list[str]:
    return re.findall(r"servers\.(\w+)\]", bad)


async def all_as_before(runtime: Runtime, fire: Fire, bad: str) -> None:
    told = statuses(runtime)
    assert {name: told[name]["calls"] for name in fire.good} == dict.fromkeys(fire.good, 0)
    assert runtime.missing() == tuple(missing(bad))
    assert [each["generation"] for each in runtime.status()["generations"]] == [1]
    assert runtime.asks == 0


def check(fire: Fire, number: int, asked: Asked) -> None:
    """Each call gave what its own server gave; only those that hung at a victim were lost."""
    assert asked.result.outcome == "answered"
    told = results(asked)
    assert len(told) == len(fire.good)
    for round_, content in enumerate(told):
        expected = LOST if fire.hangs(number, round_) else f"{number} in {round_}"
        assert expected in content, (number, round_, content)


@pytest.mark.requirement("RTE-1")
@pytest.mark.requirement("RTE-6")
async def test_a_killed_server_costs_its_own_calls_alone_and_comes_back(tmp_path: Path) -> None:
    await under_fire(tmp_path, 3, 18, server("stuck", STUCK, connect_timeout_s=600.0))


@pytest.mark.soak
@pytest.mark.requirement("RTE-1")
@pytest.mark.requirement("RTE-6")
async def test_seventeen_servers_are_killed_in_turn_under_two_hundred_asks(tmp_path: Path) -> None:
    await under_fire(tmp_path, 17, 200, bad_servers())


SECRETS = {"MAIN_API_KEY": "key of the model", "A_TOKEN": "of a", "B_TOKEN": "of b"}


def environment_of(pid: int) -> dict[str, str]:
    return dict(each.decode().split("=", 1) for each in environment(pid).split(b"\0") if each)


@pytest.mark.requirement("RTE-6")
@pytest.mark.requirement("RTE-2")
async def test_the_process_of_a_server_is_given_its_own_secrets_and_nobody_elses(
    tmp_path: Path,
) -> None:
    text = (
        ALL_TOOLS
        + chat_profile("http://127.0.0.1:9", api_key="env:MAIN_API_KEY")
        + mcp(server("a"), 'env = {KEY = "env:A_TOKEN"}\n', server("b"))
        + 'env = {KEY = "env:B_TOKEN"}\n'
        + '[mcp.servers.b.credentials.boss]\nroles = ["boss"]\nenv = {KEY = "boss of b"}\n'
        + server("c")
    )
    env = {**SECRETS, "HOME": str(tmp_path), "LANG": "C.UTF-8", "EDITOR": "ed"}
    async with daemon(write_config(tmp_path, text), **env) as running:
        async with httpx2.AsyncClient(trust_env=False) as client:
            told = (await client.get(f"{running.url}/v1/status")).json()["servers"]
        of = {each["name"]: environment_of(each["pid"]) for each in told if "name" in each}
        (boss,) = [each for entry in told for each in entry.get("credentials", ())]
        shared = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
        assert of == {
            "a": {**shared, "KEY": "of a"},
            "b": {**shared, "KEY": "of b"},
            "c": shared,
        }
        assert environment_of(boss["pid"]) == {**shared, "KEY": "boss of b"}


def group_of(leader: int) -> set[int]:
    """The processes of a group that run."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.add(int(stat.parent.name))
    return found


@pytest.mark.requirement("RTE-6")
@pytest.mark.requirement("REL-8c")
async def test_stopping_and_killing_the_daemon_leave_no_server_behind_a_wrapper(
    tmp_path: Path,
) -> None:
    program, args = orphan_maker()
    text = ALL_TOOLS + mcp(table("a", command=program, args=list(args)))
    config = write_config(tmp_path, text)
    first = await ended_by(signal.SIGKILL, config)
    assert await ended_by(signal.SIGTERM, config) != first


async def ended_by(number: signal.Signals, config: Path) -> int:
    """Start a daemon, end it, and see that its server goes too; gives the process that the daemon started."""
    async with daemon(config) as running, httpx2.AsyncClient(trust_env=False) as client:
        told = (await client.get(f"{running.url}/v1/status")).json()["servers"]
        (server_,) = [each for each in told if "name" in each]
        assert (server_["state"], server_["restarts"]) == ("ready", 0)
        leader = int(server_["pid"])
        (behind,) = group_of(leader) - {leader}
        running.process.send_signal(number)
        await running.process.wait()
        if number == signal.SIGTERM:
            assert group_of(leader) == set()
        await until(lambda: not group_of(leader))
        assert not alive(behind)
    return leader
