"""The daemon as its users meet it: a process, a port, curl."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support import write_handler

ROOT = Path(__file__).resolve().parents[2]


class Daemon:
    """A running ``session-runtime serve``: its process, where it serves, what it said before."""

    def __init__(self, process: asyncio.subprocess.Process, log: str) -> None:
        self.process = process
        self.log = log
        self.url = log.rpartition("serving on ")[2].split()[0]

    async def logged(self, words: str) -> str:
        """Wait until the daemon's log says so; gives the line."""
        assert self.process.stderr is not None
        async with asyncio.timeout(20):
            async for line in self.process.stderr:
                if words in line.decode():
                    return line.decode()
        raise AssertionError(f"the log ended without {words!r}")


async def told_to_serve(process: asyncio.subprocess.Process) -> str:
    """The daemon's log, once it serves."""
    assert process.stderr is not None
    log: list[str] = []
    async with asyncio.timeout(20):
        async for line in process.stderr:
            log.append(line.decode())
            if "serving on" in log[-1]:
                return "".join(log)
    raise AssertionError("the daemon never served:\n" + "".join(log))


def command(config: Path) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "session_runtime"),
        *("serve", "--config", str(config), "--port", "0"),
    )


@asynccontextmanager
async def daemon(config: Path, *options: str, **env: str) -> AsyncIterator[Daemon]:
    process = await asyncio.create_subprocess_exec(
        *(*command(config), *options),
        stderr=asyncio.subprocess.PIPE,
        env=bare_environment() | env,
    )
    try:
        yield Daemon(process, await told_to_serve(process))
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def bare_environment() -> dict[str, str]:
    """Nothing that could configure the daemon."""
    return {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}


def working_config(folder: Path, text: str = "") -> Path:
    """The configuration that ships, with its state in ``folder``."""
    path = folder / "config.toml"
    path.write_text((ROOT / "config.toml").read_text(encoding="utf-8") + text, encoding="utf-8")
    return path


async def stream(url: str, question: str) -> list[dict[str, Any]]:
    """The events of one ask over HTTP."""
    headers = {"accept": "text/event-stream"}
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=30) as client,
        client.stream("POST", f"{url}/v1/ask", json={"text": question}, headers=headers) as reply,
    ):
        assert reply.status_code == 200
        lines = [line async for line in reply.aiter_lines()]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


@pytest.mark.requirement("NET-1a")
@pytest.mark.parametrize("question", ["What is 15% of 2480?", "2480的15%是多少？"])
async def test_the_shipped_configuration_answers_with_a_searched_tool(
    tmp_path: Path, question: str
) -> None:
    async with daemon(working_config(tmp_path)) as running:
        events = await stream(running.url, question)
    story = [
        (e["type"], e.get("name") or e.get("names"))
        for e in events
        if e["type"] in ("tool.started", "tools.loaded")
    ]
    assert story[0] == ("tool.started", "tool_search")
    assert story[1][0] == "tools.loaded"
    assert "math.evaluate" in (story[1][1] or ())
    assert story[2] == ("tool.started", "math.evaluate")
    turns = [e for e in events if e["type"] == "turn.started"]
    assert "math.evaluate" not in turns[0]["exposed"]
    assert "math.evaluate" in turns[1]["exposed"]
    result = events[-1]["result"]
    assert result["outcome"] == "answered"
    assert "372" in result["text"]


@pytest.mark.requirement("REG-1")
async def test_a_folder_the_code_has_never_seen_is_found_filled_and_called(tmp_path: Path) -> None:
    write_handler(
        tmp_path / "tools",
        "table.reserve",
        description="Reserves a table at a restaurant.",
        parameters={
            "type": "object",
            "properties": {
                "restaurant": {"type": "string", "description": "Name of the restaurant"},
                "guests": {"type": "integer", "description": "How many guests"},
                "meal": {"type": "string", "enum": ["breakfast", "lunch", "dinner"]},
            },
            "required": ["restaurant", "guests", "meal"],
        },
        code="def execute(args, context):\n    return args\n",
    )
    config = working_config(tmp_path)
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("[handlers]", '[handlers]\npaths = ["tools"]', 1))
    async with daemon(config) as running:
        events = await stream(
            running.url, "Reserve a table at 'Blue Lagoon' for 4 guests for dinner"
        )
    (call,) = [e for e in events if e["type"] == "tool.started" and e["name"] == "table.reserve"]
    assert call["arguments"] == {"restaurant": "Blue Lagoon", "guests": 4, "meal": "dinner"}
    assert events[-1]["result"]["outcome"] == "answered"


HANG = """
import asyncio

async def execute(args, context):
    _, told = await asyncio.open_connection("127.0.0.1", args["port"])
    told.write(b"started\\n")
    try:
        await asyncio.Event().wait()
    finally:
        told.write(b"cancelled\\n")
        told.close()
"""


def hanging(folder: Path, port: int) -> Path:
    """A configuration whose model calls a tool that reports to ``port`` and then hangs."""
    schema = {"type": "object", "properties": {"port": {"type": "integer"}}}
    write_handler(folder / "tools", "hang", parameters=schema, code=HANG)
    call = {"name": "hang", "arguments": {"port": port}}
    script = {"replies": [{"calls": [call]}]}
    (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
    config = folder / "config.toml"
    config.write_text(
        '[handlers]\npaths = ["tools"]\n[models.main]\nwire = "scripted"\nscript = "script.json"\n'
    )
    return config


@pytest.mark.requirement("NET-1a")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_client_that_goes_away_cancels_its_ask_and_its_handler(
    tmp_path: Path, accept: str
) -> None:
    told: asyncio.Queue[bytes] = asyncio.Queue()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for line in reader:
            told.put_nowait(line)
        writer.close()

    async with (
        await asyncio.start_server(listen, "127.0.0.1", 0) as listener,
        daemon(hanging(tmp_path, listener.sockets[0].getsockname()[1])) as running,
        httpx2.AsyncClient(trust_env=False) as client,
        asyncio.timeout(20),
    ):
        asking = asyncio.create_task(
            client.post(f"{running.url}/v1/ask", json={"text": "go"}, headers={"accept": accept})
        )
        assert await told.get() == b"started\n"
        asking.cancel()
        assert await told.get() == b"cancelled\n"
        await asyncio.wait([asking])


@pytest.mark.requirement("REL-8a")
async def test_a_signal_stops_the_daemon_with_code_zero(tmp_path: Path) -> None:
    async with daemon(working_config(tmp_path)) as running:
        running.process.send_signal(signal.SIGTERM)
        assert await running.process.wait() == 0


@pytest.mark.requirement("INT-1")
async def test_a_second_daemon_on_the_same_state_folder_says_so_and_exits(tmp_path: Path) -> None:
    config = working_config(tmp_path)
    async with daemon(config):
        second = await asyncio.create_subprocess_exec(
            *command(config), stderr=asyncio.subprocess.PIPE, env=bare_environment()
        )
        _, error = await second.communicate()
    assert second.returncode == 1
    assert "another daemon uses runtime.state_dir" in error.decode()
    assert "Traceback" not in error.decode()
