"""The doors to look through: tools, status, health, and the description of the routes."""

from typing import Final

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from session_runtime.trace.metrics import CONTENT_TYPE
from session_runtime.transports.http.answers import HEADERS, error_answer, json_answer
from session_runtime.transports.http.door import HttpDoor
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.openapi import OPENAPI
from session_runtime.transports.http.query import check_query
from session_runtime.types import ErrorInfo, Identity

_TOOLS_PARAMETERS: Final = ("user", "role", "channel", "group")


class Pages:
    """Endpoints that only read."""

    def __init__(self, door: HttpDoor, gate: Gate) -> None:
        self._door = door
        self._gate = gate

    async def tools(self, request: Request) -> Response:
        """``GET /v1/tools``: what the identity in the query would see; admins: all without one."""
        principal = self._gate.admit(request.scope)
        identity = identity_from_query(request.query_params)
        if identity is None:
            require_admin(principal)
        return json_answer({"tools": self._door.tools(identity, principal)})

    async def status(self, request: Request) -> Response:
        """``GET /v1/status``: the state of the runtime, for admins (INT-4)."""
        require_admin(self._gate.admit(request.scope))
        return json_answer(self._door.status())

    async def health(self, request: Request) -> Response:
        """``GET /healthz``: the process is alive."""
        del request
        return json_answer({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """``GET /readyz``: asks are taken; 503 with the reason if they are not.

        Names the servers that are missing, if any (RTE-1).
        """
        del request
        ready, reason = self._door.ready()
        if ready:
            missing = list(self._door.missing())
            return json_answer({"status": "ready", **({"missing": missing} if missing else {})})
        return error_answer(ErrorInfo("busy.not_ready", reason, True, 1.0), 503)

    async def metrics(self, request: Request) -> Response:
        """``GET /metrics``: numbers for a monitoring system, for whoever has any key (REL-3)."""
        del request
        return Response(self._door.metrics(), headers=HEADERS, media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Response:
        """``GET /openapi.json``, for admins."""
        require_admin(self._gate.admit(request.scope))
        return json_answer(OPENAPI)


def identity_from_query(query: QueryParams) -> Identity | None:
    """Read ``user``, ``role`` (repeated), ``channel``, ``group``; None if none is given.

    Raises RequestError for other names, blank values, and names given twice.
    """
    check_query(query, _TOOLS_PARAMETERS, repeatable=("role",))
    if not query:
        return None
    roles = query.getlist("role")
    return Identity(
        user=query.get("user"),
        roles=frozenset(roles) if roles else None,
        channel=query.get("channel"),
        group=query.get("group"),
    )
