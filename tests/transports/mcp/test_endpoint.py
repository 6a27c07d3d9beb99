"""Requests to /mcp get an answer whatever becomes of what stands behind it."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from session_runtime.transports.http.door import HttpLimits
from session_runtime.transports.http.server import build_app
from session_runtime.transports.mcp.endpoint import McpEndpoint
from tests.support import opened, write_config
from tests.transports.mcp.served import HANGS_S, ON, tools
from tests.transports.mcp.test_sessions import HELLO

HEADERS = {"accept": "application/json, text/event-stream"}


@pytest.mark.requirement("REL-8")
@pytest.mark.parametrize("wanted_before", [False, True])
async def test_what_is_asked_for_after_the_stop_is_refused_at_once(
    tmp_path: Path, wanted_before: bool
) -> None:
    config = tools(tmp_path)
    async with opened(tmp_path, config + ON * wanted_before) as runtime:
        endpoint, stop = McpEndpoint(runtime.callers), asyncio.Event()
        serving = asyncio.create_task(endpoint.serve(stop))
        await asyncio.sleep(0)
        stop.set()
        await serving
        write_config(tmp_path, config + ON)
        await runtime.live.reload("cli")
        app = build_app(runtime, HttpLimits(10_000), asyncio.Event(), mcp=endpoint)
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        async with (
            asyncio.timeout(HANGS_S),
            httpx2.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=HEADERS
            ) as client,
        ):
            answer = await client.post("/mcp", json=HELLO)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy.stopping")
