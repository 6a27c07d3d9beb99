"""The doors to look through: tools, status, health, and the description of the routes."""

from functools import partial
from typing import Final

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.errors import RequestError
from session_runtime.trace.metrics import CONTENT_TYPE
from session_runtime.transports.http.answers import HEADERS, error_answer, json_answer
from session_runtime.transports.http.door import HttpDoor
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.invoke import offered
from session_runtime.transports.http.openapi import OPENAPI
from session_runtime.transports.http.query import (
    IDENTITY,
    check_query,
    identity_of,
    number_of,
)
from session_runtime.types import ErrorInfo, Identity

MOST_TOOLS: Final = 500
"""So many tools are listed at once."""

_PAGE: Final = ("after", "limit", "schemas")


class Pages:
    """Endpoints that only read."""

    def __init__(self, door: HttpDoor, gate: Gate) -> None:
        self._door = door
        self._gate = gate

    async def tools(self, request: Request) -> Response:
        """``GET /v1/tools``: what the identity in the query may use; without one the principal itself.

        Admins see all without one. Each tool tells if the caller may call it by its name, for that
        identity (NET-1f). A list that is too long says under ``next`` where to go on.
        """
        principal = self._gate.admit(request.scope)
        query = request.query_params
        identity = identity_from_query(query)
        if identity is None and not principal.admin:
            identity = Identity()
        most = number_of(query, "limit", MOST_TOOLS, MOST_TOOLS)
        schemas = _flag(query, "schemas")
        page = partial(
            self._door.tools, principal=principal, after=query.get("after", ""), limit=most + 1
        )
        tools = page(identity, schemas=schemas)
        invoke = self._door.live.snapshot.settings.http.invoke
        own = identity is None and invoke.enabled
        usable, names = page(Identity(), schemas=False) if own else tools, offered(invoke)
        invokable = {tool["name"] for tool in usable if tool["name"] in names}
        listed = [{**tool, "invokable": tool["name"] in invokable} for tool in tools[:most]]
        more = {"next": listed[-1]["name"]} if len(tools) > most else {}
        return json_answer({"tools": listed, **more})

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


def metrics_routes(door: HttpDoor, pages: Pages) -> tuple[Route, ...]:
    """The route to the numbers; none if the daemon was started without them."""
    if not door.live.snapshot.settings.metrics.enabled:
        return ()
    return (Route("/metrics", pages.metrics, methods=["GET"]),)


def identity_from_query(query: QueryParams) -> Identity | None:
    """Read ``user``, ``role`` (repeated), ``channel``, ``group``; None if none is given.

    Raises RequestError for other names, blank values, and names given twice.
    """
    check_query(query, (*IDENTITY, *_PAGE), repeatable=("role",))
    if not any(name in query for name in IDENTITY):
        return None
    return identity_of(query)


def _flag(query: QueryParams, name: str) -> bool:
    text = query.get(name, "false")
    if text in ("true", "false"):
        return text == "true"
    raise RequestError(f"the query parameter {name!r} is {text[:40]!r}; give true or false")
