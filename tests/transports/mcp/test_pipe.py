"""The runtime as a process that speaks MCP over its standard streams."""

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.message import SessionMessage

from session_runtime.transports.mcp.pipe import Ends, Read, Write, run_pipe
from tests.support import write_config, write_handler
from tests.transports.mcp.served import HANGS_S, RUNTIME, SEARCHING, Mode, listed, tools

START = "import sys; from session_runtime.cli import main; sys.exit(main())"
LOUD = """
import os
import subprocess
import sys

print("loud at import")

def execute(args, context):
    print("loud", flush=True)
    os.write(1, b"louder\\n")
    subprocess.run(["echo", "loudest"], check=True)
    return {"read": sys.stdin.read(), "user": context.identity.user}
"""


def parameters(config: Path, *options: str) -> StdioServerParameters:
    """How a client starts the runtime."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-c", START, "mcp", "--config", str(config), *options],
        env={"PYTHONPATH": str(RUNTIME)},
    )


@asynccontextmanager
async def started(
    config: Path, *options: str, mode: Mode | str, **more: Any
) -> AsyncIterator[Client]:
    """A client of a process that it started."""
    log = config.with_suffix(".log").open("w")
    with log:
        transport = stdio_client(parameters(config, *options), errlog=log)
        async with asyncio.timeout(HANGS_S), Client(transport, mode=mode, **more) as client:
            yield client


@pytest.mark.requirement("NET-7b")
@pytest.mark.requirement("NET-1d")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_starts_it_and_gets_the_tools_of_whom_it_names(
    tmp_path: Path, mode: str
) -> None:
    text = tools(tmp_path, "a.loud", code=LOUD)
    write_handler(tmp_path / "tools", "a.staff", runtime={"requires": ["staff"]})
    config = write_config(tmp_path, text + SEARCHING)
    async with started(config, "--user", "ann", "--role", "staff", mode=mode) as client:
        before = await listed(client)
        await client.call_tool("tool_search", {"query": "select:a.loud,a.staff"})
        after = await listed(client)
        result = await client.call_tool("a.loud", {})
    assert (before, after) == (["tool_search"], ["tool_search", "a.loud", "a.staff"])
    assert result.structured_content == {"read": "", "user": "ann"}
    log = config.with_suffix(".log").read_text()
    assert [word in log for word in ("loud at import", "louder", "loudest")] == [True] * 3


async def test_edits_act_and_its_client_is_told(tmp_path: Path) -> None:
    told = asyncio.Event()

    async def hear(message: object) -> None:
        told.set()

    config = write_config(tmp_path, tools(tmp_path))
    async with started(config, mode="legacy", message_handler=hear) as client:
        assert "a.new" not in await listed(client)
        write_handler(tmp_path / "tools", "a.new")
        await told.wait()
        assert "a.new" in await listed(client)


@dataclass(frozen=True, slots=True)
class Process:
    """A bare process: what is written to it and read from it are lines."""

    process: asyncio.subprocess.Process

    def send(self, *lines: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.writelines(line + b"\n" for line in lines)

    async def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(await self.process.stdout.readline())
        return answer


@asynccontextmanager
async def bare(config: Path) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", START, "mcp", "--config", str(config)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(RUNTIME)},
    )
    try:
        async with asyncio.timeout(HANGS_S):
            yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


def message(number: int, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


async def test_lines_that_are_no_messages_are_answered_and_end_nothing(tmp_path: Path) -> None:
    async with bare(write_config(tmp_path, tools(tmp_path))) as process:
        process.send(b"{", b"", b"\xff", b"[1]", message(1, "initialize", **HELLO))
        codes = [(await process.read())["error"]["code"] for _ in range(3)]
        hello = await process.read()
        process.send(message(2, "tools/gone"), message(3, "tools/list"))
        answers = [await process.read(), await process.read()]
        assert process.process.stdin is not None
        process.process.stdin.close()
        assert await process.process.wait() == 0
    assert codes == [-32700] * 3
    assert hello["result"]["capabilities"] == {"tools": {"listChanged": True}}
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[2]["error"]["code"] == -32601
    assert len(by_id[3]["result"]["tools"]) == 4


@pytest.mark.requirement("REL-8")
async def test_a_signal_ends_it_while_its_client_is_silent(tmp_path: Path) -> None:
    async with bare(write_config(tmp_path, tools(tmp_path))) as process:
        process.send(message(1, "initialize", **HELLO))
        await process.read()
        process.process.send_signal(signal.SIGTERM)
        assert await process.process.wait() == 0


async def test_a_configuration_that_cannot_be_used_is_told_on_standard_error(
    tmp_path: Path,
) -> None:
    config = write_config(tmp_path, "[http]\nprot = 1\n")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", START, "mcp", "--config", str(config)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(RUNTIME)},
    )
    out, err = await process.communicate()
    assert (out, process.returncode != 0) == (b"", True)
    assert b"http.prot" in err


async def test_a_line_that_is_too_long_is_passed_over() -> None:
    read: list[SessionMessage | Exception] = []

    async def serve(requests: Read, answers: Write) -> None:
        async with answers, requests:
            read.extend([request async for request in requests])

    lines = [b"x" * 301, message(1, "ping"), b"y" * 90_000, message(2, "ping")]
    answers = io.BytesIO()
    await run_pipe(Ends(io.BytesIO(b"\n".join(lines)), answers), serve, most_line_bytes=300)
    assert [item.message.id for item in read if isinstance(item, SessionMessage)] == [1, 2]  # type: ignore[union-attr]
    errors = [json.loads(line)["error"]["message"] for line in answers.getvalue().splitlines()]
    assert errors == ["a line has more than 300 bytes, which is the most that is read"] * 2


async def test_a_client_that_does_not_read_ends_the_connection() -> None:
    closed = asyncio.Event()

    async def serve(requests: Read, answers: Write) -> None:
        try:
            async with answers, requests:
                async for request in requests:
                    assert isinstance(request, SessionMessage)
                    await answers.send(request)
                    await anyio.sleep_forever()
        finally:
            closed.set()

    class Gone(io.BytesIO):
        def write(self, data: object) -> int:
            raise BrokenPipeError

    await run_pipe(Ends(io.BytesIO(message(1, "ping") + b"\n"), Gone()), serve)
    assert closed.is_set()
