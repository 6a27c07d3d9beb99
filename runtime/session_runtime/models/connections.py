"""Keeps the connections to one service, at a cost per request that does not grow with their number.

The pool of the HTTP client looks at all its connections when a request begins and when it ends, and
asks the system about each idle one: with 50 asks in flight that was a quarter of the daemon's time.
"""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpcore2
import httpx2

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


@dataclass(frozen=True, slots=True)
class _Connection:
    """A connection that is to be opened or open, and who knows its socket."""

    http: httpcore2.AsyncHTTPConnection
    backend: "_Backend"

    async def aclose(self) -> None:
        await self.http.aclose()
        await self.backend.aclose()


@dataclass(frozen=True, slots=True)
class _Idle:
    connection: _Connection
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
        connection = await self._alive() or self._new(request.url)
        try:
            with _faults_named():
                response = await connection.http.handle_async_request(_as_core(request))
        except BaseException:
            await connection.aclose()
            raise
        assert isinstance(response.stream, AsyncIterable)
        return httpx2.Response(
            response.status,
            headers=response.headers,
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
        if connection.http.is_idle():
            self._idle.append(_Idle(connection, time.monotonic()))
        else:
            await connection.aclose()
        await self._close_old()

    async def _alive(self) -> _Connection | None:
        """The idle connection that was used last and that the service has not closed since."""
        while self._idle:
            connection = self._idle.pop().connection
            if not connection.http.has_expired():
                return connection
            await connection.aclose()
        return None

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

    def _new(self, url: httpx2.URL) -> _Connection:
        backend = _Backend()
        port = url.port or (443 if url.scheme == "https" else 80)
        origin = httpcore2.Origin(url.raw_scheme, url.raw_host, port)
        return _Connection(
            httpcore2.AsyncHTTPConnection(
                origin,
                ssl_context=self._verify,
                keepalive_expiry=self._idle_s,
                network_backend=backend,
            ),
            backend,
        )


class _Backend(httpcore2.AsyncNetworkBackend):
    """Opens one connection and remembers it.

    Until the TLS handshake is over the library does not hold it: of a request that is cancelled by then,
    it would stay open until it is collected as garbage.
    """

    def __init__(self) -> None:
        self._system = httpcore2.AnyIOBackend()
        self._stream: httpcore2.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self._stream = await self._system.connect_tcp(
            host, port, timeout, local_address, socket_options
        )
        return _InOneWrite(self._stream)

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()


class _InOneWrite(httpcore2.AsyncNetworkStream):
    """Sends the head of a request together with its body: the library writes them one by one.

    Every request here has a body. Two writes cost the daemon and the service twice the work.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._head = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if buffer.startswith(b"POST ") and buffer.endswith(b"\r\n\r\n") and not self._head:
            self._head = buffer
            return
        head, self._head = self._head, b""
        await self._stream.write(head + buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
    ) -> httpcore2.AsyncNetworkStream:
        return _InOneWrite(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


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
