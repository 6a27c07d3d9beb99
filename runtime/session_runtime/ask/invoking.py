"""One tool that a request calls by its name, without a model: which one that is, and the call (NET-1f)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from session_runtime.ask.running import attended, report_finished
from session_runtime.ask.scope import AskScope
from session_runtime.direct import Called, DirectCall
from session_runtime.errors import RequestError
from session_runtime.generation import Generation
from session_runtime.registry.confirmations import Answered
from session_runtime.registry.invoke.returned import ReturnedValue
from session_runtime.registry.spec import ToolSpec
from session_runtime.trace.record import record_call
from session_runtime.types import (
    ConfirmationRequired,
    ErrorInfo,
    Identity,
    PendingCall,
    Principal,
    ToolCall,
    ToolResult,
    ToolStarted,
)

CALL_ID: Final = "call_0"
MAY_PASS: Final = frozenset({"tool.unavailable", "tool.not_recorded"})
"""What a tool could not be run for just now: the same call may go well later."""

_DECLINED: Final = "was not run and nothing was changed: the person who was asked declined"
_WAITS: Final = (
    "was not run yet and nothing was changed: a person has to agree to it. If they do, send the same"
    " arguments again with the token of pending under confirmations"
)


@dataclass(frozen=True, slots=True)
class Invoked:
    """What came of a call: ``error`` unless it went well, ``pending`` if it waits for a person."""

    called: Called
    error: ErrorInfo | None
    pending: tuple[PendingCall, ...] = ()


def chosen(
    generation: Generation, principal: Principal, identity: Identity, wanted: DirectCall
) -> ToolSpec:
    """The tool that is meant: by its name in any case, its wire name or an alias, as in a search (TS-7).

    Raises RequestError (``request.unknown_tool``), with the same words for one that is not there, that may
    not be used, that is not offered, and for a name that several share.
    """
    view = generation.index.view(generation.policy.permitted(principal, identity))
    found = [name for name in map(view.name, view.resolve(wanted.tool)) if name in wanted.offered]
    if len(found) != 1:
        raise RequestError(
            f"there is no tool {wanted.tool[:100]!r} here that can be called by its name; GET /v1/tools"
            " tells which can",
            code="request.unknown_tool",
        )
    return generation.catalog.lookup(found[0])


async def invoke(
    scope: AskScope, spec: ToolSpec, wanted: DirectCall, answered: Sequence[Answered]
) -> Invoked:
    """Make the call, by the same checks as one that a model makes; ``answered`` is what was confirmed."""
    send, call = scope.emitter.send, ToolCall(CALL_ID, spec.name, "{}")
    returned, ended = ReturnedValue(), partial(_ended, scope, wanted)
    if any(not each.agreed for each in answered):
        result = _declined(scope, spec, wanted)
        ended(result)
    else:
        send(ToolStarted(call_id=CALL_ID, name=spec.name, arguments=wanted.arguments))
        run = partial(
            scope.generation.invoker.invoke,
            returned.within(scope.generation.catalog, spec),
            spec,
            wanted.arguments,
            scope.context(CALL_ID),
            principal=scope.principal,
            consent=scope.consent.of(call),
            most_chars=wanted.max_chars,
        )
        result = await attended(run, CALL_ID, spec.name, ended)
    pending = scope.consent.pending(CALL_ID)
    if pending is not None:
        send(ConfirmationRequired(pending=pending))
    return await _invoked(returned, result, pending)


def _ended(scope: AskScope, wanted: DirectCall, result: ToolResult) -> None:
    arguments = wanted.arguments if scope.keep_arguments else None
    scope.totals.invoked = record_call(result, arguments)
    report_finished(scope, result)


async def _invoked(
    returned: ReturnedValue,
    result: ToolResult,
    pending: PendingCall | None,
) -> Invoked:
    called = Called(
        tool=result.name,
        ok=result.status == "ok",
        text=result.content,
        structured=await returned.structured(result),
        whole_chars=result.whole_chars,
        attempts=result.attempts,
        duration_s=result.latency_s,
    )
    code = result.error_code
    if code is None:
        return Invoked(called, None)
    if pending is not None:
        return Invoked(called, ErrorInfo(code, f"{result.name} {_WAITS}"), (pending,))
    return Invoked(called, ErrorInfo(code, result.content, code in MAY_PASS))


def _declined(scope: AskScope, spec: ToolSpec, wanted: DirectCall) -> ToolResult:
    result = ToolResult(
        *(CALL_ID, spec.name, "refused", f"{spec.name} {_DECLINED}."), error_code="tool.declined"
    )
    scope.generation.invoker.record_refused(
        spec, wanted.arguments, scope.context(CALL_ID), scope.principal, result
    )
    return result
