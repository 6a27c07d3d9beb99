"""What is said to and by a process over its pipes: a transport for the client of the SDK (RTE-6, RTE-7).

Public: ``StdioTransport``, ``Skipped``. The process is started and ended in ``process``, its lines are cut
in ``framing`` and read in ``messages``, what it says beside the protocol is kept in ``stderr_log``.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCRequest

from session_runtime.mcp.faults import Fault
from session_runtime.mcp.framing import MAX_LINE_BYTES, Framer, Line
from session_runtime.mcp.messages import NoMessage, read_line, to_line
from session_runtime.mcp.own_errors import OwnErrors
from session_runtime.mcp.process import GRACE_S, Child, Command, start, to_the_end
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.threads import aside

_log = logging.getLogger(__name__)

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]

_CHUNK_BYTES: Final = 64 * 1024
_READ_AT_ONCE_BYTES: Final = 64 * 1024
_KEPT_LINES: Final = 5
_KEPT_CHARS: Final = 200
_TURN_LINES: Final = 100  # without a message, before others get their turn
_LAST_WORDS_S: Final = 0.25
_PACE_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Skipped:
    """How many lines of a server's output were no messages, and how the ``first`` of them begin."""

    count: int = 0
    first: tuple[str, ...] = ()


class StdioTransport:
    """Starts a process and speaks with it; ``async with`` gives the streams that a Client takes.

    It is made on the event loop, entered once and left in the same task. Entering raises what
    ``process.start`` raises. ``lost`` gets a sentence as soon as the process is over, its output ended, or
    its input was closed: then its group is ended at once, without waiting for the owner to leave. Leaving
    takes four times ``grace_s`` at most, also if it is cancelled, and nothing of the group is left.
    """

    def __init__(
        self,
        command: Command,
        inherited: Mapping[str, str],
        log: StderrLog,
        shown: Shown,
        *,
        grace_s: float = GRACE_S,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.lost: Final[asyncio.Future[str]] = asyncio.get_running_loop().create_future()
        self._command = command
        self._inherited = inherited
        self._log = log
        self._shown = shown
        self._grace_s = grace_s
        self._framer = Framer(max_line_bytes)
        self._skipped = Skipped()
        self._had_message = False
        self._child: Child | None = None
        self._closing: asyncio.Task[None] | None = None
        self._losing = False
        self._own = OwnErrors()

    def fault_in(self, data: object) -> Fault | None:
        """The fault that an error of this transport tells in its data; None for errors of the server."""
        return self._own.fault_in(data)

    @property
    def pid(self) -> int | None:
        """The process, and the group of processes that it leads; None before it was started."""
        return None if self._child is None else self._child.pid

    @property
    def skipped(self) -> Skipped:
        """The lines that were no messages."""
        return self._skipped

    async def __aenter__(self) -> Streams:
        child = self._child = await start(self._command, self._inherited)
        pipes = self._pipes = _Pipes(child)
        self._reading = self._task("reading from", self._read(child, pipes))
        self._writing = self._task("writing to", self._write(child, pipes))
        self._logging = self._task("log of", self._keep_log(child))
        self._watching = self._task("watching", self._watch(child))
        return pipes.from_server, pipes.to_server

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pipes.from_server.close()  # what is still on its way is read, and left
        with anyio.CancelScope(shield=True):
            await to_the_end(self._close_soon())
        self._pipes.close()

    def _task(self, what: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(work, name=f"{what} server {self._command.server}")

    def _close_soon(self) -> asyncio.Task[None]:
        if self._closing is None:
            self._closing = self._task("closing", self._close())
        return self._closing

    async def _close(self) -> None:
        """Let what was accepted be sent, end the process, then all that is around it."""
        child = self._pipes.child
        try:
            if self._losing:
                await asyncio.wait((self._watching,))
            self._pipes.to_server.close()
            await asyncio.wait((self._writing,), timeout=self._grace_s / 2)
            await child.end(self._grace_s)
            await asyncio.wait((self._reading, self._logging), timeout=self._grace_s / 2)
        finally:
            child.kill()
            for task in (self._reading, self._writing, self._logging, self._watching):
                task.cancel()
        await self._log.aclose()

    async def _watch(self, child: Child) -> None:
        """Tell that the connection is lost, once what was said last has been read, and close."""
        await asyncio.wait((*child.signs, self._reading), return_when=asyncio.FIRST_COMPLETED)
        if self._closing is not None:
            return  # it is being ended
        self._losing = True
        await asyncio.wait((self._reading, child.over), timeout=_LAST_WORDS_S)
        if (why := child.ended) is None:
            why = "it closed its output" if self._reading.done() else "it closed its input"
        if not self.lost.done():
            self.lost.set_result(why)
        self._close_soon()

    async def _read(self, child: Child, pipes: "_Pipes") -> None:
        with pipes.to_client, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while data := await child.stdout.read(_CHUNK_BYTES):
                await self._deliver(self._framer.feed(data), pipes.to_client)
            if last := self._framer.end():
                await self._deliver([last], pipes.to_client)
        pipes.to_server.close()  # nobody would hear the answer
        while await child.stdout.read(_CHUNK_BYTES):
            pass  # the client has left: a server that must get rid of its output can still end

    async def _deliver(
        self, lines: list[Line], to_client: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        for number, line in enumerate(lines):
            for message in await self._messages(line):
                self._had_message = True
                await to_client.send(SessionMessage(message))
            if number % _TURN_LINES == _TURN_LINES - 1:
                await asyncio.sleep(0)

    async def _messages(self, line: Line) -> tuple[JSONRPCMessage, ...]:
        read = partial(read_line, line, first=not self._had_message)
        try:
            if line.size > _READ_AT_ONCE_BYTES:
                return await aside("reading a message", read)
            return read()
        except NoMessage as error:
            self._skip(str(error))
            return ()

    def _skip(self, text: str) -> None:
        count, first = self._skipped.count + 1, self._skipped.first
        if count <= _KEPT_LINES:
            first = (*first, self._shown(text, _KEPT_CHARS))
        if count == 1:
            _log.warning(
                "server %r writes to its standard output what is no message: %r; such lines are"
                " skipped and counted",
                self._command.server,
                first[0],
            )
        self._skipped = Skipped(count, first)

    async def _write(self, child: Child, pipes: "_Pipes") -> None:
        """Send on what the client says, which hears of the end of the process only when this is over."""
        with pipes.not_sent, pipes.from_client, suppress(OSError):
            async for item in pipes.from_client:
                child.stdin.write(to_line(item.message))
                if (
                    child.stdin.is_closing()
                ):  # it was so before, or nothing of this could be written
                    await self._tell_not_sent(item.message, pipes.not_sent)
                    return
                await child.stdin.drain()

    async def _tell_not_sent(
        self,
        message: JSONRPCMessage,
        not_sent: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Answer a request that did not reach the process, so that nobody thinks that it may have run."""
        if isinstance(message, JSONRPCRequest):
            error = ErrorData(**self._own.error("unreachable", "it has closed its input"))
            answer = JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await not_sent.send(SessionMessage(answer))

    async def _keep_log(self, child: Child) -> None:
        while data := await child.stderr.read(_CHUNK_BYTES):
            if not self._log.write(data):
                await asyncio.sleep(_PACE_S)


class _Pipes:
    """A process, and both ends of both streams between the client and it."""

    def __init__(self, child: Child) -> None:
        self.child: Final = child
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        self.to_client: Final = to_client
        self.not_sent: Final = to_client.clone()
        self.from_server: Final = from_server
        self.to_server: Final = to_server
        self.from_client: Final = from_client

    def close(self) -> None:
        """Close all ends."""
        self.to_client.close()
        self.not_sent.close()
        self.from_server.close()
        self.to_server.close()
        self.from_client.close()
