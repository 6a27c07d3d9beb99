"""The HTTP parser's edge: bounds what arrives around bodies, in size, time and number (NET-5).

Bodies have bounds of their own, in ``body``.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from session_runtime.wire import to_bytes

MAX_HEAD_BYTES: Final = 32_768
MAX_HEADERS: Final = 128
HEAD_S: Final = 10.0
BODY_S: Final = 30.0
KEEP_S: Final = 5.0
LEAST_READ: Final = 1_024
"""Who reads an answer takes so many bytes at least whenever that is looked at."""
PROBED: Final = frozenset({b"/healthz", b"/readyz", b"/metrics"})
"""What is answered although all connections are taken: how the daemon is."""
RETRY_S: Final = 1
LINGERS_S: Final = 2.0
"""How long a client that is turned away may take to read why."""

MOST_LINGERING: Final = 128
_VERSIONS: Final = ("1.0", "1.1")
_END_OF_HOST: Final = re.compile(rb"[/?#]")

Part = Literal["head", "body", "around chunks"]
"""What of a request arrives; around chunks stand their sizes, and after the last one the trailers."""


def _a_thousand() -> int:
    return 1_000


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """How many connections there may be, asked for with each new one, and how long one may idle.

    ``head_s`` is the time in seconds until the head of a request has come, from the moment of the
    connection or the end of the answer before; ``body_s`` that until the rest of a request has come which
    was answered before its end; ``write_s`` how long nobody need read what is sent, and ``keep_s`` how long
    a connection is kept for another request. ``for_probes`` more connections are taken, which are answered
    ``PROBED`` alone.
    """

    most: Callable[[], int] = _a_thousand
    head_s: float = HEAD_S
    body_s: float = BODY_S
    write_s: float = BODY_S
    keep_s: float = KEEP_S
    for_probes: int = 8


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
        self.timeout_keep_alive = bounds.keep_s  # type: ignore[assignment]  # it is only waited for
        self._part: Part = "head"
        self._counted = 0
        self._headers_seen = 0
        self._has_begun = False
        self._idle: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._has_arrived = False
        self._answered_at = 0.0
        self._is_for_probes = False
        self.is_turned_away = False

    def connection_made(  # type: ignore[override]  # as uvicorn narrows it itself
        self, transport: asyncio.Transport
    ) -> None:
        """Take a connection, unless there are too many; from now on it may not idle."""
        super().connection_made(transport)
        most = self._bounds.most()
        taken = self._taken(most)
        self._is_for_probes = taken > most
        if taken > most + self._bounds.for_probes:
            lingering = len(self.connections) - taken
            self._turn_away(_too_many(most), may_linger=lingering < MOST_LINGERING)
        else:
            self._wait()

    def _taken(self, most: int) -> int:
        """How many connections there are, beyond ``most`` without those that are turned away."""
        count = len(self.connections)
        if count <= most:
            return count
        ours = (each for each in self.connections if isinstance(each, BoundedHttp))
        return count - sum(each.is_turned_away for each in ours)

    def _turn_away(self, refusal: "_Refusal", *, may_linger: bool) -> None:
        """Answer before anything is read, and end when the client has.

        What it sends meanwhile is thrown away: closed over that, the connection would be reset, and the
        answer lost.
        """
        self.is_turned_away = True
        self._write(refusal)
        if may_linger:
            self.transport.write_eof()
            self._idle = self.loop.call_later(LINGERS_S, self.transport.abort)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._wait_no_more()
        self._write_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; refuse a head that is too large before it is complete."""
        if self.is_turned_away:
            return
        self._counted += len(data)
        self._has_arrived = True
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
        self._headers_seen = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers, which come after the body, are none (RFC 9110, 6.5.1)."""
        if self._part != "head":
            return
        self._headers_seen += 1
        if self._headers_seen <= MAX_HEADERS:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop counting: the body has its own bound. See who answers, if there are too many."""
        if self.parser.get_http_version() not in _VERSIONS:
            raise ValueError("another version of HTTP")  # told as what is not HTTP
        self._count("body")
        self._wait_no_more()
        self._take_host_of_target()
        self.app = self._refusal() or self.config.loaded_app
        super().on_headers_complete()

    def _take_host_of_target(self) -> None:
        """Where a target is absolute, its host is the one that is asked for (RFC 9112, 3.2.2)."""
        scheme, _, rest = self.url.partition(b"://")
        if rest and not scheme.startswith(b"/"):
            host = _END_OF_HOST.split(rest, maxsplit=1)[0]
            self.headers[:] = [(n, host if n == b"host" else v) for n, v in self.headers]

    def _refusal(self) -> "_Refusal | None":
        """What answers a request that the application is not to see."""
        if not self._may_ask():
            return _too_many(self._bounds.most())
        if self._headers_seen <= MAX_HEADERS:
            return None
        told = f"the request has {self._headers_seen} headers, at most {MAX_HEADERS} are read"
        return _Refusal(431, "request.head_too_large", told)

    def _may_ask(self) -> bool:
        most = self._bounds.most()
        self._is_for_probes = self._is_for_probes and self._taken(most) > most
        return not self._is_for_probes or self.url.partition(b"?")[0] in PROBED

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
            self._answered_at = self.loop.time()
            self._wait()

    def pause_writing(self) -> None:
        """Nothing more can be sent, as what was sent is not read; that may not last."""
        super().pause_writing()
        if self._stuck is None:
            self._look_again_at(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """What was sent is read."""
        self._write_on()
        super().resume_writing()

    def _look_again_at(self, unsent: int) -> None:
        self._stuck = self.loop.call_later(self._bounds.write_s, self._look_at_reader, unsent)

    def _look_at_reader(self, before: int) -> None:
        """Give up a client that reads nothing, or hardly anything."""
        unsent = self.transport.get_write_buffer_size()
        if before - unsent < LEAST_READ:
            self.transport.abort()
        else:
            self._look_again_at(unsent)

    def _write_on(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

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
        """Give the connection up, unless its client still reads the last answer, or sends what it is to."""
        unsent = self.transport.get_write_buffer_size()
        is_read = unsent > 0 and (self._unsent == 0 or self._unsent - unsent >= LEAST_READ)
        if is_read or self._still_arrives():
            self._unsent = unsent
            self._wait()
        elif unsent or self.transport.is_closing() or not self._has_begun:
            self.transport.abort()
        else:
            message = f"the request did not arrive within {self._bounds.head_s:g} seconds"
            self._refuse(408, "request.timeout", message)

    def _still_arrives(self) -> bool:
        """Whether the rest of a request comes, which was answered before its end, and may still do so."""
        arrived, self._has_arrived = self._has_arrived, False
        is_late = self.loop.time() - self._answered_at > self._bounds.body_s
        return self._part != "head" and arrived and not is_late

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._send(_Refusal(status, code, message))

    def _send(self, refusal: "_Refusal") -> None:
        """Answer, unless an answer is under way that this would end up in, and close."""
        if self._may_answer:
            self._write(refusal)
        self.transport.close()

    def _write(self, refusal: "_Refusal") -> None:
        lines = (b"%b: %b\r\n" % header for header in refusal.headers)
        head = STATUS_LINE[refusal.status] + b"".join(lines) + b"\r\n"
        self.transport.write(head + refusal.body)

    @property
    def _may_answer(self) -> bool:
        if self.cycle is None:
            return True  # type: ignore[unreachable]  # uvicorn has none before the first request
        if self._part == "head":
            return self.cycle.response_complete
        return not (self.pipeline or self.cycle.response_started)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """An answer after which the connection ends: as bytes, or to one request (ASGI)."""

    status: int
    code: str
    message: str
    is_busy: bool = False

    @property
    def body(self) -> bytes:
        error: dict[str, object] = {"code": self.code, "message": self.message}
        busy = {"retryable": True, "retry_after_s": float(RETRY_S)}
        return to_bytes({"error": error | (busy if self.is_busy else {"retryable": False})})

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        retry = [(b"retry-after", b"%d" % RETRY_S)] if self.is_busy else []
        return [
            (b"content-type", b"application/json"),
            (b"connection", b"close"),
            *retry,
            (b"content-length", b"%d" % len(self.body)),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


def _too_many(most: int) -> _Refusal:
    told = f"{most} connections are open, no more are taken: try again"
    return _Refusal(503, "busy.connections", told, is_busy=True)
