"""One request and its answer, over one connection to an address that was checked before (SEC-2).

The HTTP library is known here and in ``target`` alone. Where to go next, and how long anything may take,
is decided in ``client``.
"""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from session_runtime import __version__
from session_runtime.errors import ToolError
from session_runtime.toolbox.web.addresses import Address
from session_runtime.toolbox.web.target import Target

CONNECT_TIMEOUT_S: Final = 5.0

_HEADERS: Final = (
    ("User-Agent", f"session-runtime/{__version__}"),
    ("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5"),
    ("Accept-Encoding", "gzip"),
    ("Connection", "close"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, and its body as it comes: compressed, in pieces of at most 64 KiB."""

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
    a head of more than 100 kB is none.
    """
    # Loading the protocol takes 20 ms, which a start that reads no page should not pay.
    import httpcore2  # noqa: PLC0415

    scheme = target.scheme.encode()
    try:
        for address in addresses:
            host = str(address).encode()
            origin = httpcore2.Origin(scheme, host, target.port)
            connection = httpcore2.AsyncHTTPConnection(origin, ssl_context=context)
            request = httpcore2.Request(
                "GET",
                httpcore2.URL(scheme=scheme, host=host, port=target.port, target=target.path),
                headers=(("Host", target.authority), *_HEADERS),
                extensions={"sni_hostname": target.host, "timeout": {"connect": CONNECT_TIMEOUT_S}},
            )
            try:
                response = await connection.handle_async_request(request)
                break
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if address is addresses[-1]:
                    raise
        async with connection, aclosing(response.aiter_stream()) as chunks:
            yield Answer(response.status, response.headers, chunks)
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
        raise ToolError(_words(target, error), code="web.unreachable") from error


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
