"""An ask as server-sent events (INT-3): one frame per event, pings while nothing happens."""

import asyncio
from typing import Final, Literal, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from session_runtime.transports.http.answers import HEADERS, STOPPING, error_answer, refused
from session_runtime.transports.http.attached import attached
from session_runtime.transports.http.door import HttpDoor
from session_runtime.transports.outbox import Delivery, Outbox
from session_runtime.types import AskFinished, AskRequest
from session_runtime.wire import event_to_json, to_bytes

Item = Delivery | Literal["ping"]

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


class StreamForm(Protocol):
    """How the events of one ask look on the wire; its methods are called in the order of the events."""

    def instead_of(self, item: Item) -> Response | None:
        """What to answer instead of a stream, asked as long as nothing of it was sent."""

    def written(self, item: Item) -> bytes:
        """What to send for an event, or while there is none; nothing if nobody is to know of it."""

    def stopped(self) -> Response:
        """What to answer if the ask was ended before anything was sent, and before its last event."""


class EventStream:
    """An ASGI response that runs the ask while it streams; a client that leaves cancels it.

    The stream begins with the first event that is written, or ping. An ask that is refused before that
    is answered with the status of the refusal instead of a stream.
    """

    def __init__(
        self,
        door: HttpDoor,
        asked: AskRequest,
        stop: asyncio.Event,
        ping_s: float,
        form: StreamForm | None = None,
    ) -> None:
        self._door = door
        self._asked = asked
        self._stop = stop
        self._ping_s = ping_s
        self._form = form or _AskForm()
        self._outbox = Outbox()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the ask and send its events; raises what the ask raises, which is never expected."""
        asking = asyncio.create_task(
            self._door.ask(self._asked, self._outbox.emit), name="http ask"
        )
        asking.add_done_callback(lambda _: self._outbox.close())
        async with attached(asking, receive, self._stop):
            instead = await self._stream(send)
        if not asking.cancelled():
            asking.result()  # raises if the ask broke: its stream must not end like a whole one
        if instead is not None:
            await instead(scope, receive, send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, send: Send) -> Response | None:
        """Send everything but the end; or return what to answer instead of a stream."""
        has_begun = False
        while (item := await self._next()) is not None:
            if not has_begun and (answer := self._form.instead_of(item)):
                return answer
            if data := self._form.written(item):
                if not has_begun:
                    await send(_START)
                has_begun = True
                await send({"type": "http.response.body", "body": data, "more_body": True})
        return None if has_begun else self._form.stopped()

    async def _next(self) -> Item | None:
        try:
            async with asyncio.timeout(self._ping_s):
                return await self._outbox.take()
        except TimeoutError:
            return "ping"


class _AskForm:
    """One frame per event, named by its type (INT-3)."""

    def instead_of(self, item: Item) -> Response | None:
        """Answer an ask that was refused before it began."""
        if item != "ping" and isinstance(item.event, AskFinished):
            return refused(item.event.result)
        return None

    def written(self, item: Item) -> bytes:
        """Write any event."""
        if item == "ping":
            return PING
        data = to_bytes(event_to_json(item.event, item.lost))
        return b"event: %s\ndata: %s\n\n" % (item.event.type.encode(), data)

    def stopped(self) -> Response:
        """Answer for an ask of which there was nothing."""
        return error_answer(STOPPING, 503)
