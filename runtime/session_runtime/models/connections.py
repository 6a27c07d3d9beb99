"""Keeps the connections to one service, at a cost per request that does not grow with their number.

The pool of the HTTP client looks at all its connections when a request begins and when it ends, and
asks the system about each idle one: with 50 asks in flight that was a quarter of the daemon's time.
"""

import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import httpx2

IDLE_S: Final = 5.0
MAX_IDLE: Final = 100


@dataclass(frozen=True, slots=True)
class _Idle:
    connection: httpx2.AsyncHTTPTransport
    since: float


class Connections(httpx2.AsyncBaseTransport):
    """A transport that gives each request a connection for itself: the one used last, or a new one.

    At most ``max_idle`` stay open unused, each for at most ``idle_s`` seconds after its last use as
    long as requests come; their number in use is not limited.
    """

    def __init__(
        self, verify: ssl.SSLContext, *, max_idle: int = MAX_IDLE, idle_s: float = IDLE_S
    ) -> None:
        self._verify = verify
        self._max_idle = max_idle
        self._idle_s = idle_s
        self._idle: deque[_Idle] = deque()
        self._closed = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; its connection is free again when the response is closed."""
        connection = self._idle.pop().connection if self._idle else self._new()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            await connection.aclose()
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Body(response.stream, connection, self)
        return response

    async def aclose(self) -> None:
        """Close what is idle now, and what is in use when its request ends."""
        self._closed = True
        while self._idle:
            await self._idle.popleft().connection.aclose()

    async def give_back(self, connection: httpx2.AsyncHTTPTransport) -> None:
        """Keep a connection for the next request, and close those that were not needed for long."""
        now = time.monotonic()
        self._idle.append(_Idle(connection, now))
        limit = 0 if self._closed else self._max_idle
        while len(self._idle) > limit or (self._idle and self._idle[0].since < now - self._idle_s):
            await self._idle.popleft().connection.aclose()

    def _new(self) -> httpx2.AsyncHTTPTransport:
        limits = httpx2.Limits(max_connections=1, keepalive_expiry=self._idle_s)
        return httpx2.AsyncHTTPTransport(verify=self._verify, trust_env=False, limits=limits)


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
        async for piece in self._body:
            yield piece

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            await self._owner.give_back(self._connection)
