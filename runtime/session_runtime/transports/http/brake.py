"""The emergency brake (REL-9): which asks run and how to end them, what is revoked and how to lift it.

All of it is for admins.
"""

from typing import Final, NoReturn

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.ask.service import ALL
from session_runtime.errors import RequestError
from session_runtime.registry.revocations import checked_reason
from session_runtime.registry.revoked import Matching
from session_runtime.transports.http.answers import json_answer
from session_runtime.transports.http.body import read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.query import check_query
from session_runtime.wire import parse_json, revoke_from_json, running_to_json

BY_OPERATOR: Final = "an operator ended this ask"
_LONGEST_NUMBER: Final = 15


def brake_routes(door: HttpDoor, gate: Gate, limits: HttpLimits) -> list[Route]:
    """All routes of the brake."""
    asks, revocations = _Asks(door, gate), _Revocations(door, gate, limits)
    return [
        Route("/v1/asks", asks.list, methods=["GET"]),
        Route("/v1/asks/{id}", asks.one, methods=["GET", "DELETE"]),
        Route("/v1/revocations", revocations.all, methods=["GET", "POST"]),
        Route("/v1/revocations/{number}", revocations.lift, methods=["DELETE"]),
    ]


class _Asks:
    """The asks that run."""

    def __init__(self, door: HttpDoor, gate: Gate) -> None:
        self._door = door
        self._gate = gate

    async def list(self, request: Request) -> Response:
        """``GET /v1/asks``: all, the oldest first."""
        require_admin(self._gate.admit(request.scope))
        return json_answer({"asks": [running_to_json(ask) for ask in self._door.running.list()]})

    async def one(self, request: Request) -> Response:
        """``/v1/asks/{id}``: show or end it."""
        require_admin(self._gate.admit(request.scope))
        return self._cancel(request) if request.method == "DELETE" else self._show(request)

    def _show(self, request: Request) -> Response:
        wanted = request.path_params["id"]
        for ask in self._door.running.list():
            if ask.ask_id == wanted:
                return json_answer(running_to_json(ask))
        _no_such_ask(wanted)

    def _cancel(self, request: Request) -> Response:
        """``DELETE ?reason=``: end one, or ``all``; tells how many were not ending yet."""
        wanted, running = request.path_params["id"], self._door.running
        reason = _reason(request)
        if wanted != ALL and all(ask.ask_id != wanted for ask in running.list()):
            _no_such_ask(wanted)
        return json_answer({"cancelled": running.cancel(wanted, reason)})


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
        pattern, reason = revoke_from_json(parse_json(body))
        principal = self._gate.admit(request.scope)
        require_admin(principal)
        brake = self._door.brake
        before = {revocation.number for revocation in brake.list()}
        revocation = await brake.revoke(pattern, reason, principal.name)
        found = brake.matching(revocation.pattern)
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


def _reason(request: Request) -> str:
    check_query(request.query_params, ("reason",))
    return checked_reason(request.query_params.get("reason", BY_OPERATOR))


def _number(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER:
        return int(text)
    raise RequestError(
        f"{text[:100]!r} is no number of a revocation; GET /v1/revocations lists them",
        code="request.unknown_revocation",
    )


def _no_such_ask(ask_id: str) -> NoReturn:
    raise RequestError(
        f"no ask {ask_id[:100]!r} is running; GET /v1/asks lists those that are",
        code="request.unknown_ask",
    )
