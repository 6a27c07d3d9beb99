"""Keeps the connections to one service, at a cost per request that does not grow with their number.

The pool of the HTTP client looks at all its connections when a request begins and when it ends, and
asks the system about each idle one: with 50 asks in flight that was a quarter of the daemon's time.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import h11
import httpcore2
import httpx2

from session_runtime.models.sockets import Socket

IDLE_S: Final = 5.0
MAX_IDLE: Final = 100

_KINDS: Final[Mapping[type[Exception], type[httpx2.TransportError]]] = {
    httpcore2.ConnectTimeout: httpx2.ConnectTimeout,
    httpcore2.ReadTimeout: httpx2.ReadTimeout,
    httpcore2.WriteTimeout: httpx2.WriteTimeout,
    httpcore2.PoolTimeout: httpx2.PoolTimeout,
    httpcore2.ConnectError: httpx2.ConnectError,
    httpcore2.ReadError: httpx2.ReadError,
    httpcore2.WriteError: httpx2.WriteError,
    httpcore2.LocalProtocolError: httpx2.LocalProtocolError,
    httpcore2.RemoteProtocolError: httpx2.RemoteProtocolError,
    httpcore2.UnsupportedProtocol: httpx2.UnsupportedProtocol,
    httpcore2.ConnectionNotAvailable: httpx2.ConnectError,
}
"""What the HTTP client calls the faults of the library below it."""


_BROKEN: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
_Event = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED] | h11.RemoteProtocolError
_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})


@dataclass(frozen=True, slots=True)
class _Connection:
    """A connection that is open, and its socket."""

    http: "_Http"
    socket: Socket

    @property
    def reusable(self) -> bool:
        """Whether its last response came whole, with nothing behind it."""
        return self.http.is_idle() and self.http.drained and self.socket.quiet

    async def aclose(self) -> None:
        await self.http.aclose()


class _Http(httpcore2.AsyncHTTP11Connection):
    """HTTP on one connection; the library does not tell what is left behind a response.

    Servers send each event of a stream as a chunk. The library hands on every chunk by itself, through
    six iterators; here all chunks that have arrived are one piece.
    """

    @property
    def drained(self) -> bool:
        """Whether nothing was taken from the socket that no response holds."""
        left, _ = self._h11_state.trailing_data
        return not left

    async def _receive_response_body(self, request: httpcore2.Request) -> AsyncGenerator[bytes]:
        timeout = request.extensions.get("timeout", {}).get("read")
        while True:
            pieces, event = self._arrived(await self._receive_event(timeout))
            if pieces:
                yield b"".join(pieces)
            if isinstance(event, h11.RemoteProtocolError):
                raise httpcore2.RemoteProtocolError(str(event)) from event
            if event is not h11.NEED_DATA:
                return

    def _arrived(self, event: _Event) -> tuple[list[bytes], _Event]:
        """The data from this event on, and what stands behind it: an event, or the fault there."""
        pieces: list[bytes] = []
        try:
            while isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
                event = self._h11_state.next_event()
        except h11.RemoteProtocolError as error:
            return pieces, error
        return pieces, event


@dataclass(frozen=True, slots=True)
class _Idle:
    connection: _Connection
    since: float

    @property
    def age_s(self) -> float:
        return _now() - self.since


class Connections(httpx2.AsyncBaseTransport):
    """A transport that gives each request a connection for itself: the one used last, or a new one.

    At most ``max_idle`` stay open unused, each for ``idle_s`` seconds after its last use; their number
    in use is not limited. Cookies are dropped: they would lead from one ask to another.
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
        """Send one request; its connection is free again when the response is closed.

        A connection that was kept may be closed by the service at the moment it is used again: if it
        breaks before a byte of the response has come, the request is sent once more on a new one.
        """
        kept = await self._alive()
        if kept is not None:
            try:
                return await self._exchange(kept, request)
            except _BROKEN:
                if kept.socket.answered:
                    raise
        return await self._exchange(await self._open(request), request)

    async def _exchange(self, connection: _Connection, request: httpx2.Request) -> httpx2.Response:
        try:
            with _faults_named():
                response = await connection.http.handle_async_request(_as_core(request))
                connection.socket.end_head()
        except BaseException:
            await connection.aclose()
            raise
        assert isinstance(response.stream, AsyncIterable)
        return httpx2.Response(
            response.status,
            headers=[field for field in response.headers if field[0].lower() not in _COOKIES],
            stream=_Body(response.stream, connection, self),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close what is idle now, and what is in use when its request ends."""
        self._closed = True
        await self._close_old()
        if self._timer is not None:
            self._timer.cancel()

    async def give_back(self, connection: _Connection) -> None:
        """Keep a connection for the next request, and close those that were not needed for long."""
        if connection.reusable:
            self._idle.append(_Idle(connection, _now()))
        else:
            await connection.aclose()
        await self._close_old()

    async def _alive(self) -> _Connection | None:
        """The idle connection that was used last and that the service has not closed since."""
        while self._idle:
            connection = self._idle.pop().connection
            if connection.reusable and not connection.http.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _close_old(self) -> None:
        limit = 0 if self._closed else self._max_idle
        while len(self._idle) > limit or (self._idle and self._idle[0].age_s >= self._idle_s):
            await self._idle.popleft().connection.aclose()
        if self._idle and self._timer is None:
            wait_s = self._idle_s - self._idle[0].age_s
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._when_old)

    def _when_old(self) -> None:
        self._timer = None
        closing = asyncio.create_task(self._close_old(), name="close idle connections")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _open(self, request: httpx2.Request) -> _Connection:
        url, secure = request.url, request.url.scheme == "https"
        if not secure and url.scheme != "http":
            raise httpx2.UnsupportedProtocol(f"{url.scheme!r} is neither http nor https")
        socket, tls = Socket(), self._verify if secure else None
        origin = httpcore2.Origin(url.raw_scheme, url.raw_host, url.port or (443 if secure else 80))
        try:
            with _faults_named():
                wait_s = request.extensions.get("timeout", {}).get("connect")
                await socket.open(url.raw_host.decode("ascii"), origin.port, tls, wait_s)
        except BaseException:
            await socket.aclose()
            raise
        return _Connection(_Http(origin, socket, keepalive_expiry=self._idle_s), socket)


class _Body(httpx2.AsyncByteStream):
    """The body of a response, which holds its connection until it is closed."""

    def __init__(
        self, body: AsyncIterable[bytes], connection: _Connection, owner: Connections
    ) -> None:
        self._body: Any = body  # an iterator that can be closed, which the library does not say
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


def _now() -> float:
    return asyncio.get_running_loop().time()


def _as_core(request: httpx2.Request) -> httpcore2.Request:
    url = request.url
    return httpcore2.Request(
        request.method,
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


@contextmanager
def _faults_named() -> Iterator[None]:
    """Name faults as the HTTP client does; it does not know one of TLS in the middle: a ReadError."""
    try:
        yield
    except tuple(_KINDS) as error:
        raise _KINDS[type(error)](str(error)) from error
    except OSError as error:
        raise httpx2.ReadError(str(error)) from error
