"""The doors to look through: tools, status, health, and the description of the routes."""

from typing import Final

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from session_runtime.errors import RequestError
from session_runtime.spelling import hint
from session_runtime.transports.http.answers import error_answer, json_answer
from session_runtime.transports.http.door import HttpDoor
from session_runtime.transports.http.openapi import OPENAPI
from session_runtime.types import ErrorInfo, Identity

_TOOLS_PARAMETERS: Final = ("user", "role", "channel", "group")


class Pages:
    """Endpoints that only read."""

    def __init__(self, door: HttpDoor) -> None:
        self._door = door

    async def tools(self, request: Request) -> Response:
        """``GET /v1/tools``: what the identity in the query would see; all tools without one."""
        identity = identity_from_query(request.query_params)
        return json_answer({"tools": self._door.tools(identity)})

    async def status(self, request: Request) -> Response:
        """``GET /v1/status``: the state of the runtime (INT-4)."""
        del request
        return json_answer(self._door.status())

    async def health(self, request: Request) -> Response:
        """``GET /healthz``: the process is alive."""
        del request
        return json_answer({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """``GET /readyz``: asks are taken; 503 with the reason if they are not."""
        del request
        ready, reason = self._door.ready()
        if ready:
            return json_answer({"status": "ready"})
        return error_answer(ErrorInfo("busy.not_ready", reason, True, 1.0), 503)

    async def openapi(self, request: Request) -> Response:
        """``GET /openapi.json``."""
        del request
        return json_answer(OPENAPI)


def identity_from_query(query: QueryParams) -> Identity | None:
    """Read ``user``, ``role`` (repeated), ``channel``, ``group``; None if none is given.

    Raises RequestError for other names, blank values, and names given twice.
    """
    for name, value in query.multi_items():
        _check_parameter(name, value, query)
    if not query:
        return None
    roles = query.getlist("role")
    return Identity(
        user=query.get("user"),
        roles=frozenset(roles) if roles else None,
        channel=query.get("channel"),
        group=query.get("group"),
    )


def _check_parameter(name: str, value: str, query: QueryParams) -> None:
    if name not in _TOOLS_PARAMETERS:
        way_out = hint(name, _TOOLS_PARAMETERS) or f"use {', '.join(_TOOLS_PARAMETERS)}"
        raise RequestError(f"unknown query parameter {name[:100]!r}; {way_out}")
    if not value.strip():
        raise RequestError(f"the query parameter {name!r} is blank; leave it out or fill it in")
    if name != "role" and len(query.getlist(name)) > 1:
        raise RequestError(f"the query parameter {name!r} is given twice; give it once")
