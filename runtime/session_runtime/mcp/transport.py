"""Chooses how the messages of a server travel: over the pipes of a process, or over HTTP.

Public: ``Line``, ``Place``, ``open_line``.
"""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from session_runtime.config.mcp import McpServer
from session_runtime.mcp.faults import Fault
from session_runtime.mcp.http import HttpTransport
from session_runtime.mcp.process import Command
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.mcp.stdio import StdioTransport
from session_runtime.mcp.tap import StreamPair, Streams


@dataclass(frozen=True, slots=True)
class Line:
    """One way to a server, used for one connection: its ``streams``, and what else is known of it.

    ``fault_in`` recognises errors that are the transport's own. ``pid`` is the process, ``skipped`` how many
    lines were no messages, ``ended`` says how the process ended, once it did.
    """

    streams: Streams
    fault_in: Callable[[object], Fault | None] = lambda data: None
    pid: Callable[[], int | None] = lambda: None
    skipped: Callable[[], int] = lambda: 0
    ended: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is, as far as its settings do not say: ``name`` is what its log is called.

    ``cwd`` is the folder a command runs in that names none, ``logs`` the one for what commands write to
    their standard error.
    """

    name: str
    cwd: Path
    logs: Path


def open_line(place: Place, server: McpServer, shown: Shown) -> Line:
    """Make the way to a server, which nothing has been sent yet; used on the event loop."""
    if server.url is not None:
        http = HttpTransport(
            server.url, _plain(server.headers), server.connect_timeout_s, server.hard_timeout_s
        )
        return Line(http, http.fault_in, skipped=lambda: http.skipped)
    assert server.command is not None
    command = Command(
        place.name,
        server.command,
        server.args,
        place.cwd if server.cwd is None else place.cwd / server.cwd,
        _plain(server.env),
    )
    log = StderrLog(place.logs / f"{place.name.replace('/', '.')}.log", shown)
    stdio = StdioTransport(command, os.environ, log, shown)
    return Line(
        _logged(stdio, log),
        stdio.fault_in,
        pid=lambda: stdio.pid,
        skipped=lambda: stdio.skipped.count,
        ended=lambda: stdio.lost.result() if stdio.lost.done() else "",
    )


@asynccontextmanager
async def _logged(stdio: StdioTransport, log: StderrLog) -> AsyncIterator[StreamPair]:
    """The streams of a process; what it last wrote to its standard error is in the log afterwards."""
    try:
        async with stdio as streams:
            yield streams
    finally:
        await log.aclose()


def _plain(secret: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in secret.items()}
