"""``POST /v1/ask``: one ask as one JSON answer, or as a stream of its events (NET-1)."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from session_runtime.ask.emitter import discard
from session_runtime.ask.kept_asks import KeptAsk, is_turned_away
from session_runtime.ask.lengths import chars_of_request, chars_of_result
from session_runtime.callbacks.box import Expected
from session_runtime.errors import RequestError
from session_runtime.transports.follow import Follower
from session_runtime.transports.http.accept import Form, choose_form
from session_runtime.transports.http.answers import (
    STOPPING,
    ask_answer,
    error_answer,
    json_answer,
    written,
)
from session_runtime.transports.http.attached import attached
from session_runtime.transports.http.body import parsed, read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.events import AskForm, EventStream
from session_runtime.transports.http.guard import Gate
from session_runtime.transports.http.head import trace_of
from session_runtime.transports.outbox import Outbox
from session_runtime.types import AskRequest, AskResult
from session_runtime.wire import callback_from_json, detach_from_json, request_from_json

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks, and how: ``key`` and ``digest`` tell whether it has asked the same before.

    ``chars`` is how long the request is, ``callback`` names who is told of the end, ``answered`` writes the
    result where it is not streamed.
    """

    request: AskRequest
    chars: int
    form: Form
    detach: bool = False
    key: str | None = None
    digest: bytes = b""
    callback: str | None = None
    answered: Callable[[AskResult], Response] = ask_answer


class AskEndpoint:
    """Reads a request and runs it; a client that disconnects cancels its ask, unless it is kept."""

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits
        self._stop = stop

    async def handle(self, request: Request) -> Response | EventStream:
        """Answer in the form that the client accepts."""
        form = choose_form(",".join(request.headers.getlist("accept")))
        key = key_of(request)
        body = await read_body(request, self._limits.max_body_bytes, self._limits.body_timeout_s)
        asked, chars, detach, callback = await parsed(body, _read)
        principal = self._gate.admit(request.scope)
        asked = replace(asked, principal=principal, trace=trace_of(request.scope))
        digest = b"" if key is None else hashlib.sha256(body).digest()
        wanted = Asked(asked, chars, form, detach, key, digest, callback)
        return await self.answer(wanted, request.receive)

    async def answer(self, asked: Asked, receive: Receive) -> Response | EventStream:
        """Run what is asked; one with a key or that is detached goes on without its client."""
        if asked.key is None and not asked.detach:
            return await self._attach(asked, receive)
        if asked.callback is not None:
            with self._door.callbacks.reserve(asked.callback, asked.request.principal.name):
                kept = await self._start(asked)
                self._expect(kept, asked.callback)
                return self._accepted(kept)
        kept = await self._start(asked)
        if asked.detach:
            return self._accepted(kept)
        if asked.form == "events":
            return self.follow(kept, refuses=True)
        return await self._wait(asked, kept.finished, receive)

    def follow(self, kept: KeptAsk, after: int = 0, *, refuses: bool = False) -> EventStream:
        """The events of an ask that is kept; a client that leaves does not disturb it."""
        source = Follower(kept.log, after)
        form = AskForm(refuses=refuses, resumable=True)
        ping_s = self._limits.ping_s
        return EventStream(source, kept.finished, self._stop, ping_s, form, kept.ask_id)

    async def _attach(self, asked: Asked, receive: Receive) -> Response | EventStream:
        if asked.form == "events":
            outbox = Outbox()
            work = partial(self._door.ask, asked.request, outbox.emit, chars=asked.chars)
            return EventStream(outbox, work, self._stop, self._limits.ping_s, AskForm())
        work = partial(self._door.ask, asked.request, discard, chars=asked.chars)
        return await self._wait(asked, work, receive)

    async def _start(self, asked: Asked) -> KeptAsk:
        return await self._door.kept.start(
            asked.request, key=asked.key, digest=asked.digest, chars=asked.chars
        )

    def _expect(self, kept: KeptAsk, callback: str) -> None:
        if kept.result is None or not is_turned_away(kept.result):
            owner = kept.principal, kept.user
            self._door.callbacks.expect(Expected(callback, kept.ask_id, *owner, kept.finished))

    def _accepted(self, kept: KeptAsk) -> Response:
        """Say where a detached ask is found, or why there is no room for it."""
        result = kept.result
        if result is not None and is_turned_away(result):
            return ask_answer(result)
        state = "running" if result is None else "ended"
        location = {"location": f"/v1/asks/{kept.ask_id}"}
        return json_answer({"ask_id": kept.ask_id, "state": state}, 202, location)

    async def _wait(
        self, asked: Asked, work: Callable[[], Coroutine[Any, Any, AskResult]], receive: Receive
    ) -> Response:
        result = await self._attended(work, receive)
        if result is None:
            return error_answer(STOPPING, 503)
        return await written(chars_of_result(result), partial(asked.answered, result))

    async def attend(self, kept: KeptAsk, receive: Receive) -> bool:
        """Wait for the end of an ask as long as its client does; tells whether it came."""
        return await self._attended(kept.finished, receive) is not None

    async def _attended(
        self, work: Callable[[], Coroutine[Any, Any, AskResult]], receive: Receive
    ) -> AskResult | None:
        """Work as long as the client waits and the daemon does not stop."""
        asking = asyncio.create_task(work(), name="http ask")
        async with attached(asking, receive, self._stop):
            await asyncio.wait([asking])
        return None if asking.cancelled() else asking.result()


def key_of(request: Request) -> str | None:
    """The idempotency key of a request, if it has one; RequestError for one that cannot be used."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise RequestError(
            "the Idempotency-Key header must be there once, with 1 to 255 visible ASCII characters"
        )
    return given[0]


def _read(data: object) -> tuple[AskRequest, int, bool, str | None]:
    request = request_from_json(data)
    return request, chars_of_request(request), detach_from_json(data), callback_from_json(data)
