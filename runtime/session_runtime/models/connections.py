"""Keeps the connections to one service, at a cost per request that does not grow with their number.

The pool of the HTTP client looks at all its connections when a request begins and when it ends, and
asks the system about each idle one: with 50 asks in flight that was a quarter of the daemon's time.
"""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx2

IDLE_S: Final = 5.0
MAX_IDLE: Final = 100


@dataclass(frozen=True, slots=True)
class _Idle:
    connection: httpx2.AsyncHTTPTransport
    since: float

    def is_older(self, seconds: float) -> bool:
        return time.monotonic() - self.since >= seconds


class Connections(httpx2.AsyncBaseTransport):
    """A transport that gives each request a connection for itself: the one used last, or a new one.

    At most ``max_idle`` stay open unused, each for ``idle_s`` seconds after its last use; their number
    in use is not limited.
    """

    def __init__(
        self, verify: ssl.SSLContext, *, max_idle: int = MAX_IDLE, idle_s: float = IDLE_S
    ) -> None:
        self._verify = verify
        self._max_idle = max_idle
        self._idle_s = idle_s
        self._idle: deque[_Idle] = deque()
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; its connection is free again when the response is closed."""
        connection = self._idle.pop().connection if self._idle else self._new()
        opened = _Opened()
        request.extensions["trace"] = opened.trace
        try:
            with _faults_named():
                response = await connection.handle_async_request(request)
        except BaseException:
            await opened.aclose()
            await connection.aclose()
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Body(response.stream, connection, self)
        return response

    async def aclose(self) -> None:
        """Close what is idle now, and what is in use when its request ends."""
        self._closed = True
        await self._close_old()
        if self._timer is not None:
            self._timer.cancel()

    async def give_back(self, connection: httpx2.AsyncHTTPTransport) -> None:
        """Keep a connection for the next request, and close those that were not needed for long."""
        self._idle.append(_Idle(connection, time.monotonic()))
        await self._close_old()

    async def _close_old(self) -> None:
        limit = 0 if self._closed else self._max_idle
        while len(self._idle) > limit or (self._idle and self._idle[0].is_older(self._idle_s)):
            await self._idle.popleft().connection.aclose()
        if self._idle and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._when_old)

    def _when_old(self) -> None:
        self._timer = None
        closing = asyncio.create_task(self._close_old(), name="close idle connections")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _new(self) -> httpx2.AsyncHTTPTransport:
        limits = httpx2.Limits(max_connections=1, keepalive_expiry=self._idle_s)
        return httpx2.AsyncHTTPTransport(verify=self._verify, trust_env=False, limits=limits)


class _Opened:
    """What a request opened, as the HTTP library traces it.

    Until the TLS handshake is over the library does not hold it: of a request that is cancelled by then,
    it would stay open until it is collected as garbage.
    """

    def __init__(self) -> None:
        self._stream: Any = None  # an httpcore2.AsyncNetworkStream

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the connection; called by the library at each step of the request."""
        if event == "connection.connect_tcp.complete":
            self._stream = info["return_value"]

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


class _Body(httpx2.AsyncByteStream):
    """The body of a response, which holds its connection until it is closed."""

    def __init__(
        self,
        body: httpx2.AsyncByteStream,
        connection: httpx2.AsyncHTTPTransport,
        owner: Connections,
    ) -> None:
        self._body = body
        self._connection = connection
        self._owner = owner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _faults_named():
            async for piece in self._body:
                yield piece

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            await self._owner.give_back(self._connection)


@contextmanager
def _faults_named() -> Iterator[None]:
    """A fault of TLS in the middle of a connection, which the HTTP client does not know, is a ReadError."""
    try:
        yield
    except OSError as error:
        raise httpx2.ReadError(str(error)) from error
