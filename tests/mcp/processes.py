"""What tests of processes share: commands that play scripts, words with them, and what /proc says of them."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from session_runtime.mcp.process import Child, Command, start
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.mcp.stdio import StdioTransport, Streams
from session_runtime.testing.mcp_servers.raw import raw_server
from session_runtime.testing.mcp_servers.script import Script

BRIEF_S = 0.05
"""A grace that stubborn servers use up."""


def command(
    folder: Path,
    launch: tuple[str, tuple[str, ...]] | None = None,
    env: Mapping[str, str] | None = None,
    **script: Any,
) -> Command:
    """The command of a server ``x`` that plays this script, or of whatever else is given."""
    program, args = launch or raw_server(Script(**script))
    return Command("x", program, args, folder, env or {})


def python(folder: Path, code: str, env: Mapping[str, str] | None = None) -> Command:
    """The command that runs this code in a Python without anything around."""
    return command(folder, (sys.executable, ("-I", "-S", "-c", code)), env)


@asynccontextmanager
async def running(what: Command, grace_s: float = 1.0) -> AsyncIterator[Child]:
    """A process for a while."""
    child = await start(what, os.environ)
    try:
        yield child
    finally:
        await child.end(grace_s)
        child.close()


@dataclass
class Talk:
    """A transport in use, and its streams."""

    transport: StdioTransport
    streams: Streams
    log: Path
    _ids: list[int] = field(default_factory=lambda: [0])

    async def send(self, method: str, **params: Any) -> int:
        """Send a request, and give its id."""
        self._ids[0] += 1
        request = JSONRPCRequest(jsonrpc="2.0", id=self._ids[0], method=method, params=params)
        await self.streams[1].send(SessionMessage(request))
        return self._ids[0]

    async def answer(self) -> Any:
        """The next message that answers: its result, or its error's code."""
        async for item in self.streams[0]:
            assert isinstance(item, SessionMessage)
            match item.message:
                case JSONRPCResponse(result=result):
                    return result
                case JSONRPCError(error=error):
                    return error.code
                case JSONRPCNotification() | JSONRPCRequest():
                    continue
        raise EOFError

    async def ask(self, method: str, **params: Any) -> Any:
        """Send a request and wait for what answers it."""
        await self.send(method, **params)
        return await self.answer()

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and give its first text, or the code of an error."""
        result = await self.ask("tools/call", name=tool, arguments=arguments)
        return result if isinstance(result, int) else result["content"][0]["text"]


@asynccontextmanager
async def talking(
    folder: Path, what: Command | None = None, grace_s: float = 1.0, **script: Any
) -> AsyncIterator[Talk]:
    """A transport to a server, open for a while."""
    what = what or command(folder, **script)
    shown = Shown(what.env.values())
    path = folder / "mcp" / "x.log"
    transport = StdioTransport(what, os.environ, StderrLog(path, shown), shown, grace_s=grace_s)
    async with transport as streams:
        yield Talk(transport, streams, path)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until this holds; fails after half a minute."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - nobody tells what happens in /proc
            await asyncio.sleep(0.005)


def state(pid: int) -> str:
    """What a process does: S, R, …, Z for a zombie, "" if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    content = Path(f"/proc/{pid}/environ").read_text("utf-8")
    return dict(entry.split("=", 1) for entry in content.split("\0") if entry)


def open_files(pid: int) -> list[str]:
    """The numbers of the files that a process has open."""
    return sorted(path.name for path in Path(f"/proc/{pid}/fd").iterdir())


def folder_of(pid: int) -> Path:
    """The folder that a process runs in."""
    return Path(f"/proc/{pid}/cwd").readlink()


def members(group: int) -> list[int]:
    """The processes of a group that are alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
