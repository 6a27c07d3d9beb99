"""Servers of tools over HTTP: what they wrote, listing their tools again, connecting anew; for admins."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.errors import RequestError
from session_runtime.transports.http.answers import json_answer
from session_runtime.transports.http.door import HttpDoor
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.query import check_query

MOST_LINES: Final = 1000
FEW_LINES: Final = 100

Change = Callable[[str], Awaitable[Mapping[str, Any]]]


def server_routes(door: HttpDoor, gate: Gate) -> list[Route]:
    """All routes of servers."""
    pages = _Servers(door, gate)
    return [
        Route("/v1/servers/{name}/log", pages.log, methods=["GET"]),
        Route("/v1/servers/{name}/refresh", pages.refresh, methods=["POST"]),
        Route("/v1/servers/{name}/restart", pages.restart, methods=["POST"]),
    ]


class _Servers:
    """One server by its configured name."""

    def __init__(self, door: HttpDoor, gate: Gate) -> None:
        self._door = door
        self._gate = gate

    async def log(self, request: Request) -> Response:
        """``GET /v1/servers/{name}/log?lines=``: the last lines of its standard error."""
        require_admin(self._gate.admit(request.scope))
        check_query(request.query_params, ("lines",))
        lines = _lines(request.query_params.get("lines"))
        found = await self._door.servers.log(request.path_params["name"], lines)
        return json_answer({"logs": found})

    async def refresh(self, request: Request) -> Response:
        """``POST /v1/servers/{name}/refresh``: list its tools again."""
        return await self._change(request, self._door.servers.refresh)

    async def restart(self, request: Request) -> Response:
        """``POST /v1/servers/{name}/restart``: end the connection and make a new one."""
        return await self._change(request, self._door.servers.restart)

    async def _change(self, request: Request, change: Change) -> Response:
        require_admin(self._gate.admit(request.scope))
        check_query(request.query_params, ())
        return json_answer(await change(request.path_params["name"]))


def _lines(text: str | None) -> int:
    if text is None:
        return FEW_LINES
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_LINES:
        raise RequestError(
            f"the query parameter 'lines' is {text[:40]!r}; give a number from 1 to {MOST_LINES}"
        )
    return int(text)
