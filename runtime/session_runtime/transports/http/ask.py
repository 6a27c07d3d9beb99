"""``POST /v1/ask``: one ask as one JSON answer, or as a stream of its events (NET-1)."""

import asyncio
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from session_runtime.ask.emitter import discard
from session_runtime.transports.http.accept import choose_form
from session_runtime.transports.http.answers import STOPPING, ask_answer, error_answer
from session_runtime.transports.http.attached import attached
from session_runtime.transports.http.body import parsed, read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.events import EventStream
from session_runtime.transports.http.guard import Gate
from session_runtime.types import AskRequest
from session_runtime.wire import request_from_json


class AskEndpoint:
    """Reads a request and runs it; a client that disconnects cancels its ask."""

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits
        self._stop = stop

    async def handle(self, request: Request) -> Response | EventStream:
        """Answer in the form that the client accepts."""
        form = choose_form(",".join(request.headers.getlist("accept")))
        body = await read_body(request, self._limits.max_body_bytes, self._limits.body_timeout_s)
        asked = await parsed(body, request_from_json)
        asked = replace(asked, principal=self._gate.admit(request.scope))
        if form == "events":
            return EventStream(self._door, asked, self._stop, self._limits.ping_s)
        return await self._answer(asked, request.receive)

    async def _answer(self, asked: AskRequest, receive: Receive) -> Response:
        asking = asyncio.create_task(self._door.ask(asked, discard), name="http ask")
        async with attached(asking, receive, self._stop):
            await asyncio.wait([asking])
        return error_answer(STOPPING, 503) if asking.cancelled() else ask_answer(asking.result())
