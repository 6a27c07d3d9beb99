"""The daemon beside a service manager: signals in, notifications out (REL-8)."""

import asyncio
import re
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.system.test_daemon import Daemon, daemon
from tests.system.test_stopping import busy

pytestmark = pytest.mark.requirement("REL-8b")


@dataclass
class Manager:
    """What the daemon tells its service manager, message by message."""

    sock: socket.socket

    async def heard(self) -> dict[str, str]:
        async with asyncio.timeout(20):
            message = await asyncio.get_running_loop().sock_recv(self.sock, 8192)
        return dict(line.split("=", 1) for line in message.decode().splitlines())

    async def until(self, name: str) -> dict[str, str]:
        """The next message that gives this variable."""
        while name not in (message := await self.heard()):
            pass
        return message


@asynccontextmanager
async def managed(folder: Path, **env: str) -> AsyncIterator[tuple[Daemon, Manager, Path]]:
    config = folder / "config.toml"
    config.write_text("[ask]\nmax_steps = 3\n", "utf-8")
    with listening(folder / "notify") as sock:
        async with daemon(config, NOTIFY_SOCKET=str(folder / "notify"), **env) as running:
            yield running, Manager(sock), config


def listening(address: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(str(address))
    sock.setblocking(False)
    return sock


async def test_readiness_a_reload_and_the_stop_are_told(tmp_path: Path) -> None:
    async with managed(tmp_path) as (running, manager, config):
        ready = await manager.until("READY")
        config.write_text("[ask]\nmax_steps = 0\n", "utf-8")
        running.process.send_signal(signal.SIGHUP)
        reloading = await manager.until("RELOADING")
        again = await manager.until("READY")
        running.process.send_signal(signal.SIGTERM)
        stopping = await manager.until("STOPPING")
        assert await running.process.wait() == 0
    assert ready["STATUS"].startswith(f"serving on {running.url} with")
    assert int(reloading["MONOTONIC_USEC"]) > 0
    told = (
        r"configuration rejected \((signal|watch), receipt \d\): config\.toml:2: ask\.max_steps: .*"
    )
    assert re.fullmatch(told, again["STATUS"])
    assert int(stopping["EXTEND_TIMEOUT_USEC"]) > 30_000_000
    assert "0 still run" in stopping["STATUS"]


async def test_an_edit_that_was_noticed_is_told_too(tmp_path: Path) -> None:
    async with managed(tmp_path) as (_, manager, config):
        await manager.until("READY")
        config.write_text("[ask]\nmax_steps = 4\n", "utf-8")
        told = await manager.until("STATUS")
    assert re.fullmatch(
        r"configuration applied \(watch, receipt 2\): ask.max_steps.*", told["STATUS"]
    )


async def test_many_reload_signals_at_once_are_few_reloads_one_after_the_other(
    tmp_path: Path,
) -> None:
    async with managed(tmp_path) as (running, manager, config):
        await manager.until("READY")
        config.write_text("[ask]\nmax_steps = 5\n", "utf-8")
        for _ in range(20):
            running.process.send_signal(signal.SIGHUP)
        first = [await manager.until("RELOADING"), await manager.until("READY")]
        running.process.send_signal(signal.SIGTERM)
        told = [*first, *[message async for message in all_of(manager, running)]]
    kinds = ["".join({"RELOADING", "READY", "STOPPING"} & message.keys()) for message in told]
    order = [kind for kind in kinds if kind]
    assert all(one != next_one for one, next_one in pairwise(order))
    assert order[-1] == "STOPPING"


async def all_of(manager: Manager, running: Daemon) -> AsyncIterator[dict[str, str]]:
    """Every message up to the last one."""
    while "STOPPING" not in (message := await manager.heard()):
        yield message
    yield message
    await running.process.wait()


async def test_a_watchdog_is_given_signs_of_life(tmp_path: Path) -> None:
    async with managed(tmp_path, WATCHDOG_USEC="100000") as (_, manager, _):
        await manager.until("READY")
        assert [await manager.until("WATCHDOG") for _ in range(3)] == [{"WATCHDOG": "1"}] * 3


async def test_while_draining_signs_of_life_go_on_and_a_hangup_is_no_reload(tmp_path: Path) -> None:
    address = tmp_path / "notify"
    with listening(address) as sock:
        env = {"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "100000"}
        async with busy(tmp_path, drain_timeout_s=20, **env) as one:
            manager = Manager(sock)
            one.running.process.send_signal(signal.SIGTERM)
            await manager.until("STOPPING")
            one.running.process.send_signal(signal.SIGHUP)
            told = [await manager.heard() for _ in range(3)]
            one.let_go.set()
            assert await one.running.process.wait() == 0
    assert told == [{"WATCHDOG": "1"}] * 3
