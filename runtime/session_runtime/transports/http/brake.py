"""The emergency brake (REL-9): what is revoked and how to lift it, for admins; asks are ended in ``asks``."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.errors import RequestError
from session_runtime.registry.revoked import Matching
from session_runtime.transports.http.answers import json_answer
from session_runtime.transports.http.body import parsed, read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.wire import revoke_from_json

_LONGEST_NUMBER: Final = 15


def brake_routes(door: HttpDoor, gate: Gate, limits: HttpLimits) -> list[Route]:
    """All routes of the brake."""
    revocations = _Revocations(door, gate, limits)
    return [
        Route("/v1/revocations", revocations.all, methods=["GET", "POST"]),
        Route("/v1/revocations/{number}", revocations.lift, methods=["DELETE"]),
    ]


class _Revocations:
    """The tools that are taken away."""

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits

    async def all(self, request: Request) -> Response:
        """``/v1/revocations``: list them, or add one."""
        return await self._revoke(request) if request.method == "POST" else self._list(request)

    def _list(self, request: Request) -> Response:
        require_admin(self._gate.admit(request.scope))
        found = self._door.brake.list()
        return json_answer({"revocations": [revocation.to_json() for revocation in found]})

    async def _revoke(self, request: Request) -> Response:
        """``POST``: take away what a pattern matches; tells what that is now."""
        body = await read_body(request, self._limits.max_body_bytes, self._limits.body_timeout_s)
        pattern, reason = await parsed(body, revoke_from_json)
        principal = self._gate.admit(request.scope)
        require_admin(principal)
        brake = self._door.brake
        before = {revocation.number for revocation in brake.list()}
        revocation = await brake.revoke(pattern, reason, principal.name)
        found = await brake.matching(revocation.pattern)
        told = {
            **revocation.to_json(),
            "tools": found.tools,
            "warnings": _warnings(revocation.pattern, found),
        }
        return json_answer(told, 200 if revocation.number in before else 201)

    async def lift(self, request: Request) -> Response:
        """``DELETE /v1/revocations/{number}``: give back what it took; tells what is lifted."""
        require_admin(self._gate.admit(request.scope))
        lifted = await self._door.brake.lift(_number(request.path_params["number"]))
        return json_answer(lifted.to_json())


def _warnings(pattern: str, found: Matching) -> tuple[str, ...]:
    if found.tools:
        return ()
    near = f"; did you mean {found.nearest!r}?" if found.nearest else ""
    return (f"{pattern!r} is no tool's name now: it takes away what is added later{near}",)


def _number(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER:
        return int(text)
    raise RequestError(
        f"{text[:100]!r} is no number of a revocation; GET /v1/revocations lists them",
        code="request.unknown_revocation",
    )
