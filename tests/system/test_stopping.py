"""How the daemon stops while an ask is running."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.support import write_handler
from tests.system.test_daemon import Daemon, daemon

WAITS = """
import asyncio

async def execute(args, context):
    reader, told = await asyncio.open_connection("127.0.0.1", args["port"])
    told.write(b"started\\n")
    await reader.readline()
    told.close()
    return "waited"
"""


@dataclass(frozen=True)
class Busy:
    """A daemon with one ask in the middle of a tool, and the way to let the tool go on."""

    running: Daemon
    client: httpx2.AsyncClient
    asking: asyncio.Task[httpx2.Response]
    let_go: asyncio.Event

    async def logged(self, words: str) -> None:
        """Wait until the daemon's log says so."""
        await self.running.logged(words)


def configuration(folder: Path, port: int, drain_timeout_s: float) -> Path:
    schema = {"type": "object", "properties": {"port": {"type": "integer"}}}
    write_handler(folder / "tools", "wait", parameters=schema, code=WAITS)
    calls = [{"calls": [{"name": "wait", "arguments": {"port": port}}]}, {"text": "done"}]
    (folder / "script.json").write_text(json.dumps({"replies": calls}), encoding="utf-8")
    config = folder / "config.toml"
    config.write_text(
        f"[runtime]\ndrain_timeout_s = {drain_timeout_s}\n"
        '[handlers]\npaths = ["tools"]\n[skills]\nprefetch_tools = []\n'
        '[models.main]\nwire = "scripted"\nscript = "script.json"\n'
    )
    return config


@asynccontextmanager
async def busy(folder: Path, drain_timeout_s: float, **env: str) -> AsyncIterator[Busy]:
    started, let_go = asyncio.Event(), asyncio.Event()

    async def tool(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        started.set()
        await let_go.wait()
        writer.write(b"go on\n")
        writer.close()

    async with (
        asyncio.timeout(30),
        await asyncio.start_server(tool, "127.0.0.1", 0) as listener,
        daemon(
            configuration(folder, listener.sockets[0].getsockname()[1], drain_timeout_s), **env
        ) as running,
        httpx2.AsyncClient(trust_env=False, timeout=30) as client,
    ):
        asking = asyncio.create_task(client.post(f"{running.url}/v1/ask", json={"text": "go"}))
        await started.wait()
        yield Busy(running, client, asking, let_go)
        let_go.set()
        asking.cancel()
        await asyncio.wait([asking])


@pytest.mark.requirement("REL-8a")
@pytest.mark.requirement("NET-5a")
async def test_draining_lets_the_running_ask_finish_and_sends_new_ones_away(
    tmp_path: Path,
) -> None:
    async with busy(tmp_path, drain_timeout_s=20) as one:
        one.running.process.send_signal(signal.SIGTERM)
        await one.logged("new asks are refused")
        refused = await one.client.post(f"{one.running.url}/v1/ask", json={"text": "me too"})
        unready = await one.client.get(f"{one.running.url}/readyz")
        one.let_go.set()
        answer = (await one.asking).json()
        assert await one.running.process.wait() == 0
    assert (refused.status_code, unready.status_code) == (503, 503)
    assert float(refused.headers["retry-after"]) > 0
    assert refused.json()["error"]["code"] == "busy.draining"
    assert (answer["outcome"], answer["text"]) == ("answered", "done")


@pytest.mark.requirement("REL-8a")
async def test_what_still_runs_when_draining_takes_too_long_is_cancelled_with_a_reason(
    tmp_path: Path,
) -> None:
    async with busy(tmp_path, drain_timeout_s=0.1) as one:
        one.running.process.send_signal(signal.SIGTERM)
        answer = (await one.asking).json()
        assert await one.running.process.wait() == 0
    assert (answer["outcome"], answer["error"]["message"]) == (
        "cancelled",
        "the daemon is stopping",
    )


@pytest.mark.requirement("REL-8a")
async def test_a_second_signal_ends_the_draining_at_once(tmp_path: Path) -> None:
    async with busy(tmp_path, drain_timeout_s=300) as one:
        one.running.process.send_signal(signal.SIGTERM)
        await one.logged("new asks are refused")
        one.running.process.send_signal(signal.SIGTERM)
        assert await one.running.process.wait() == 1
