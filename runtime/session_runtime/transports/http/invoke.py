"""``POST /v1/tools/{name}/invoke``: one tool called by its name, as an ask without a model (NET-1f).

Which tools the operator offers here is configured; who may use them is decided by ``policy``, as always.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.ask.lengths import chars_of_request
from session_runtime.config.http import InvokeSettings
from session_runtime.direct import DirectCall
from session_runtime.errors import RequestError
from session_runtime.registry.patterns import Patterns
from session_runtime.transports.http.accept import choose_form
from session_runtime.transports.http.answers import invoke_answer
from session_runtime.transports.http.ask import Asked, AskEndpoint, key_of
from session_runtime.transports.http.body import parsed, read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.events import EventStream
from session_runtime.transports.http.guard import Gate
from session_runtime.transports.http.head import trace_of
from session_runtime.types import AskRequest
from session_runtime.wire import callback_from_json, detach_from_json, invoke_from_json

MOST_BODY_BYTES: Final = 1024 * 1024
"""Arguments are told in events, which are written on the event loop: no more than this."""


class Offered:
    """The canonical names of tools that may be called by their names: allowed, and not denied."""

    def __init__(self, allow: Sequence[str], deny: Sequence[str]) -> None:
        self._allow = Patterns(allow)
        self._deny = Patterns(deny)

    def __contains__(self, name: object) -> bool:
        return name in self._allow and name not in self._deny


def offered(settings: InvokeSettings) -> Offered:
    """What these settings offer; nothing while they are off."""
    return Offered(settings.allow if settings.enabled else (), settings.deny)


def invoke_routes(
    door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event
) -> tuple[Route, ...]:
    """The route to all tools."""
    invoke = _Invoke(door, gate, limits, AskEndpoint(door, gate, limits, stop))
    return (Route("/v1/tools/{name}/invoke", invoke.handle, methods=["POST"]),)


class _Invoke:
    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits, ask: AskEndpoint) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits
        self._ask = ask

    async def handle(self, request: Request) -> Response | EventStream:
        """Call the tool of the path; answers as ``POST /v1/ask`` does, but for the form of the result."""
        settings = self._door.live.snapshot.settings.http.invoke
        if not settings.enabled:
            raise RequestError(
                "tools cannot be called by their names: an operator can set http.invoke.enabled = true",
                code="request.not_found",
            )
        form = choose_form(",".join(request.headers.getlist("accept")))
        key = key_of(request)
        most = min(MOST_BODY_BYTES, self._limits.max_body_bytes)
        body = await read_body(request, most, self._limits.body_timeout_s)
        call = DirectCall(
            request.path_params["name"], {}, offered(settings), settings.max_result_chars
        )

        def read(data: object) -> tuple[AskRequest, int, bool, str | None]:
            asked = invoke_from_json(data, call)
            more = detach_from_json(data), callback_from_json(data)
            return asked, chars_of_request(asked), *more

        wanted, chars, detach, callback = await parsed(body, read)
        principal = self._gate.admit(request.scope)
        wanted = replace(wanted, principal=principal, trace=trace_of(request.scope))
        digest = hashlib.sha256(f"invoke {call.tool}\n".encode() + body).digest()
        asked = Asked(wanted, chars, form, detach, key, digest, callback, invoke_answer)
        return await self._ask.answer(asked, request.receive)
