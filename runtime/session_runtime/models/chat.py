"""Speaks the Chat Completions dialect of OpenAI and compatible servers over HTTP (ASK-3).

One request, one reply: the adapter only classifies what fails. Whether and when to ask again is
decided in ``ask`` (ASK-9).
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Final

import httpx2

from session_runtime.config.models import ModelProfile
from session_runtime.models import faults
from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.models.chat_body import ChatBody, ChatBodyWriter
from session_runtime.models.reading import ReplyReader
from session_runtime.types import Message

MAX_ERROR_BYTES: Final = 64 * 1024
CONNECT_TIMEOUT_S: Final = 10.0
_AFTER_DONE_S: Final = 0.1
_MAX_IDLE_CONNECTIONS: Final = 100
_REFUSED: Final = frozenset({400, 422})
_log: Final = logging.getLogger(__name__)


class ChatModel:
    """The model of one profile; owns ``client`` and closes it.

    An optional field that a server refuses by name (``stream_options``, an unknown field of an
    earlier answer) is left out and the request sent once more; if that works, it is left out for the
    life of this object. Bodies are bounded; ``timeout_s`` bounds every silence of the server.
    """

    def __init__(self, profile: ModelProfile, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._model = profile.model
        self._url = _completions_url(profile.base_url or "")
        self._headers = _headers(profile)
        self._timeout = httpx2.Timeout(
            profile.timeout_s, connect=min(profile.timeout_s, CONNECT_TIMEOUT_S), pool=None
        )
        self._endpoint = faults.Endpoint(profile.base_url or "", _secrets(profile))
        self._writer = ChatBodyWriter(profile)
        self._left_out: frozenset[str] = frozenset()

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Send one turn and gather the reply; see ``Model`` for what it raises."""
        left_out = self._left_out
        while True:
            body = self._writer.write(request, left_out)
            async with self._sent(body) as response:
                if response.is_success:
                    reply = await self._read(response, request, on_text)
                    self._keep_left_out(left_out)
                    return reply
                refusal = await _read_start(response)
            left_out |= {self._refused_field(response, refusal, body)}

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _refused_field(self, response: httpx2.Response, refusal: bytes, body: ChatBody) -> str:
        if response.status_code in _REFUSED:
            field = body.refused_field(refusal.decode("utf-8", "replace"))
            if field is not None:
                return field
        raise faults.from_response(
            self._endpoint, response.status_code, response.headers, refusal, datetime.now(UTC)
        )

    def _keep_left_out(self, left_out: frozenset[str]) -> None:
        for field in sorted(left_out - self._left_out):
            _log.warning(
                "the model %s at %s refuses the field %r: it is not sent any more",
                self._model,
                self._endpoint.base_url,
                field,
            )
        self._left_out |= left_out

    @contextlib.asynccontextmanager
    async def _sent(self, body: ChatBody) -> AsyncIterator[httpx2.Response]:
        try:
            async with self._stream(body) as response:
                yield response
        except httpx2.TransportError as error:
            # Not "from error": the text of a protocol error may quote the header with the key.
            raise faults.from_transport(self._endpoint, error) from None
        except httpx2.DecodingError as error:
            raise faults.broken_reply(self._endpoint, str(error)) from error

    def _stream(self, body: ChatBody) -> AbstractAsyncContextManager[httpx2.Response]:
        return self._client.stream(
            "POST",
            self._url,
            content=body.content,
            headers=self._headers,
            timeout=self._timeout,
            follow_redirects=False,
        )

    async def _read(
        self, response: httpx2.Response, request: ModelRequest, on_text: OnText
    ) -> ModelReply:
        reader = ReplyReader(self._endpoint, response.headers.get("content-type", ""), on_text)
        try:
            await _feed(response, reader)
        except httpx2.TransportError:
            if not reader.complete:
                raise
        return reader.reply(request.names, _call_ids(request.messages))


def open_client(base_url: str) -> httpx2.AsyncClient:
    """A client for the server of one profile; may take 0.1 s of CPU to read the certificates.

    It ignores proxy variables of the environment, so that only the configuration decides where keys
    are sent, and follows no redirect. ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are honoured. The number
    of connections is not limited here.
    """
    return httpx2.AsyncClient(
        verify=_certificates(base_url),
        trust_env=False,
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=_MAX_IDLE_CONNECTIONS),
    )


def _certificates(base_url: str) -> ssl.SSLContext:
    if base_url.lower().startswith("https:"):
        return httpx2.create_ssl_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # plain http: trusts nobody, reads no file


async def _feed(response: httpx2.Response, reader: ReplyReader) -> None:
    """Give the body to ``reader``, as it comes.

    Once the stream said that it is over, the rest is waited for only briefly: reading it lets the
    connection be used again, but some servers never end it.
    """
    pieces = response.aiter_bytes()
    async for piece in pieces:
        reader.feed(piece)
        if reader.done:
            break
    if reader.done:
        with contextlib.suppress(TimeoutError, httpx2.TransportError):
            async with asyncio.timeout(_AFTER_DONE_S):
                async for _ in pieces:
                    pass


async def _read_start(response: httpx2.Response) -> bytes:
    """The body of a refusal, cut to what can matter."""
    start = b""
    async for piece in response.aiter_bytes():
        start += piece
        if len(start) > MAX_ERROR_BYTES:
            break
    return start[:MAX_ERROR_BYTES]


def _completions_url(base_url: str) -> httpx2.URL:
    url = httpx2.URL(base_url)
    return url.copy_with(path=url.path.rstrip("/") + "/chat/completions")


def _secrets(profile: ModelProfile) -> tuple[str, ...]:
    return (profile.api_key.get_secret_value(),) if profile.api_key else ()


def _headers(profile: ModelProfile) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "user-agent": "session-runtime",
    }
    if key := "".join(_secrets(profile)):
        headers["authorization"] = f"Bearer {key}"
    return headers


def _call_ids(messages: tuple[Message, ...]) -> frozenset[str]:
    return frozenset(call.id for message in messages for call in message.tool_calls)
