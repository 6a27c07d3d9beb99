"""A small HTTP/1.1 server that can misbehave; what it answers is decided by its ``answer`` function."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import httptools

from session_runtime.testing.replies import Pace, RawReply


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[HttpRequest], Awaitable[RawReply]]


class Connection(asyncio.Protocol):
    """One connection: answers its requests one after the other and forgets them if the client leaves."""

    def __init__(self, answer: Answer, connections: set["Connection"]) -> None:
        self._answer = answer
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._path = ""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of ``asyncio.Protocol``."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of ``asyncio.Protocol``: whoever waits for a gate waits in vain."""
        self._connections.discard(self)
        self._lost.set()
        self._may_write.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        """Part of ``asyncio.Protocol``."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Part of ``asyncio.Protocol``."""
        self._may_write.set()

    def data_received(self, data: bytes) -> None:
        """Part of ``asyncio.Protocol``."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()

    def on_message_begin(self) -> None:
        """Part of the parser's protocol."""
        self._path, self._headers, self._body = "", {}, []

    def on_url(self, url: bytes) -> None:
        """Part of the parser's protocol."""
        self._path += url.decode("ascii", "replace")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of the parser's protocol."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        """Part of the parser's protocol."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Part of the parser's protocol."""
        method = self._parser.get_method().decode("ascii")
        request = HttpRequest(method, self._path, self._headers, b"".join(self._body))
        self._task = asyncio.create_task(self._respond(request), name="fake upstream reply")
        self._task.add_done_callback(self._finished)

    def close(self) -> None:
        """Close without ending the reply, once all that was written has left."""
        if self._transport is not None:
            self._transport.close()

    async def abort(self) -> None:
        """Close at once, whatever is still to be sent."""
        if self._transport is not None:
            self._transport.abort()
            await self.lost()

    async def lost(self) -> None:
        """Wait until the connection is closed, by either side."""
        await self._lost.wait()

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A reply that could not be made closes the connection and is told to the event loop."""
        if not task.cancelled() and task.exception() is not None:
            self.close()
            task.result()

    async def _respond(self, request: HttpRequest) -> None:
        reply = await self._answer(request)
        await _wait_for_start(reply.pace)
        if reply.pace.cut_after == 0:
            self.close()
            return
        whole = len(reply.pieces) == 1 and reply.pace.cut_after is None
        self._write(_head(reply, whole=whole))
        for number, piece in enumerate(reply.pieces, 1):
            if reply.pace.step is not None:
                await reply.pace.step.acquire()
            await self._may_write.wait()
            if piece:
                self._write(piece if whole else b"%x\r\n%b\r\n" % (len(piece), piece))
            if number == reply.pace.cut_after:
                self.close()
                return
        if not whole:
            self._write(b"0\r\n\r\n")

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


async def _wait_for_start(pace: Pace) -> None:
    if pace.delay_s:
        await asyncio.sleep(pace.delay_s)
    if pace.gate is not None:
        await pace.gate.wait()


def _head(reply: RawReply, *, whole: bool) -> bytes:
    known = {status.value: status.phrase for status in HTTPStatus}
    reason = known.get(reply.status, "Unknown")
    size = f"content-length: {len(reply.pieces[0])}" if whole else "transfer-encoding: chunked"
    lines = [f"HTTP/1.1 {reply.status} {reason}", size]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
