"""Which messages are found in what servers print, and what becomes of the rest."""

import asyncio
import logging
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification

from session_runtime.mcp.framing import Line
from session_runtime.mcp.messages import UNREADABLE, read_line
from session_runtime.mcp.process import Command
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.mcp.stdio import Skipped, StdioTransport
from session_runtime.threads import in_thread
from tests.mcp.processes import (
    Talk,
    python,
    talking,
)

ANSWER = '{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "right"}]}}'


def says(folder: Path, output: str) -> Command:
    """A server that answers its first line with this, Latin-1, and goes on to listen."""
    code = (
        f"import sys, os; sys.stdin.readline(); os.write(1, {output.encode('latin-1')!r}); input()"
    )
    return python(folder, code)


async def answer_to_one(folder: Path, output: str) -> tuple[Any, Skipped]:
    async with talking(folder, says(folder, output)) as talk:
        return await talk.call("any"), talk.transport.skipped


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(
    "noise",
    [
        "Starting v1.2\n",
        '{"level": "info", "msg": "ready"}\n',
        '{"jsonrpc": "1.0", "id": 1, "result": {}}\n',
        '"text"\n',
        "[]\n",
        "\xff\xfe\n",
        "{\n",
    ],
)
async def test_lines_that_are_no_messages_are_skipped_and_counted(
    tmp_path: Path, noise: str
) -> None:
    text, skipped = await answer_to_one(tmp_path, noise + ANSWER + "\n")
    assert (text, skipped.count, len(skipped.first)) == ("right", 1, 1)


async def test_the_first_skipped_lines_are_kept_printable_short_and_without_secrets(
    tmp_path: Path,
) -> None:
    noise = "".join(f"{number} \x1b[31mhunter22 {'x' * 500}\n" for number in range(7))
    what = says(tmp_path, noise + ANSWER + "\n")
    what = Command("x", what.program, what.args, tmp_path, {"PASSWORD": "hunter22"})
    async with talking(tmp_path, what) as talk:
        await talk.call("any")
        skipped = talk.transport.skipped
    kept = tuple(f"{number} \\x1b[31m*** {'x' * 300}"[:200] + "…" for number in range(5))
    assert skipped == Skipped(7, kept)


async def test_the_first_skipped_line_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "session_runtime.mcp.stdio"):
        await answer_to_one(tmp_path, f"one\ntwo\n{ANSWER}\n")
    assert [record.getMessage() for record in caplog.records] == [
        "server 'x' writes to its standard output what is no message: 'one'; such lines are"
        " skipped and counted"
    ]


@pytest.mark.parametrize(
    "output",
    [
        "Starting v1.2" + ANSWER + "\n",
        "\xef\xbb\xbf" + ANSWER + "\n",
        "\x1b[2J\x1b[1;1H" + ANSWER + "\n",
        ANSWER + "\r\n",
        "\r\n\n  \n" + ANSWER + "\n",
        "[" + ANSWER + "]\n",
        ANSWER,
    ],
    ids=["banner", "byte order mark", "screen control", "CRLF", "blank lines", "batch", "no end"],
)
async def test_a_message_is_found_behind_what_is_in_front_of_it(
    tmp_path: Path, output: str
) -> None:
    what = says(tmp_path, output)
    if not output.endswith("\n"):
        what = python(tmp_path, f"import os; input(); os.write(1, {output.encode()!r})")
    async with talking(tmp_path, what) as talk:
        assert await talk.call("any") == "right"
        assert talk.transport.skipped == Skipped()


async def test_a_message_within_a_line_of_log_is_none_once_messages_came(tmp_path: Path) -> None:
    forged = ANSWER.replace('"id": 1', '"id": 2').replace("right", "forged")
    code = (
        f"import os; input(); os.write(1, {ANSWER.encode()!r} + b'\\n'); input();"
        f" os.write(1, b'echo: ' + {forged.encode()!r} + b'\\n');"
        f" os.write(1, {forged.replace('forged', 'true').encode()!r} + b'\\n'); input()"
    )
    async with talking(tmp_path, python(tmp_path, code)) as talk:
        assert [await talk.call("a"), await talk.call("b")] == ["right", "true"]
        assert talk.transport.skipped.count == 1


async def test_bytes_that_are_no_utf_8_become_replacement_characters(tmp_path: Path) -> None:
    text, _ = await answer_to_one(tmp_path, ANSWER.replace("right", "ri\xffght") + "\n")
    assert text == "ri\ufffdght"


async def test_lone_halves_of_surrogate_pairs_do_no_harm_in_either_direction(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, tools=("echo",)) as talk:
        assert await talk.call("echo", text="a\ud800b") == "a\ufffdb"


@pytest.mark.parametrize(
    "broken",
    [
        '{"jsonrpc": "2.0", "id": 1, "result": []}',
        '{"jsonrpc": "2.0", "id": 1, "result": {"text": "cut off',
        '{"result": {"x": tru}, "id": 1, "jsonrpc": "2.0"}',
        '{"jsonrpc": "2.0", "id": 1, "result": ' + "[" * 5_000 + "]" * 5_000 + "}",
    ],
    ids=["no object", "cut off", "no JSON", "too deep"],
)
async def test_a_broken_answer_ends_its_request_instead_of_leaving_it_waiting(
    tmp_path: Path, broken: str
) -> None:
    code, skipped = await answer_to_one(tmp_path, broken + "\n")
    assert (code, skipped) == (UNREADABLE, Skipped())


@pytest.mark.parametrize("id_first", [True, False])
async def test_an_answer_that_is_too_long_ends_its_request_and_the_connection_goes_on(
    tmp_path: Path, id_first: bool
) -> None:
    body = '"result": {"x": "%s"}'
    long = f'{{"jsonrpc": "2.0", "id": 1, {body}}}' if id_first else f'{{{body}, "id": 1}}'
    code = (
        f"import os, sys; input(); print({long!r} % ('x' * 300_000), flush=True); input();"
        f" os.write(1, {ANSWER.encode()!r} + b'\\n'); input()"
    )
    shown = Shown()
    transport = StdioTransport(
        python(tmp_path, code),
        os.environ,
        StderrLog(tmp_path / "x.log", shown),
        shown,
        max_line_bytes=200_000,
    )
    async with transport as (read, write):
        talk = Talk(transport, (read, write), tmp_path)
        assert await talk.call("big") == UNREADABLE
        await write.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x")))
        assert (await talk.answer())["content"] == [{"type": "text", "text": "right"}]


async def test_a_log_line_in_the_middle_of_a_call_does_not_disturb_it(tmp_path: Path) -> None:
    async with talking(tmp_path, tools=("print",)) as talk:
        assert await talk.call("print", text="GET / 200\n") == "printed"
        assert await talk.call("print", text="again\n") == "printed"
        assert talk.transport.skipped == Skipped(2, ("GET / 200", "again"))
        assert not talk.transport.lost.done()


async def test_the_loop_goes_on_while_a_long_line_is_read() -> None:
    row = b'{"id": 1, "name": "row", "value": 1.5}, '
    data = b'{"jsonrpc": "2.0", "id": 1, "result": {"rows": [' + row * 100_000 + b"0]}}"
    reading = in_thread("read", partial(read_line, Line((data,), len(data)), first=True))
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert len(reading.result()) == 1
    assert turns > 20  # one that holds the interpreter until it is done lets a handful pass
