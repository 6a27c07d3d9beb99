"""Clients are told of each change of their list, also of one that comes while they are told of another."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from session_runtime import Runtime
from session_runtime.search import view
from session_runtime.search.directory import Entry, directory_text
from session_runtime.transports.mcp.callers import Caller
from session_runtime.transports.mcp.session import CallerSession
from session_runtime.transports.mcp.watching import tell_of_changes
from tests.support import opened, write_handler
from tests.transports.mcp.served import HANGS_S, tools


@dataclass
class Listener:
    """Lists at once when it is told, and only then lets whoever tells it go on."""

    runtime: Runtime
    session: CallerSession
    fails: bool = False
    told: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def tell(self) -> None:
        self.session.show(Caller())
        self.told.release()
        if self.fails:
            raise BrokenPipeError
        await self.go_on.wait()

    async def is_told(self) -> None:
        async with asyncio.timeout(HANGS_S):
            await self.told.acquire()


async def add(runtime: Runtime, folder: Path, name: str) -> None:
    write_handler(folder / "tools", name)
    await runtime.live.reload("cli")


@pytest.mark.requirement("NET-1d")
@pytest.mark.parametrize("fails", [False, True])
async def test_a_change_that_comes_while_a_client_is_told_of_another_one_is_told_next(
    tmp_path: Path, fails: bool
) -> None:
    async with opened(tmp_path, tools(tmp_path)) as runtime:
        session = CallerSession(runtime.callers, "c", remembers=True)
        session.show(Caller())
        client = Listener(runtime, session, fails)
        watch = tell_of_changes(runtime.callers, session, client, Caller)
        watching = asyncio.create_task(watch)
        await asyncio.sleep(0)
        await add(runtime, tmp_path, "a.first")
        await client.is_told()
        await add(runtime, tmp_path, "a.second")
        client.go_on.set()
        await client.is_told()
        assert "a.second" in session.view(Caller()).turn.by_name
        watching.cancel()
        session.close()


@pytest.mark.requirement("TS-4")
async def test_the_names_of_many_tools_are_listed_for_a_client_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed_by: list[str] = []

    def noted(entries: Sequence[Entry], max_tokens: int) -> str:
        listed_by.append(threading.current_thread().name)
        return directory_text(entries, max_tokens)

    monkeypatch.setattr(view, "directory_text", noted)
    monkeypatch.setattr(view, "SLOW_ABOVE", 1)
    searching = "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n"
    for name in ("a.first", "a.second"):
        write_handler(tmp_path / "tools", name)
    async with opened(tmp_path, tools(tmp_path) + searching) as runtime:
        session = CallerSession(runtime.callers, "c", remembers=True)
        await session.prepare(Caller())
        assert "a.second" in (session.directory(Caller()) or "")
        session.close()
    assert listed_by == ["listing tools"]
