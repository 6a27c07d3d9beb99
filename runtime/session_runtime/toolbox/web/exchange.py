"""One request and its answer, over one connection to an address that was checked before (SEC-2).

The HTTP library is known here and in ``target`` alone. Where to go next, and how long anything may take,
is decided in ``client``.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from session_runtime import __version__
from session_runtime.errors import ToolError
from session_runtime.toolbox.web.addresses import Address
from session_runtime.toolbox.web.target import Target

CONNECT_TIMEOUT_S: Final = 5.0
MOST_WITHOUT_CONTENT: Final = 16 * 1024

_PIECE: Final = 8 * 1024
_HEADERS: Final = (
    ("User-Agent", f"session-runtime/{__version__}"),
    ("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5"),
    ("Accept-Encoding", "gzip"),
    ("Connection", "close"),
)

_Stream = Any  # httpcore2.AsyncNetworkStream, which is not loaded at the start


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, and its body as it comes: compressed, in pieces of at most 8 KiB."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    chunks: AsyncIterator[bytes]

    def header(self, name: str) -> str:
        """The values of a header, joined by commas; empty if it is not there."""
        wanted = name.lower().encode()
        values = (value for key, value in self.headers if key.lower() == wanted)
        return b", ".join(values).decode("latin-1")


@asynccontextmanager
async def exchange(
    target: Target, addresses: Sequence[Address], context: ssl.SSLContext
) -> AsyncIterator[Answer]:
    """Connect to the first of ``addresses`` that answers and get ``target``; the end closes it.

    The request goes to the address itself, so that nothing is looked up again. The name of the host
    stands in the Host header, and a certificate has to be valid for it. No proxy, cookie, password or
    referrer is ever used. ToolError ``web.unreachable`` if there is no answer that can be understood;
    one that sends more than MOST_WITHOUT_CONTENT bytes of anything but content is none.
    """
    # Loading the protocol takes 20 ms, which a start that reads no page should not pay.
    import httpcore2  # noqa: PLC0415

    request = httpcore2.Request(
        "GET",
        httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
        headers=(("Host", target.authority), *_HEADERS),
    )
    try:
        async with _connected(target, addresses, context) as stream:
            bounded: _Stream = _Bounded(stream)
            connection = httpcore2.AsyncHTTP11Connection(request.url.origin, bounded)
            response = await connection.handle_async_request(request)
            bounded.refill()
            async with (
                aclosing(response.aiter_stream()) as content,
                aclosing(bounded.contents(content)) as chunks,
            ):
                yield Answer(response.status, response.headers, chunks)
    except (
        httpcore2.NetworkError,
        httpcore2.ProtocolError,
        httpcore2.TimeoutException,
        _EndlessError,
    ) as error:
        raise ToolError(_words(target, error), code="web.unreachable") from error


@asynccontextmanager
async def _connected(
    target: Target, addresses: Sequence[Address], context: ssl.SSLContext
) -> AsyncIterator[_Stream]:
    """Hold a connection to the first of ``addresses`` that takes one; ConnectError of the last."""
    import httpcore2  # noqa: PLC0415 - see above

    backend = httpcore2.AnyIOBackend()
    for address in addresses:
        try:
            stream: _Stream = await backend.connect_tcp(
                str(address), target.port, timeout=CONNECT_TIMEOUT_S
            )
            if target.scheme == "https":
                stream = await _secured(stream, target.host, context)
            break
        except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
            if address is addresses[-1]:
                raise
    try:
        yield stream
    finally:
        await stream.aclose()


async def _secured(stream: _Stream, host: str, context: ssl.SSLContext) -> _Stream:
    context.set_alpn_protocols(["http/1.1"])
    try:
        return await stream.start_tls(context, host, CONNECT_TIMEOUT_S)
    except BaseException:  # the library leaves it open when whoever waits is cancelled
        await stream.aclose()
        raise


class _EndlessError(Exception):
    """The server sends, but no content."""


class _Bounded:
    """A connection that gives small pieces, and no end of what is no content to none.

    What stands around the content (heads, sizes of chunks, trailers) is taken apart at once when it is
    complete, so that each piece costs the loop as much time as it has lines.
    """

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self._room = MOST_WITHOUT_CONTENT

    def refill(self) -> None:
        """Let in as much as at the beginning, after something useful."""
        self._room = MOST_WITHOUT_CONTENT

    async def contents(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Pass ``chunks`` on, which come of this connection."""
        async for chunk in chunks:
            self.refill()
            yield chunk

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        if not self._room:
            raise _EndlessError
        data: bytes = await self._stream.read(min(max_bytes, _PIECE, self._room), timeout)
        self._room -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _words(target: Target, error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"{target.host} has no certificate that proves it is that host: it was not read."
        cause = cause.__cause__ or cause.__context__
    return (
        f"{target.host} could not be reached or did not answer as a web server does. Trying again later "
        "may help."
    )
