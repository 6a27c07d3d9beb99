"""Tools that changed, over HTTP: looking at what waits, and approving it; for admins (RTE-4)."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.threads import aside
from session_runtime.transports.http.answers import json_answer
from session_runtime.transports.http.body import parsed, read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.query import check_query
from session_runtime.wire import approve_from_json


def approval_routes(door: HttpDoor, gate: Gate, limits: HttpLimits) -> list[Route]:
    """All routes of approvals."""

    async def show(request: Request) -> Response:
        """``GET /v1/tools/waiting/{name}``: what is to be approved, and what it was before."""
        require_admin(gate.admit(request.scope))
        check_query(request.query_params, ())
        found = door.approval.show(request.path_params["name"])
        return await aside("write schemas", partial(json_answer, found))

    async def approve(request: Request) -> Response:
        """``POST /v1/tools/approve``: take a tool in one form, or all of a server."""
        principal = gate.admit(request.scope)
        require_admin(principal)
        body = await read_body(request, limits.max_body_bytes, limits.body_timeout_s)
        match await parsed(body, approve_from_json):
            case (name, digest):
                done = await door.approval.approve(name, digest, principal.name)
            case str() as server:
                done = await door.approval.approve_all(server, principal.name)
        return json_answer(done)

    return [
        Route("/v1/tools/waiting/{name}", show, methods=["GET"]),
        Route("/v1/tools/approve", approve, methods=["POST"]),
    ]
