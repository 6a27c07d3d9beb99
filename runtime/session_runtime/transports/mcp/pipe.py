"""A pipe that speaks MCP: one message per line, each of bounded length, read and written in threads.

Imported late. Nothing else in this process can write to it: what handlers and their children print goes to
standard error.
"""

import logging
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Final

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from session_runtime.threads import Worker

MOST_LINE_BYTES: Final = 4 * 1024 * 1024
_log = logging.getLogger(__name__)

Read = MemoryObjectReceiveStream[SessionMessage | Exception]
Write = MemoryObjectSendStream[SessionMessage]
Serve = Callable[[Read, Write], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Ends:
    """Where requests come from and answers go to."""

    requests: BinaryIO
    answers: BinaryIO


def claim_standard_streams() -> Ends:
    """Take standard input and output for the protocol, for the rest of this process's life.

    From then on whoever reads standard input finds its end, and what is printed goes to standard error.
    """
    sys.stdout.flush()
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    # a thread may still wait for a line when all is over: what it waits at must not be closed
    return Ends(os.fdopen(requests, "rb", closefd=False), os.fdopen(answers, "wb", closefd=False))


async def run_pipe(ends: Ends, serve: Serve, most_line_bytes: int = MOST_LINE_BYTES) -> None:
    """Let ``serve`` talk to the client until there is nothing more to read, or nobody reads."""
    requests_in, requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, answers_out = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read_all, ends.requests, most_line_bytes, requests_in, answers.clone())
        group.start_soon(_write_all, answers_out, ends.answers, group)
        await serve(requests, answers)


async def _read_all(
    file: BinaryIO,
    most_bytes: int,
    requests: MemoryObjectSendStream[SessionMessage | Exception],
    answers: Write,
) -> None:
    worker = Worker()
    async with requests, answers:
        while (
            line := await worker.run("read a request", partial(_next, file, most_bytes))
        ) is not None:
            try:
                if isinstance(line, types.JSONRPCError):
                    await answers.send(SessionMessage(line))
                else:
                    await requests.send(line)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


def _next(file: BinaryIO, most_bytes: int) -> SessionMessage | types.JSONRPCError | None:
    """The next message, what is wrong with it, or None at the end; blank lines are passed over."""
    while line := file.readline(most_bytes + 1):
        if len(line) > most_bytes:
            _skip(file, line)
            return _wrong(
                f"a line has more than {most_bytes} bytes, which is the most that is read"
            )
        if line.strip():
            return _message(line)
    return None


def _message(line: bytes) -> SessionMessage | types.JSONRPCError:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return _wrong("a line is no JSON-RPC message")


def _skip(file: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = file.readline(MOST_LINE_BYTES)


def _wrong(what: str) -> types.JSONRPCError:
    return types.JSONRPCError(
        jsonrpc="2.0", id=None, error=types.ErrorData(code=types.PARSE_ERROR, message=what)
    )


async def _write_all(
    answers: MemoryObjectReceiveStream[SessionMessage], file: BinaryIO, group: TaskGroup
) -> None:
    worker = Worker()
    async with answers:
        async for answer in answers:
            try:
                await worker.run("write an answer", partial(_put, file, answer))
            except OSError as error:
                _log.warning("the MCP client does not read any more: %s", error)
                group.cancel_scope.cancel()
                return


def _put(file: BinaryIO, answer: SessionMessage) -> None:
    text = answer.message.model_dump_json(by_alias=True, exclude_unset=True)
    file.write(f"{text}\n".encode())
    file.flush()
