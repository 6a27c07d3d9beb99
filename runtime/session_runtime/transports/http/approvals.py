"""Approving tools that changed, over HTTP; for admins (RTE-4)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.transports.http.answers import json_answer
from session_runtime.transports.http.body import read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.wire import approve_from_json, parse_json


def approval_routes(door: HttpDoor, gate: Gate, limits: HttpLimits) -> list[Route]:
    """All routes of approvals."""

    async def approve(request: Request) -> Response:
        """``POST /v1/tools/approve``: take a tool, or all of a server, as they are now."""
        principal = gate.admit(request.scope)
        require_admin(principal)
        body = await read_body(request, limits.max_body_bytes, limits.body_timeout_s)
        name, server = approve_from_json(parse_json(body))
        return json_answer(await door.approval.approve(name, server, principal.name))

    return [Route("/v1/tools/approve", approve, methods=["POST"])]
