"""An ask as server-sent events (INT-3): one frame per event, pings while nothing happens."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Literal, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from session_runtime.ask.lengths import chars_of
from session_runtime.transports.http.answers import (
    HEADERS,
    STOPPING,
    error_answer,
    refused,
    written,
)
from session_runtime.transports.http.attached import attached
from session_runtime.transports.outbox import Delivery
from session_runtime.types import AskFinished, AskResult
from session_runtime.wire import event_to_json, to_bytes

Item = Delivery | Literal["ping"]

PING: Final = b": ping\n\n"
FIRST_S: Final = 0.25
"""How long the stream of an ask that is kept may be silent at first."""

_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
)
_START: Final = {"type": "http.response.start", "status": 200}


class Source(Protocol):
    """Where the events of an ask come from, for one reader."""

    async def take(self) -> Delivery | None:
        """Wait for the next event; None at the end. Cancelling the wait loses nothing."""

    def close(self) -> None:
        """End it after what is waiting."""


class StreamForm(Protocol):
    """How the events of one ask look on the wire; its methods are called in the order of the events."""

    def instead_of(self, item: Item) -> Response | None:
        """What to answer instead of a stream, asked as long as nothing of it was sent."""

    def written(self, item: Item) -> bytes:
        """What to send for an event, or while there is none; nothing if nobody is to know of it."""

    def stopped(self) -> Response | None:
        """What to answer if all is over and nothing was sent; None for a stream without events."""


class EventStream:
    """An ASGI response with the events of ``source`` in ``form``; a client that leaves cancels ``work``.

    The stream begins with the first event that is written, or ping; until then the form may have
    something else answered instead of it. That of a kept ask, of that ``ask_id``, says where the ask is, and
    begins soon, be it by a ping: whoever leaves then knows what to come back for.
    """

    def __init__(
        self,
        source: Source,
        work: Callable[[], Coroutine[Any, Any, AskResult]],
        stop: asyncio.Event,
        ping_s: float,
        form: StreamForm,
        ask_id: str | None = None,
    ) -> None:
        self._source = source
        self._work = work
        self._stop = stop
        self._ping_s = ping_s
        self._form = form
        self._begin_s = ping_s if ask_id is None else min(ping_s, FIRST_S)
        place = [] if ask_id is None else [(b"location", f"/v1/asks/{ask_id}".encode())]
        self._start = {**_START, "headers": [*_HEADERS, *place]}

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
        has_begun = False
        while (item := await self._next(has_begun=has_begun)) is not None:
            if not has_begun and (answer := self._form.instead_of(item)):
                return answer
            if data := await written(_length(item), partial(self._form.written, item)):
                if not has_begun:
                    await send(self._start)
                has_begun = True
                await send({"type": "http.response.body", "body": data, "more_body": True})
        if not has_begun and (answer := self._form.stopped()):
            return answer
        if not has_begun:
            await send(self._start)
        return None

    async def _next(self, *, has_begun: bool) -> Item | None:
        try:
            async with asyncio.timeout(self._ping_s if has_begun else self._begin_s):
                return await self._source.take()
        except TimeoutError:
            return "ping"


def _length(item: Item) -> int:
    return 0 if item == "ping" else chars_of(item.event)


class AskForm:
    """One frame per event, named by its type (INT-3); numbered where a reader may come back for the rest.

    If ``refuses`` is set, an ask that is refused before it began is answered with the status of the
    refusal instead of a stream.
    """

    def __init__(self, *, refuses: bool = True, resumable: bool = False) -> None:
        self._refuses = refuses
        self._resumable = resumable

    def instead_of(self, item: Item) -> Response | None:
        """Answer an ask that was refused before it began."""
        if self._refuses and item != "ping" and isinstance(item.event, AskFinished):
            return refused(item.event.result)
        return None

    def written(self, item: Item) -> bytes:
        """Write any event."""
        if item == "ping":
            return PING
        data = to_bytes(event_to_json(item.event, item.lost))
        number = b"id: %d\n" % item.event.seq if self._resumable else b""
        return b"%sevent: %s\ndata: %s\n\n" % (number, item.event.type.encode(), data)

    def stopped(self) -> Response | None:
        """Answer for an ask of which there was nothing."""
        return error_answer(STOPPING, 503) if self._refuses else None
