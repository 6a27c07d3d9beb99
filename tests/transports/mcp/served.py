"""A runtime whose tools are served to MCP clients on a real loopback socket, and clients for it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from session_runtime import Runtime
from session_runtime.transports.http.door import HttpLimits
from session_runtime.transports.http.server import build_app, run_http
from session_runtime.transports.mcp.endpoint import LIMITS, McpEndpoint, SessionLimits
from tests.support import opened, write_handler

Mode = Literal["legacy", "2026-07-28"]
HANDSHAKE: Mode = "legacy"
STATELESS: Mode = "2026-07-28"
RUNTIME = Path(__file__).parents[3] / "runtime"
HANGS_S = 60.0  # a test that waits for what never comes fails instead of hanging
ON = "[http]\nmcp = true\n"
SEARCHING = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
NAMES = ("clock.now", "mail.list", "mail.send", "music.play")


@dataclass(frozen=True, slots=True)
class Served:
    """A running daemon's port and runtime; ``url`` is where MCP clients connect."""

    runtime: Runtime
    port: int
    stop: asyncio.Event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @asynccontextmanager
    async def client(
        self, mode: Mode = HANDSHAKE, headers: Mapping[str, str] | None = None, **more: Any
    ) -> AsyncIterator[Client]:
        """A client of the official SDK."""
        async with httpx2.AsyncClient(headers=dict(headers or {}), trust_env=False) as http:
            async with Client(
                streamable_http_client(self.url, http_client=http), mode=mode, **more
            ) as client:
                yield client

    @asynccontextmanager
    async def bare(
        self, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx2.AsyncClient]:
        """A client that sends what no library would."""
        both = {"accept": "application/json, text/event-stream", **(headers or {})}
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}", headers=both, trust_env=False
        ) as client:
            yield client


@asynccontextmanager
async def serving(
    folder: Path,
    config: str,
    *,
    limits: SessionLimits = LIMITS,
    max_body_bytes: int = 10_000_000,
    **options: Any,
) -> AsyncIterator[Served]:
    """Open a runtime and serve it; on leaving, everything has ended in bounded time."""
    async with opened(folder, config, **options) as runtime:
        sock = socket.create_server(("127.0.0.1", 0))
        port, stop = sock.getsockname()[1], asyncio.Event()
        endpoint = McpEndpoint(runtime.callers, limits)
        app = build_app(runtime, HttpLimits(max_body_bytes), stop, mcp=endpoint)
        running = [
            asyncio.create_task(run_http(app, sock, stop)),
            asyncio.create_task(endpoint.serve(stop)),
        ]
        try:
            async with asyncio.timeout(HANGS_S):
                yield Served(runtime, port, stop)
        finally:
            stop.set()
            await asyncio.gather(*running)


def tools(folder: Path, *names: str, **more: Any) -> str:
    """Write tools and give the configuration that serves them, and no others, to MCP clients."""
    for name in names or NAMES:
        write_handler(folder / "tools", name, **more)
    return f'[handlers]\npaths = ["{folder / "tools"}"]\nbundled = false\n'


async def listed(client: Client) -> list[str]:
    """The names of all tools, page by page, as they are now."""
    names, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        names += [tool.name for tool in page.tools]
        if (cursor := page.next_cursor) is None:
            return names


def text_of(result: Any) -> str:
    """The text of a result that has one piece."""
    (content,) = result.content
    return str(content.text)
