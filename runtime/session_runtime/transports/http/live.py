"""``GET /v1/live``: how the daemon is, as events: again whenever that has changed (OPS-3)."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from session_runtime.errors import RequestError
from session_runtime.transports.http.answers import HEADERS
from session_runtime.transports.http.attached import attached
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.events import PING
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.query import check_query
from session_runtime.wire import running_to_json, to_bytes

MOST_RECENT: Final = 50

_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
]
_AGES: Final = frozenset({"age_s", "retry_in_s"})
"""What changes all the time, and is no news."""


def live_routes(door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event) -> list[Route]:
    """The route of the stream."""

    async def live(request: Request) -> _LiveStream:
        """``GET /v1/live``, for admins."""
        require_admin(gate.admit(request.scope))
        check_query(request.query_params, ())
        return _LiveStream(door, gate, limits, stop)

    return [Route("/v1/live", live, methods=["GET"])]


class _LiveStream:
    """An ASGI response that never ends by itself: events ``status``, ``asks`` and ``recent``.

    Whoever may not see it any more is told by ``ended``.
    """

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client leaves, may not stay, or the daemon stops."""
        telling = asyncio.create_task(self._tell(scope, send), name="http live")
        async with attached(telling, receive, self._stop):
            await asyncio.wait([telling])
        if not telling.cancelled():
            telling.result()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, scope: Scope, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        known: dict[str, object] = {}
        silent_s = 0.0
        while self._may_stay(scope):
            pages = self._pages()
            news = {name: page for name, page in pages.items() if _lasting(page) != known.get(name)}
            known |= {name: _lasting(page) for name, page in news.items()}
            silent_s = 0.0 if news else silent_s + self._limits.look_s
            if news:
                await _send(send, b"".join(_frame(name, page) for name, page in news.items()))
            elif silent_s >= self._limits.ping_s:
                silent_s = 0.0
                await _send(send, PING)
            await asyncio.sleep(self._limits.look_s)
        await _send(send, _frame("ended", {}))

    def _may_stay(self, scope: Scope) -> bool:
        """Look at the key or session again: it may be gone."""
        try:
            require_admin(self._gate.admit(scope))
        except RequestError:
            return False
        return True

    def _pages(self) -> Mapping[str, Mapping[str, Any]]:
        insight = self._door.insight
        return {
            "status": self._door.status(),
            "asks": {"asks": [running_to_json(ask) for ask in self._door.running.list()]},
            "recent": {"totals": insight.totals(), "asks": insight.ended(MOST_RECENT)},
        }


def _lasting(value: object) -> object:
    """A page without what changes all the time."""
    match value:
        case Mapping():
            return {name: _lasting(each) for name, each in value.items() if name not in _AGES}
        case list() | tuple():
            return [_lasting(each) for each in value]
        case _:
            return value


def _frame(event: str, data: Mapping[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (event.encode(), to_bytes(data))


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
