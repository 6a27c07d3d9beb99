"""``/v1/chat/completions`` and ``/v1/models``: asks for clients of OpenAI's interface (NET-1).

The daemon runs the tools; the profiles are the models.
"""

import asyncio
import hashlib
import time
from dataclasses import replace
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive

from session_runtime.ask.kept_asks import KeptAsk
from session_runtime.ask.lengths import chars_of_result
from session_runtime.errors import RequestError
from session_runtime.transports.follow import Follower
from session_runtime.transports.http.answers import STOPPING, error_answer, json_answer, written
from session_runtime.transports.http.ask import key_of
from session_runtime.transports.http.attached import attached
from session_runtime.transports.http.body import parsed, read_body
from session_runtime.transports.http.completions_errors import (
    COMPLETIONS,
    MODELS,
    Heard,
    failure,
    in_style,
)
from session_runtime.transports.http.completions_reply import Heading, completion, model_object
from session_runtime.transports.http.completions_request import Wanted, completion_from_json
from session_runtime.transports.http.completions_stream import CompletionForm
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.events import EventStream
from session_runtime.transports.http.guard import Gate
from session_runtime.transports.http.head import trace_of
from session_runtime.transports.http.query import check_query
from session_runtime.transports.outbox import Outbox
from session_runtime.types import AskResult


def completion_routes(
    door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event
) -> list[Route]:
    """All routes of OpenAI's interface."""
    models = _Models(door, gate)
    return [
        Route(COMPLETIONS, _Completions(door, gate, limits, stop).handle, methods=["POST"]),
        Route(MODELS, models.all, methods=["GET"]),
        Route(f"{MODELS}/{{id:path}}", models.one, methods=["GET"]),
    ]


class _Completions:
    """Reads a request and runs it as an ask; a client that disconnects cancels it."""

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits
        self._stop = stop

    async def handle(self, request: Request) -> Response | EventStream:
        """``POST``: the whole answer, or a stream if the request says so; ``Accept`` is not looked at."""
        key = key_of(request)
        body = await read_body(request, self._limits.max_body_bytes, self._limits.body_timeout_s)
        wanted = await parsed(body, completion_from_json)
        principal = self._gate.admit(request.scope)
        asked = replace(wanted.asked, principal=principal, trace=trace_of(request.scope))
        wanted = replace(wanted, asked=asked)
        kept = None if key is None else await self._keep(wanted, key, body)
        if not wanted.stream:
            return await self._answer(wanted, kept, request.receive)
        # with require_end a model's prose may be sent back to it: what it has to say are messages
        live = not self._door.live.snapshot.settings.ask.require_end
        log = None if kept is None else kept.log
        form = CompletionForm(wanted, _now(), live=live, log=log)
        if kept is not None:
            source, ping_s = Follower(kept.log), self._limits.ping_s
            return EventStream(source, kept.finished, self._stop, ping_s, form, kept.ask_id)
        outbox = Outbox()
        work = partial(self._door.ask, asked, outbox.emit, chars=wanted.chars)
        return EventStream(outbox, work, self._stop, self._limits.ping_s, form)

    async def _keep(self, wanted: Wanted, key: str, body: bytes) -> KeptAsk:
        """The ask of this key, which goes on without its client (NET-1b); started if there is none."""
        digest = hashlib.sha256(b"completion\n" + body).digest()
        return await self._door.kept.start(wanted.asked, key=key, digest=digest, chars=wanted.chars)

    async def _answer(self, wanted: Wanted, kept: KeptAsk | None, receive: Receive) -> Response:
        created, heard = _now(), Heard(wanted.asked.model)
        if kept is None:
            work = self._door.ask(wanted.asked, heard.emit, chars=wanted.chars)
        else:
            work = _heard(kept, heard)
        asking = asyncio.create_task(work, name="http ask")
        async with attached(asking, receive, self._stop):
            await asyncio.wait([asking])
        if asking.cancelled():
            return in_style(COMPLETIONS, error_answer(STOPPING, 503))
        result = asking.result()
        refusal = failure(result, heard)
        if refusal is not None:
            return refusal
        heading = Heading(result.ask_id, created, heard.model)
        chars = chars_of_result(result)
        return await written(chars, lambda: json_answer(completion(heading, result, wanted)))


class _Models:
    """The profiles, the default one first."""

    def __init__(self, door: HttpDoor, gate: Gate) -> None:
        self._door = door
        self._gate = gate

    async def all(self, request: Request) -> Response:
        """``GET /v1/models``."""
        self._gate.admit(request.scope)
        check_query(request.query_params, ())
        return json_answer({"object": "list", "data": [*map(self._shown, self._door.models())]})

    async def one(self, request: Request) -> Response:
        """``GET /v1/models/{id}``."""
        self._gate.admit(request.scope)
        wanted, names = request.path_params["id"], self._door.models()
        if wanted not in names:
            raise RequestError(
                f"there is no model profile {wanted[:100]!r}; GET {MODELS} lists all",
                code="request.unknown_model",
            )
        return json_answer(self._shown(wanted))

    def _shown(self, name: str) -> dict[str, object]:
        return model_object(name, self._door.live.snapshot.settings.runtime.name)


async def _heard(kept: KeptAsk, heard: Heard) -> AskResult:
    """Hear all that a kept ask reports, and wait for its end."""
    events = Follower(kept.log)
    while (delivery := await events.take()) is not None:
        heard.emit(delivery.event)
    heard.recall(kept.log)
    return await kept.finished()


def _now() -> int:
    return int(time.time())
