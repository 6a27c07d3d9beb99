"""Streams of events as the SDK may read them: whatever a server sends there, each holds one message (RTE-5).

The SDK writes a traceback, with the data, to the log for each event that it cannot read. Public: ``Events``,
``Skips``. Which answers are streams is decided in ``http``.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import httpx2
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from session_runtime.mcp.framing import MAX_LINE_BYTES
from session_runtime.mcp.own_errors import OwnErrors

MAX_SKIPPED: Final = 100
LEAST_RETRY_MS: Final = 1_000
_CHECKED_CHARS: Final = 65_536  # the SDK checks again, which would take too long for both
_CONTENT_TYPE: Final = b"text/event-stream; charset=utf-8"
_OF_BODY: Final = frozenset({b"content-length", b"content-type", b"transfer-encoding"})


@dataclass(slots=True)
class Skips:
    """How many events of one connection were no messages."""

    count: int = 0

    @property
    def too_many(self) -> bool:
        """Whether there is no use in listening any longer."""
        return self.count >= MAX_SKIPPED


class Events(httpx2.AsyncByteStream):
    """The events of a response, those that are no messages left out and counted; too many of them end it.

    Where the stream answers the request ``id_`` such an event is the answer, an error of ours.
    """

    def __init__(
        self, response: httpx2.Response, id_: str | int | None, own: OwnErrors, skips: Skips
    ) -> None:
        self._response = response
        self._id = id_
        self._own = own
        self._skips = skips

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
        async for event in httpx2.EventSource(self._response, max_event_size=MAX_LINE_BYTES):
            if event.event == "message" and (not event.data or is_message(event.data)):
                yield _encoded(event, event.data)
            elif event.event == "message" and self._id is not None:
                error = self._own.error("unreadable", "a message of its stream cannot be read")
                answer = {"jsonrpc": "2.0", "id": self._id, "error": error}
                yield _encoded(event, json.dumps(answer))
            else:
                self._skips.count += 1
                if self._skips.too_many:
                    return

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._response.aclose()


def is_message(text: str | bytes) -> bool:
    """Whether the SDK can read a message; one that is very long is taken for one."""
    if len(text) > _CHECKED_CHARS:
        return True
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        return False
    return True


def _encoded(event: httpx2.ServerSentEvent, data: str) -> bytes:
    """An event as it is sent, without its wish to be asked again all the time."""
    lines = [f"id: {event.id}"] if event.id else []
    if event.retry is not None:
        lines.append(f"retry: {max(event.retry, LEAST_RETRY_MS)}")
    lines += [f"data: {line}" for line in data.split("\n")]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "replace")
