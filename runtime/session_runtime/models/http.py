"""Sends the bodies of one profile to its service and has the answers read, whichever wire it speaks.

One request, one reply: what fails is only classified. Whether and when to ask again is decided in
``ask`` (ASK-9), what is in a body and what an answer means in the adapter of the wire.
"""

import asyncio
import contextlib
import itertools
import logging
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final, TypeVar

import httpx2

from session_runtime.config.models import ModelProfile
from session_runtime.config.secrets import masked_address
from session_runtime.models import faults
from session_runtime.models.base import OnText
from session_runtime.models.connections import Connections
from session_runtime.models.http_body import Body
from session_runtime.models.masking import secrets_of
from session_runtime.models.reading import Assembly, ReplyReader
from session_runtime.threads import aside

MAX_ERROR_BYTES: Final = 64 * 1024
REFUSAL_S: Final = 1.0
"""How long the body of a refusal is read: what counts most is its status."""

USAGE_S: Final = 2.0
"""How long a reply that is whole waits for its usage at most, counted from its last event."""

CONNECT_TIMEOUT_S: Final = 10.0
AT_ONCE_MESSAGES: Final = 1_000
MAX_LEFT_OUT: Final = 8
_AFTER_DONE_S: Final = 0.1
_TURN_S: Final = 0.005
_PLAIN: Final = frozenset({"", "identity"})
_log: Final = logging.getLogger(__name__)

AssemblyT = TypeVar("AssemblyT", bound=Assembly)
Write = Callable[[frozenset[str]], Awaitable[Body]]


def writing(write: Callable[[frozenset[str]], Body], messages: int) -> Write:
    """Write a body of so many messages; very many in a thread, so that they hold up nobody else."""

    async def written(left_out: frozenset[str]) -> Body:
        if messages <= AT_ONCE_MESSAGES:
            return write(left_out)
        return await aside("writing a request", partial(write, left_out))

    return written


class ModelServer:
    """The service of one profile at ``base_url`` + ``api.path``; owns ``client`` and closes it.

    An optional field that the service refuses is left out and the request sent once more, at most
    MAX_LEFT_OUT times; if that works and the service does not know the field, it is left out for the
    life of this object. Bodies are bounded; ``timeout_s`` bounds every silence of the service.
    """

    def __init__(self, profile: ModelProfile, client: httpx2.AsyncClient, api: faults.Api) -> None:
        self._client = client
        self._model = profile.model
        self._url = _url(profile.base_url or "", api.path)
        self._headers = _headers(profile, api)
        self._headers.setdefault("host", self._url.netloc.decode("ascii"))
        timeout = httpx2.Timeout(
            profile.timeout_s, connect=min(profile.timeout_s, CONNECT_TIMEOUT_S), pool=None
        )
        self._limits: Final = {"timeout": timeout.as_dict()}
        shown = masked_address(profile.base_url or "")
        self.endpoint = faults.Endpoint(shown, secrets_of(profile), api)
        self._left_out: frozenset[str] = frozenset()

    async def exchange(
        self,
        write: Write,
        begin: Callable[[faults.Endpoint], AssemblyT],
        on_text: OnText,
        left_out: frozenset[str] = frozenset(),
        until: float | None = None,
    ) -> tuple[AssemblyT, frozenset[str]]:
        """Post what ``write`` makes without the fields it is given; the answer fills a new assembly.

        Returns that and the fields left out: at first ``left_out`` and what was refused for good before.
        ``until`` is that of the request.
        Raises what ``Model.reply`` raises; RefusedError only before any text was told.
        """
        left_out |= self._left_out
        found: frozenset[str] = frozenset()
        for changes in itertools.count():
            body = await write(left_out)
            try:
                assembly = await self._post(body, begin(self.endpoint), on_text, until)
            except faults.RefusedError as refusal:
                field = body.refused(refusal)
                if field is None or field.name in left_out or changes == MAX_LEFT_OUT:
                    raise
                left_out |= {field.name}
                found |= {field.name} if field.for_good else set()
            else:
                self._keep_left_out(found)
                return assembly, left_out
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _keep_left_out(self, found: frozenset[str]) -> None:
        for field in sorted(found - self._left_out):
            _log.warning(
                "the model %s at %s refuses the field %r: it is not sent any more",
                self._model,
                self.endpoint.base_url,
                field,
            )
        self._left_out |= found

    async def _post(
        self, body: Body, assembly: AssemblyT, on_text: OnText, until: float | None
    ) -> AssemblyT:
        async with self._sent(body) as response:
            if not response.is_success:
                raise faults.from_response(
                    self.endpoint,
                    response.status_code,
                    response.headers,
                    await _read_start(response),
                    datetime.now(UTC),
                )
            self._check_encoding(response.headers.get("content-encoding", ""))
            content_type = response.headers.get("content-type", "")
            reader = ReplyReader(self.endpoint, content_type, assembly, on_text)
            await _read(response, reader, until)
        return assembly

    def _check_encoding(self, encoding: str) -> None:
        """A few bytes that nobody asked for in this form may stand for gigabytes."""
        if encoding.strip().lower() not in _PLAIN:
            raise faults.broken_reply(
                self.endpoint, f"its content-encoding is {encoding!r}, and none was asked for"
            )

    @contextlib.asynccontextmanager
    async def _sent(self, body: Body) -> AsyncIterator[httpx2.Response]:
        # The client's own way to build a request merges headers and cookies anew for each.
        content = _Content(body.pieces)
        request = httpx2.Request(
            "POST", self._url, headers=self._headers, stream=content, extensions=self._limits
        )
        request.headers["content-length"] = str(body.length)
        try:
            response = await self._client.send(request, stream=True, follow_redirects=False)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            # Not "from error": the text of a protocol error may quote the header with the key.
            raise faults.from_transport(self.endpoint, error) from None


class _Content(httpx2.AsyncByteStream):
    """What is sent: whole in memory only meanwhile, as waiting for the answer takes long."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"".join(self._pieces)


def open_client(base_url: str) -> httpx2.AsyncClient:
    """A client for the server of one profile; may take 0.1 s of CPU to read the certificates.

    It ignores proxy variables of the environment, so that only the configuration decides where keys
    are sent, keeps no cookie that would lead from one ask to another, and follows no redirect.
    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are honoured. The number
    of connections is not limited here.
    """
    return httpx2.AsyncClient(
        transport=Connections(_certificates(base_url)),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        trust_env=False,
        follow_redirects=False,
    )


def _certificates(base_url: str) -> ssl.SSLContext:
    if base_url.lower().startswith("https:"):
        return httpx2.create_ssl_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # plain http: trusts nobody, reads no file


async def _read(response: httpx2.Response, reader: ReplyReader, until: float | None) -> None:
    """Read a body, which is not encoded, until its reply is whole, and what follows as far as it comes."""
    turns = _Turns()
    async with contextlib.aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            reader.feed(piece)
            if turns.due():
                await asyncio.sleep(0)
            if reader.complete or reader.done:
                break
        with contextlib.suppress(TimeoutError, httpx2.TransportError):
            await _read_rest(pieces, reader, turns, until)
    reader.close()


async def _read_rest(
    pieces: AsyncGenerator[bytes], reader: ReplyReader, turns: "_Turns", until: float | None
) -> None:
    """Read what may follow a whole reply: its usage, then the end, which frees the connection.

    Neither is waited for long, as some servers send neither. Pings do not prolong the wait, events do:
    a few servers give a reason to stop with every piece.
    """
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(_rest_s(reader, until)) as limit:
        async for piece in pieces:
            if turns.due():
                await asyncio.sleep(0)
            if reader.done:
                continue
            known = reader.events
            reader.feed(piece)
            if reader.events > known:
                limit.reschedule(clock() + _rest_s(reader, until))


def _rest_s(reader: ReplyReader, until: float | None) -> float:
    """The time for what may follow, of which an ask that ends soon has half of what is left to it."""
    most = _AFTER_DONE_S if reader.done else USAGE_S
    if until is None:
        return most
    return min(most, max(0.0, until - asyncio.get_running_loop().time()) / 2)


class _Turns:
    """When others are to have a turn: a service decides how much there is to do with a piece."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._since = self._clock()

    def due(self) -> bool:
        """Whether the last turn of others is too long ago; it counts as now then."""
        if self._clock() - self._since < _TURN_S:
            return False
        self._since = self._clock()
        return True


async def _read_start(response: httpx2.Response) -> bytes:
    """The body of a refusal as far as it can matter; a broken or slow one is what arrived of it."""
    start = bytearray()
    with contextlib.suppress(TimeoutError, httpx2.TransportError, httpx2.DecodingError):
        async with (
            asyncio.timeout(REFUSAL_S),
            contextlib.aclosing(response.aiter_bytes()) as pieces,
        ):
            async for piece in pieces:
                start += piece
                if len(start) >= MAX_ERROR_BYTES:
                    break
    return bytes(start[:MAX_ERROR_BYTES])


def _url(base_url: str, path: str) -> httpx2.URL:
    url = httpx2.URL(base_url)
    return url.copy_with(path=url.path.rstrip("/") + path)


def _headers(profile: ModelProfile, api: faults.Api) -> httpx2.Headers:
    headers = {
        "connection": "keep-alive",
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "user-agent": "session-runtime",
        **api.headers,
    }
    if profile.api_key:
        headers[api.key_header] = api.key_scheme + profile.api_key.get_secret_value()
    added = {name.lower(): value.get_secret_value() for name, value in profile.headers.items()}
    return httpx2.Headers(headers | added)
