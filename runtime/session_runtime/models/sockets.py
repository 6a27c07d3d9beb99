"""Opens the socket of one connection to a service and watches what comes over it.

The HTTP library trusts the service: it takes bytes beyond a response for the next response, waits for
ever while heads without an answer trickle, and works on all that has arrived before others have a turn.
"""

import asyncio
import select
import ssl
from typing import Any, Final

import httpcore2

MAX_HEAD_BYTES: Final = 256 * 1024
"""Of all that comes before the body: the head of the response and any that only inform."""

_READ_BYTES: Final = 256 * 1024
"""As much as the event loop takes from a socket at once, so that nothing stays where it is not seen."""

_TLS_READ_BYTES: Final = 16 * 1024  # a record; room for more would be made for each read
_SLICE_BYTES: Final = 8 * 1024
_TURN_READS: Final = 4


class Socket(httpcore2.AsyncNetworkStream):
    """One connection below HTTP, from before it is opened until it is closed.

    Sends the head of a request together with its body: the library writes them one by one. Every
    request here has a body. Two writes cost the daemon and the service twice the work.
    """

    def __init__(self) -> None:
        self._stream: httpcore2.AsyncNetworkStream | None = None
        self._head = b""
        self._tls: ssl.SSLObject | None = None
        self._readable = select.poll()
        self._reads = 0
        self._slices = 0
        self._arrived = b""
        self._ended = False
        self._in_head = True
        self._head_bytes = 0
        self._head_until: float | None = None

    @property
    def answered(self) -> bool:
        """Whether a byte of an answer has come since the last request."""
        return self._head_bytes > 0

    @property
    def quiet(self) -> bool:
        """Whether nothing has come that nobody asked for: no byte more, and no end."""
        return not self._ended and not self._arrived and self._tls_is_quiet()

    def end_head(self) -> None:
        """The head of a response was read: what follows is its body."""
        self._in_head = False

    async def open(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        timeout: float | None,  # noqa: ASYNC109 - handed on, as the library has it
    ) -> None:
        """Connect, and shake hands if there is a context for TLS; ``timeout`` bounds each."""
        self._stream = await httpcore2.AnyIOBackend().connect_tcp(host, port, timeout)
        self._readable.register(self._stream.get_extra_info("socket"), select.POLLIN)
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])
            await self.start_tls(tls, host, timeout)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
    ) -> httpcore2.AsyncNetworkStream:
        """Encrypt what follows."""
        self._stream = await self._opened().start_tls(ssl_context, server_hostname, timeout)
        self._tls = self._stream.get_extra_info("ssl_object")
        return self

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """The next bytes, few enough to work on in one go.

        Until the head of the response was read, ``timeout`` bounds all its reads together. Others have a
        turn between them; in a body after every second one, as most replies are that short.
        """
        self._slices = self._slices + 1 if self._arrived else 0
        if (self._slices and (self._in_head or not self._slices % 2)) or self._tls_needs_turn():
            await asyncio.sleep(0)
        if not self._arrived:
            most = _READ_BYTES if self._tls is None else _TLS_READ_BYTES
            self._arrived = await self._opened().read(most, self._left(timeout))
            self._ended = not self._arrived
        size = min(max_bytes, _SLICE_BYTES)
        piece, self._arrived = self._arrived[:size], self._arrived[size:]
        if self._in_head:
            self._watch_head(piece)
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Send this, or keep a head until its body comes."""
        if not self._in_head:
            self._begin()
        if buffer.startswith(b"POST ") and buffer.endswith(b"\r\n\r\n") and not self._head:
            self._head = buffer
            return
        head, self._head = self._head, b""
        await self._opened().write(head + buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection, however far it was opened."""
        if self._stream is not None:
            await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        """What the library asks of a stream; whether something can be read it asks at every request."""
        if info == "is_readable":
            return bool(self._readable.poll(0))
        return self._opened().get_extra_info(info)

    def _opened(self) -> httpcore2.AsyncNetworkStream:
        assert self._stream is not None
        return self._stream

    def _begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        self._head_until = None

    def _left(self, timeout: float | None) -> float | None:
        if timeout is None or not self._in_head:
            return timeout
        now = asyncio.get_running_loop().time()
        if self._head_until is None:
            self._head_until = now + timeout
        return max(0.0, self._head_until - now)

    def _watch_head(self, piece: bytes) -> None:
        self._head_bytes += len(piece)
        if self._head_bytes > MAX_HEAD_BYTES:
            raise httpcore2.RemoteProtocolError(
                f"the head of the response has more than {MAX_HEAD_BYTES} bytes"
            )

    def _tls_needs_turn(self) -> bool:
        """TLS gives all that it holds, in records as small as the service likes, without a turn."""
        self._reads += 1
        return self._tls is not None and not self._reads % _TURN_READS

    def _tls_is_quiet(self) -> bool:
        """Whether TLS, of what it has taken from the socket, holds neither data nor an end."""
        if self._tls is None:
            return True
        try:
            self._tls.read(1)
        except ssl.SSLWantReadError:
            return True
        except (ssl.SSLError, OSError):
            return False
        return False
