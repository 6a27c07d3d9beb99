"""Streams of events as the SDK may read them: whatever a server sends there, each holds one message (RTE-5).

Events of other types than "message" are legal, and nobody here needs them. What the SDK gives back to take a
stream up again, the last event's id, tells here which stream that was. Public: ``Events``, ``Streams``,
``taken_up``. Which answers are streams is decided in ``http``.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import httpx2
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage

from session_runtime.mcp.answers import Answer, Answers
from session_runtime.mcp.framing import MAX_LINE_BYTES
from session_runtime.mcp.messages import NoMessage, to_line
from session_runtime.mcp.own_errors import OwnErrors
from session_runtime.mcp.unasked import Bound

MAX_SKIPPED: Final = 100
LEAST_RETRY_MS: Final = 1_000
MOST_RETRY_MS: Final = 60_000
_MAX_ID_CHARS: Final = 1_000
_CONTENT_TYPE: Final = b"text/event-stream; charset=utf-8"
_OF_BODY: Final = frozenset({b"content-length", b"content-type", b"transfer-encoding"})

CHANGED: Final = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
"""An event that says that the list of tools may be another one."""


@dataclass(slots=True)
class Streams:
    """What is known of the streams of one connection.

    ``skipped`` is how many events were no messages; ``deaf``: they were too many in one stream of news.
    ``open`` are the requests whose stream may be taken up again, as their answer is still to come.
    """

    skipped: int = 0
    deaf: bool = False
    open: set[str | int] = field(default_factory=set)


class Events(httpx2.AsyncByteStream):
    """The events of a response, as far as they are messages.

    Where the stream answers the request ``id_`` one that is none is the answer, an error of ours. A stream of
    news (None) is over when too many are none, and where it is cut it just ends, so that it is begun again.
    ``first`` is sent before all others.
    """

    def __init__(
        self,
        response: httpx2.Response,
        id_: str | int | None,
        own: OwnErrors,
        answers: Answers,
        streams: Streams,
        first: bytes = b"",
    ) -> None:
        self._response = response
        self._id = id_
        self._own = own
        self._answers = answers
        self._streams = streams
        self._first = first
        self._bound = Bound()
        self._skipped = 0

    def as_response(self) -> httpx2.Response:
        """The response with these events instead."""
        kept = [(k, v) for k, v in self._response.headers.raw if k.lower() not in _OF_BODY]
        return httpx2.Response(
            self._response.status_code,
            headers=[*kept, (b"content-type", _CONTENT_TYPE)],
            stream=self,
            request=self._response.request,
        )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._first:
            yield self._first
        try:
            async for event in httpx2.EventSource(self._response, max_event_size=MAX_LINE_BYTES):
                for piece in await self._pieces(event):
                    yield piece
                if self._is_too_much(event):
                    return
        except httpx2.TransportError:
            if self._id is not None:
                raise

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._response.aclose()

    async def _pieces(self, event: httpx2.ServerSentEvent) -> list[bytes]:
        """What the SDK gets to read of an event."""
        if event.event != "message":
            return []
        if not event.data:
            return [self._encoded(event, b"")]  # it only has an id
        messages = await self._messages(event.data.encode("utf-8", "replace"))
        pieces = [self._encoded(event, to_line(message).rstrip()) for message in messages]
        if self._id is not None and any(isinstance(each, Answer) for each in messages):
            self._streams.open.discard(self._id)
        return pieces

    async def _messages(self, data: bytes) -> list[JSONRPCMessage]:
        try:
            return await self._answers.messages(data, self._id)
        except NoMessage:
            self._skipped += 1
            self._streams.skipped += 1
        if self._id is None:
            return []
        error = ErrorData(**self._own.error("unreadable", "a message of its stream cannot be read"))
        return [JSONRPCError(jsonrpc="2.0", id=self._id, error=error)]

    def _is_too_much(self, event: httpx2.ServerSentEvent) -> bool:
        """Whether there is no use in listening any longer."""
        if self._id is None and self._skipped >= MAX_SKIPPED:
            self._streams.deaf = True
            return True
        is_other = event.event != "message"
        return is_other and self._bound.exceeded(asyncio.get_running_loop().time())

    def _encoded(self, event: httpx2.ServerSentEvent, data: bytes) -> bytes:
        """An event as it is sent, without its wish to be asked again all the time, or never."""
        lines = []
        if 0 < len(event.id) <= _MAX_ID_CHARS and event.id.isascii() and event.id.isprintable():
            lines.append(f"id: {self._tag()}{event.id}")
        if event.retry is not None:
            lines.append(f"retry: {min(max(event.retry, LEAST_RETRY_MS), MOST_RETRY_MS)}")
        return "\n".join([*lines, "data: "]).encode() + data + b"\n\n"

    def _tag(self) -> str:
        """What stands before the ids of this stream's events, so that ``taken_up`` knows it."""
        if self._id is None:
            return _NEWS
        self._streams.open.add(self._id)
        return f"{json.dumps(self._id)}:"


_NEWS: Final = "news:"


def taken_up(last_id: str) -> tuple[str | int | None, str]:
    """Which request's stream is taken up again behind this event (None: news), and its id for the server."""
    tag, _, id_ = last_id.partition(":")
    return (None if f"{tag}:" == _NEWS else json.loads(tag)), id_
