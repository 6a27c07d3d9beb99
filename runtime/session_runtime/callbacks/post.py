"""One attempt to send a message over HTTP; imported when the first one is sent."""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, Final

import httpcore2
import httpx2

from session_runtime.callbacks.sending import Answer, NoAnswerError

MOST_BYTES: Final = 16 * 1024
"""Of an answer: its head, and any that only inform; its body is not read."""

_MOST_CONNECTIONS: Final = 64
_PIECE: Final = 2 * 1024
"""What is taken apart at once: a receiver that sends nothing but heads must not hold up the loop."""


class HttpPost:
    """Posts to any address; follows no redirect, heeds no proxy variable, reads no body of an answer."""

    def __init__(self) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            httpx2.create_ssl_context(trust_env=False),
            max_connections=_MOST_CONNECTIONS,
            max_keepalive_connections=0,
            network_backend=_Backend(),
        )

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        """See ``Post``; an error never holds the address, whose query may be a secret."""
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._pool.stream("POST", url, headers=[*headers.items()], content=body) as got,
            ):
                return Answer(got.status, _retry_after(got))
        except TimeoutError:
            raise NoAnswerError(f"no answer came within {timeout_s:g} s") from None
        except _EndlessError:
            raise NoAnswerError(f"{MOST_BYTES} bytes came, and no answer") from None
        except (*_NO_ANSWER, OSError, ValueError) as error:
            raise NoAnswerError(f"it cannot be reached ({type(error).__name__})") from None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


_NO_ANSWER: Final = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)


class _EndlessError(Exception):
    """The receiver sends, but no answer."""


class _Backend(httpcore2.AsyncNetworkBackend):
    """Opens connections that are bounded."""

    def __init__(self) -> None:
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Bounded(
            await self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
        )


class _Bounded(httpcore2.AsyncNetworkStream):
    """A connection that gives small pieces, and not more of them than an answer may have."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._room = MOST_BYTES

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
    ) -> bytes:
        if not self._room:
            raise _EndlessError
        data = await self._stream.read(min(max_bytes, _PIECE, self._room), timeout)
        self._room -= len(data)
        return data

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
    ) -> None:
        await self._stream.write(buffer, timeout)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
    ) -> httpcore2.AsyncNetworkStream:
        return _Bounded(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _retry_after(answer: httpcore2.Response) -> str:
    found = [value for name, value in answer.headers if name.lower() == b"retry-after"]
    return b", ".join(found).decode("latin-1")


def open_post() -> HttpPost:
    """A way to send messages, made when there is one to be sent."""
    return HttpPost()
