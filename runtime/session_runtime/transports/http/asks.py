"""Asks as resources (NET-1, REL-9): ask, and what runs or is kept: show it, follow it, end it, confirm.

Who made an ask sees and touches it, and so does an admin; for all others it does not exist.
"""

import asyncio
import hashlib
from dataclasses import replace
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.ask.kept_asks import KeptAsk, follow_up, no_longer_kept
from session_runtime.ask.lengths import chars_of_request
from session_runtime.ask.service import ALL, BY_OPERATOR
from session_runtime.errors import RequestError
from session_runtime.registry.revocations import checked_reason
from session_runtime.threads import aside
from session_runtime.transports.http.accept import choose_form
from session_runtime.transports.http.answers import STOPPING, error_answer, json_answer, written
from session_runtime.transports.http.ask import Asked, AskEndpoint, key_of
from session_runtime.transports.http.body import parsed, read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.events import EventStream
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.head import trace_of
from session_runtime.transports.http.query import check_query
from session_runtime.types import AskResult, Principal, RunningAsk
from session_runtime.wire import (
    confirm_from_json,
    detach_from_json,
    result_to_json,
    running_to_json,
)

_OPERATOR_ENDED: Final = "an operator ended this ask"
_CALLER_ENDED: Final = "its caller ended this ask"
_BY_CALLER: Final = "cancelled.caller"
_LONGEST_NUMBER: Final = 15


def ask_routes(door: HttpDoor, gate: Gate, limits: HttpLimits, stop: asyncio.Event) -> list[Route]:
    """All routes of asks."""
    ask = AskEndpoint(door, gate, limits, stop)
    asks = _Asks(door, gate, limits, ask)
    return [
        Route("/v1/ask", ask.handle, methods=["POST"]),
        Route("/v1/asks", asks.list, methods=["GET"]),
        Route("/v1/asks/{id}", asks.one, methods=["GET", "DELETE"]),
        Route("/v1/asks/{id}/events", asks.events, methods=["GET"]),
        Route("/v1/asks/{id}/confirm", asks.confirm, methods=["POST"]),
    ]


class _Asks:
    """The asks that run, and those that are kept."""

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits, ask: AskEndpoint) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits
        self._ask = ask

    async def list(self, request: Request) -> Response:
        """``GET /v1/asks``: those that have not ended, the oldest first."""
        principal = self._gate.admit(request.scope)
        mine = (ask for ask in self._door.running.list() if _is_for(principal, ask.principal))
        return json_answer({"asks": [running_to_json(ask) for ask in mine]})

    async def one(self, request: Request) -> Response:
        """``/v1/asks/{id}``: show or end it."""
        principal = self._gate.admit(request.scope)
        if request.method == "DELETE":
            return self._cancel(request, principal)
        return await self._show(request.path_params["id"], principal)

    async def events(self, request: Request) -> EventStream:
        """``GET /v1/asks/{id}/events?after=``: what it reported since, then what it does.

        A reader that comes back says by ``Last-Event-ID`` what it has seen, at the address that it had.
        """
        principal = self._gate.admit(request.scope)
        check_query(request.query_params, ("after",))
        after = _sequence("the query parameter 'after'", request.query_params.get("after", "0"))
        if seen := request.headers.get("last-event-id"):
            after = max(after, _sequence("the header Last-Event-ID", seen))
        return self._ask.follow(self._kept(request.path_params["id"], principal), after)

    async def confirm(self, request: Request) -> Response | EventStream:
        """``POST /v1/asks/{id}/confirm``: go on with what a person said about its calls (RTE-9)."""
        form = choose_form(",".join(request.headers.getlist("accept")))
        key = key_of(request)
        body = await read_body(request, self._limits.max_body_bytes, self._limits.body_timeout_s)
        said, detach = await parsed(body, _decision)
        kept = self._own(request)
        if kept.is_about_to_ask((*said[1], *said[2])):
            if not await self._ask.attend(kept, request.receive):
                return error_answer(STOPPING, 503)
            kept = self._own(request)
        asked = follow_up(kept, *said)
        chars = await aside("measure a request", partial(chars_of_request, asked))
        principal = self._gate.admit(request.scope)
        asked = replace(asked, principal=principal, trace=trace_of(request.scope))
        digest = hashlib.sha256(kept.ask_id.encode() + body).digest()
        wanted = Asked(asked, chars, form, detach, key, digest)
        return await self._ask.answer(wanted, request.receive)

    def _own(self, request: Request) -> KeptAsk:
        """The ask that its maker is on about; no admin gives consent for others."""
        principal, wanted = self._gate.admit(request.scope), request.path_params["id"]
        kept = self._kept(wanted, principal)
        if kept.principal != principal.name:
            raise _unknown(wanted)
        return kept

    async def _show(self, wanted: str, principal: Principal) -> Response:
        if running := self._running(wanted, principal):
            return json_answer(running_to_json(running))
        kept = self._door.kept.find(wanted)
        if kept is None or kept.result is None or not _is_for(principal, kept.principal):
            raise self._no_such_ask(wanted, principal)
        ended, result = kept, kept.result
        return await written(ended.chars, lambda: json_answer(_ended(ended, result)))

    def _cancel(self, request: Request, principal: Principal) -> Response:
        """``DELETE ?reason=``: end one, or ``all``; tells how many were not ending yet.

        An admin acts as an operator, but for an ask of its own that it ends without a reason.
        """
        wanted, given = request.path_params["id"], _reason(request)
        if wanted == ALL:
            require_admin(principal)
            is_own = False
        else:
            is_own = self._owner(wanted, principal) == principal.name
        by_caller = not principal.admin or (is_own and given is None)
        code = _BY_CALLER if by_caller else BY_OPERATOR
        reason = given or (_CALLER_ENDED if by_caller else _OPERATOR_ENDED)
        return json_answer({"cancelled": self._door.running.cancel(wanted, reason, code)})

    def _owner(self, wanted: str, principal: Principal) -> str:
        """Whose an ask is that runs or is kept; RequestError if there is none for this principal."""
        if running := self._running(wanted, principal):
            return running.principal
        kept = self._door.kept.find(wanted)
        if kept is None or not _is_for(principal, kept.principal):
            raise self._no_such_ask(wanted, principal)
        return kept.principal

    def _kept(self, wanted: str, principal: Principal) -> KeptAsk:
        kept = self._door.kept.find(wanted)
        if kept is not None and _is_for(principal, kept.principal):
            return kept
        if self._running(wanted, principal) is None:
            raise self._no_such_ask(wanted, principal)
        raise RequestError(
            f"{wanted} belongs to the connection that asked: with detach, or an Idempotency-Key, its"
            " events and its result are kept",
            code="request.not_kept",
        )

    def _running(self, wanted: str, principal: Principal) -> RunningAsk | None:
        found = (ask for ask in self._door.running.list() if ask.ask_id == wanted)
        return next((ask for ask in found if _is_for(principal, ask.principal)), None)

    def _no_such_ask(self, wanted: str, principal: Principal) -> RequestError:
        gone = self._door.kept.gone(wanted)
        if gone is not None and _is_for(principal, gone.principal):
            return no_longer_kept(gone)
        return _unknown(wanted)


def _decision(data: object) -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], bool]:
    return confirm_from_json(data), detach_from_json(data)


def _ended(kept: KeptAsk, result: AskResult) -> dict[str, object]:
    """An ask that has ended, and until when it is kept, in seconds since 1970."""
    return {
        "ask_id": kept.ask_id,
        "state": "ended",
        "started": kept.started,
        "ended": kept.ended,
        "kept_until": kept.kept_until,
        "user": kept.user,
        "principal": kept.principal,
        "result": result_to_json(result),
    }


def _is_for(principal: Principal, owner: str) -> bool:
    return principal.admin or principal.name == owner


def _reason(request: Request) -> str | None:
    check_query(request.query_params, ("reason",))
    given = request.query_params.get("reason")
    return None if given is None else checked_reason(given)


def _sequence(where: str, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER:
        return int(text)
    raise RequestError(
        f"{where} is {text[:40]!r}; give the seq of the last event that was seen, or 0 for all"
    )


def _unknown(ask_id: str) -> RequestError:
    return RequestError(
        f"no ask {ask_id[:100]!r} is running or kept; GET /v1/asks lists those that run",
        code="request.unknown_ask",
    )
