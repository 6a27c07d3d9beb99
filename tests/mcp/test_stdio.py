"""What is said to and by servers over their pipes, well-behaved ones and others."""

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from session_runtime.errors import PermanentError
from session_runtime.mcp import stdio
from session_runtime.mcp.process import Command
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.mcp.stdio import StdioTransport
from session_runtime.testing.mcp_servers.raw import orphan_maker, raw_server
from session_runtime.testing.mcp_servers.script import Script
from tests.mcp.processes import (
    BRIEF_S,
    command,
    members,
    python,
    state,
    talking,
    until,
)

ANSWER = '{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "right"}]}}'


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_the_client_of_the_sdk_speaks_over_it_in_every_era(tmp_path: Path, mode: Any) -> None:
    what = command(tmp_path, tools=("echo",))
    shown = Shown()
    log = StderrLog(tmp_path / "x.log", shown)
    async with Client(StdioTransport(what, os.environ, log, shown), mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
        result = await client.call_tool("echo", {"text": "你好"})
    assert result.content[0].text == "你好"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({}, "it exited with status 3"), ({"signal": signal.SIGKILL}, "it was ended by SIGKILL")],
)
async def test_a_server_that_dies_during_a_call_ends_the_stream_and_says_how(
    tmp_path: Path, arguments: dict[str, Any], words: str
) -> None:
    async with talking(tmp_path, tools=("die",)) as talk:
        with pytest.raises(EOFError):
            await talk.call("die", **arguments)
        assert await talk.transport.lost == words
        assert talk.transport.pid is not None
    assert state(talk.transport.pid) == ""


async def test_what_a_server_says_just_before_it_ends_is_heard(tmp_path: Path) -> None:
    code = f"import os; input(); os.write(1, {ANSWER.encode()!r} + b'\\n'); os._exit(0)"
    async with talking(tmp_path, python(tmp_path, code)) as talk:
        assert await talk.call("any") == "right"
        assert await talk.transport.lost == "it exited with status 0"


@pytest.mark.parametrize(
    ("number", "words"), [(1, "it closed its output"), (0, "it closed its input")]
)
async def test_a_server_that_lets_go_of_a_pipe_is_lost_and_ended(
    tmp_path: Path, number: int, words: str
) -> None:
    code = f"import os, signal; os.close({number}); signal.pause()"
    async with talking(tmp_path, python(tmp_path, code), grace_s=BRIEF_S) as talk:
        assert await talk.transport.lost == words
        assert talk.transport.pid is not None
        await until(lambda: state(talk.transport.pid or 0) == "")


@pytest.mark.requirement("RTE-6")
async def test_a_wrapper_that_dies_takes_the_server_behind_it_along(tmp_path: Path) -> None:
    what = command(tmp_path, orphan_maker(Script(ignores=("eof", "sigterm"))))
    async with talking(tmp_path, what, grace_s=BRIEF_S) as talk:
        assert await talk.call("echo", text="there") == "there"
        assert talk.transport.pid is not None
        os.kill(talk.transport.pid, signal.SIGKILL)
        assert await talk.transport.lost == "it was ended by SIGKILL"
        await until(lambda: members(talk.transport.pid or 0) == [])


@pytest.mark.requirement("RTE-6")
async def test_leaving_ends_the_server_behind_a_wrapper(tmp_path: Path) -> None:
    what = command(tmp_path, orphan_maker(Script(ignores=("eof", "sigterm"))))
    async with talking(tmp_path, what, grace_s=BRIEF_S) as talk:
        assert await talk.call("echo", text="there") == "there"
        assert talk.transport.pid is not None
    await until(lambda: members(talk.transport.pid or 0) == [])
    assert not talk.transport.lost.done()


async def test_a_server_whose_daemon_was_killed_sees_the_end_of_its_input(tmp_path: Path) -> None:
    program, args = raw_server()
    code = (
        "import asyncio, os, sys; from pathlib import Path;"
        " from session_runtime.mcp.process import Command, start\n"
        "async def main():\n"
        f"    child = await start(Command('x', {program!r}, {args!r}, Path('/')), os.environ)\n"
        "    print(child.pid, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())"
    )
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env=with_package()
    )
    assert daemon.stdout is not None
    pid = int(await daemon.stdout.readline())
    daemon.kill()
    await daemon.wait()
    await until(lambda: state(pid) in ("", "Z"))


def with_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(stdio.__file__).parents[2])}


async def test_leaving_that_is_cancelled_still_leaves_nothing(tmp_path: Path) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()
    pids: list[int] = []

    async def owner() -> None:
        what = command(tmp_path, ignores=("eof", "sigterm"))
        async with talking(tmp_path, what, grace_s=BRIEF_S) as talk:
            await talk.call("echo", text="there")
            pids.append(talk.transport.pid or 0)
            entered.set()
            await leave.wait()

    task = asyncio.create_task(owner())
    await entered.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait((task,))
    assert task.cancelled()
    assert state(pids[0]) == ""


@pytest.mark.requirement("REL-8c")
def test_a_loop_that_ends_leaves_no_server(tmp_path: Path) -> None:
    pids: list[int] = []

    async def owner() -> None:
        what = command(tmp_path, ignores=("eof", "sigterm"))
        async with talking(tmp_path, what, grace_s=BRIEF_S) as talk:
            await talk.call("echo", text="there")
            pids.append(talk.transport.pid or 0)
            await asyncio.Event().wait()

    async def main() -> None:
        owners.append(asyncio.create_task(owner()))
        await until(lambda: bool(pids))

    owners: list[asyncio.Task[None]] = []
    asyncio.run(main())
    assert owners[0].cancelled()
    assert state(pids[0]) in ("", "Z")
    assert members(pids[0]) == []


async def test_a_server_that_cannot_start_is_refused_on_entering(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match=r"^mcp\.servers\.x\.command: 'no-such-program' "):
        async with talking(tmp_path, Command("x", "no-such-program", (), tmp_path)):
            pass


async def test_a_server_that_does_not_read_holds_up_nothing_but_what_is_sent_to_it(
    tmp_path: Path,
) -> None:
    what = python(tmp_path, "import signal; signal.pause()")
    async with talking(tmp_path, what, grace_s=BRIEF_S) as talk:
        sending = asyncio.create_task(talk.send("x", text="x" * 3_000_000))
        await sending
        assert not talk.transport.lost.done()
    assert state(talk.transport.pid or 0) == ""


async def test_a_server_that_floods_a_client_that_left_can_still_end(tmp_path: Path) -> None:
    code = "import sys\nfor line in sys.stdin: sys.stdout.write('x' * 999_999 + '\\n')"
    async with talking(tmp_path, python(tmp_path, code), grace_s=30) as talk:
        await talk.send("x")
    assert state(talk.transport.pid or 0) == ""


async def test_what_a_server_writes_to_its_standard_error_is_in_its_log(tmp_path: Path) -> None:
    what = command(tmp_path, tools=("warn", "die"))
    async with talking(tmp_path, what) as talk:
        await talk.call("warn", text="low on memory\nTraceback: no end of line")
        with pytest.raises(EOFError):
            await talk.call("die")
        await talk.transport.lost
    lines = [line.partition(" ")[2] for line in talk.log.read_text("utf-8").splitlines()]
    assert lines == ["low on memory", "Traceback: no end of line"]


async def test_the_last_words_of_a_server_that_ends_are_in_its_log(tmp_path: Path) -> None:
    code = "import os; input(); os.write(2, b'trace\\n' * 10_000); os._exit(1)"
    async with talking(tmp_path, python(tmp_path, code)) as talk:
        await talk.send("any")
        assert await talk.transport.lost == "it exited with status 1"
    assert talk.log.read_text("utf-8").count("trace") == 10_000


async def test_a_long_line_is_read_in_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()
    read = stdio.read_line

    def noted(*args: Any, **more: Any) -> Any:
        threads.add(threading.current_thread().name)
        return read(*args, **more)

    monkeypatch.setattr(stdio, "read_line", noted)
    async with talking(tmp_path, tools=("big",)) as talk:
        assert await talk.call("big", bytes=20_000_000) == "x" * 20_000_000
        assert threads == {"reading a message"}
        await talk.call("big", bytes=10)
        assert threads == {"reading a message", "MainThread"}


async def test_messages_arrive_in_the_order_they_were_sent_in_however_long_they_are(
    tmp_path: Path,
) -> None:
    messages = [
        json.dumps({"jsonrpc": "2.0", "id": number, "result": {"x": "x" * size}})
        for number, size in enumerate((300_000, 1, 100_000, 1, 1))
    ]
    output = "\\n".join(messages)
    code = f"import sys; print('{output}', flush=True); input()"
    (tmp_path / "srv.py").write_text(code, encoding="utf-8")
    what = command(tmp_path, (sys.executable, ("-S", "srv.py")))
    ids = []
    async with talking(tmp_path, what) as talk:
        async for item in talk.streams[0]:
            assert isinstance(item, SessionMessage)
            assert isinstance(item.message, JSONRPCResponse)
            ids.append(item.message.id)
            if len(ids) == len(messages):
                break
    assert ids == [0, 1, 2, 3, 4]
