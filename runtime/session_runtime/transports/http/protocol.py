"""The HTTP parser's edge: bounds what arrives around bodies, in size, time and number (NET-5).

Bodies have bounds of their own, in ``body``.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from session_runtime.wire import to_bytes

MAX_HEAD_BYTES: Final = 32_768
HEAD_S: Final = 10.0
RETRY_S: Final = 1

Part = Literal["head", "body", "around chunks"]
"""What of a request arrives; around chunks stand their sizes, and after the last one the trailers."""


def _a_thousand() -> int:
    return 1_000


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """How many connections there may be, asked for with each new one, and how long one may idle.

    ``head_s`` is the time in seconds until the head of a request has come, from the moment of the
    connection or the end of the answer before.
    """

    most: Callable[[], int] = _a_thousand
    head_s: float = HEAD_S


class BoundedHttp(HttpToolsProtocol):
    """The protocol of uvicorn, which alone would gather a head without an end, and wait for it forever."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        bounds: ConnectionBounds,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._bounds = bounds
        self._part: Part = "head"
        self._counted = 0
        self._has_begun = False
        self._idle: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(  # type: ignore[override]  # as uvicorn narrows it itself
        self, transport: asyncio.Transport
    ) -> None:
        """Take a connection, unless there are too many; from now on it may not idle."""
        super().connection_made(transport)
        most = self._bounds.most()
        if len(self.connections) > most:
            self._refuse(
                503,
                "busy.connections",
                f"{most} connections are open, no more are taken: try again",
                {"retryable": True, "retry_after_s": float(RETRY_S)},
            )
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; refuse a head that is too large before it is complete."""
        self._counted += len(data)
        super().data_received(data)
        if self._part == "body":
            self._counted = 0
        elif self._counted > MAX_HEAD_BYTES and not self.transport.is_closing():
            what = "the request line and headers have"
            if self._part != "head":
                what = "what stands around the chunks of the body has"
            self._refuse(431, "request.head_too_large", f"{what} more than {MAX_HEAD_BYTES} bytes")

    def on_message_begin(self) -> None:
        """Take note that there is somebody to answer."""
        self._has_begun = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, which come after the body, are none (RFC 9110, 6.5.1)."""
        if self._part == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting: the body has its own bound."""
        self._count("body")
        self._wait_no_more()
        super().on_headers_complete()

    def on_chunk_header(self) -> None:
        """Count what comes until its content does: after the last chunk, that are trailers."""
        self._count("around chunks")

    def on_body(self, body: bytes) -> None:
        """Stop counting again."""
        self._count("body")
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """Count the size of the next chunk, and what may stand beside it."""
        self._count("around chunks")

    def on_message_complete(self) -> None:
        """Count again: what follows is the head of the next request."""
        self._count("head")
        self._has_begun = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, and for the rest of this one if it was answered before its end."""
        super().on_response_complete()
        if not self.pipeline:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(400, "request.http", msg)

    def _count(self, part: Part) -> None:
        self._part = part
        self._counted = 0

    def _wait(self) -> None:
        self._wait_no_more()
        self._idle = self.loop.call_later(self._bounds.head_s, self._waited)

    def _wait_no_more(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _waited(self) -> None:
        """Give the connection up, unless its client still reads the last answer."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent != self._unsent:
            self._unsent = unsent
            self._wait()
        elif unsent or self.transport.is_closing() or not self._has_begun:
            self.transport.abort()
        else:
            message = f"the request did not arrive within {self._bounds.head_s:g} seconds"
            self._refuse(408, "request.timeout", message)

    def _refuse(
        self, status: int, code: str, message: str, more: dict[str, object] | None = None
    ) -> None:
        """Answer, unless an answer is under way that this would end up in, and close."""
        if self._may_answer:
            error = {"code": code, "message": message, "retryable": False, **(more or {})}
            body = to_bytes({"error": error})
            retry = b"retry-after: %d\r\n" % RETRY_S if more else b""
            head = (
                b"content-type: application/json\r\nconnection: close\r\n%bcontent-length: %d\r\n\r\n"
                % (retry, len(body))
            )
            self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()

    @property
    def _may_answer(self) -> bool:
        if self.cycle is None:
            return True  # type: ignore[unreachable]  # uvicorn has none before the first request
        if self._part == "head":
            return self.cycle.response_complete
        return not (self.pipeline or self.cycle.response_started)
