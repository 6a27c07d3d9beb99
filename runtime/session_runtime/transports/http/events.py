"""An ask as server-sent events (INT-3): one frame per event, pings while nothing happens."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from session_runtime.transports.http.answers import HEADERS, STOPPING, error_answer, refused
from session_runtime.transports.http.attached import attached
from session_runtime.transports.outbox import Delivery
from session_runtime.types import AskFinished, AskResult
from session_runtime.wire import event_to_json, to_bytes

_Item = Delivery | Literal["ping"]

PING: Final = b": ping\n\n"
_START: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream"),
        (b"x-accel-buffering", b"no"),
        *((name.encode(), value.encode()) for name, value in HEADERS.items()),
    ],
}


class Source(Protocol):
    """Where the events of an ask come from, for one reader."""

    async def take(self) -> Delivery | None:
        """Wait for the next event; None at the end. Cancelling the wait loses nothing."""

    def close(self) -> None:
        """End it after what is waiting."""


class EventStream:
    """An ASGI response with the events of ``source``; a client that leaves cancels ``work``.

    The stream begins with the first event or ping. If ``refuses`` is set, an ask that is refused before
    it began is answered with the status of the refusal instead of a stream.
    """

    def __init__(
        self,
        source: Source,
        work: Callable[[], Coroutine[Any, Any, AskResult]],
        stop: asyncio.Event,
        ping_s: float,
        *,
        refuses: bool = True,
    ) -> None:
        self._source = source
        self._work = work
        self._stop = stop
        self._ping_s = ping_s
        self._refuses = refuses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Work and send the events; raises what the work raises, which is never expected."""
        working = asyncio.create_task(self._work(), name="http ask")
        working.add_done_callback(lambda _: self._source.close())
        async with attached(working, receive, self._stop):
            instead = await self._stream(send)
        if not working.cancelled():
            working.result()  # raises if the ask broke: its stream must not end like a whole one
        if instead is not None:
            await instead(scope, receive, send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, send: Send) -> Response | None:
        """Send everything but the end; or return what to answer instead of a stream."""
        item = await self._next()
        if self._refuses and (answer := _refusal(item)):
            return answer
        await send(_START)
        while item is not None:
            await send({"type": "http.response.body", "body": _chunk(item), "more_body": True})
            item = await self._next()
        return None

    async def _next(self) -> _Item | None:
        try:
            async with asyncio.timeout(self._ping_s):
                return await self._source.take()
        except TimeoutError:
            return "ping"


def _refusal(item: _Item | None) -> Response | None:
    if item is None:
        return error_answer(STOPPING, 503)
    if isinstance(item, Delivery) and isinstance(item.event, AskFinished):
        return refused(item.event.result)
    return None


def _chunk(item: _Item) -> bytes:
    if item == "ping":
        return PING
    data = to_bytes(event_to_json(item.event, item.lost))
    return b"event: %s\ndata: %s\n\n" % (item.event.type.encode(), data)
