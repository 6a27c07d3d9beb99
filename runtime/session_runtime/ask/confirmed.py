"""Carries out what a person agreed to before this ask, exactly as it was asked about (RTE-9).

What is claimed for an ask is decided in ``registry/confirmations``, consent itself in ``invoke/consent``.
"""

from collections.abc import Sequence
from dataclasses import replace

from session_runtime.ask.exposure import Exposure
from session_runtime.ask.history import fresh_ids
from session_runtime.ask.reading import read_again
from session_runtime.ask.running import Ready
from session_runtime.ask.scope import AskScope
from session_runtime.ask.turn import KeepTurn, TurnRun, admit, refused, run_prepared
from session_runtime.registry.confirmations import Answered
from session_runtime.registry.invoke.consent import form_of
from session_runtime.registry.policy import routed_as
from session_runtime.registry.spec import ToolSpec
from session_runtime.trace.record import CallRecord
from session_runtime.types import Message, ToolCall, ToolResult


async def carry_out(
    scope: AskScope,
    exposure: Exposure,
    sent: Sequence[Message],
    answered: Sequence[Answered],
    records: list[CallRecord],
    keep: KeepTurn,
) -> TurnRun:
    """Run every call that a person agreed to, and say of the others that they were declined.

    Whether each may run is decided anew, as for a call that the model makes now; only what it is about comes
    from then. The calls have ids that no message in ``sent`` has, and are in ``records`` at the end.
    ``keep`` is as for ``run_prepared``.
    """
    ids = fresh_ids(sent, (each.waiting.call.id for each in answered))
    calls = [
        replace(each.waiting.call, id=fresh) for each, fresh in zip(answered, ids, strict=True)
    ]
    prepared = [
        await _prepare(scope, exposure, each, call)
        for each, call in zip(answered, calls, strict=True)
    ]
    return await run_prepared(scope, exposure, calls, prepared, records, keep)


async def _prepare(
    scope: AskScope, exposure: Exposure, answered: Answered, call: ToolCall
) -> Ready | ToolResult:
    spec = exposure.permitted(call.name)
    if spec is None:
        return _not_wanted(answered, call) or refused(
            call, "tool.unknown", f"{call.name} was not run: there is no such tool here any more"
        )
    read = await read_again(call.arguments)
    result = _not_wanted(answered, call) or _changed(scope, answered, call, spec)
    if result is not None:
        context = scope.context(call.id)
        scope.generation.invoker.record_refused(spec, read.values, context, scope.principal, result)
        return result
    return admit(scope, call, spec, read)


def _not_wanted(answered: Answered, call: ToolCall) -> ToolResult | None:
    if answered.agreed:
        return None
    return refused(
        call,
        "tool.declined",
        f"{call.name} was not run and nothing was changed: the person who was asked declined. "
        "Do not call it again unless they ask for it",
    )


def _changed(
    scope: AskScope, answered: Answered, call: ToolCall, spec: ToolSpec
) -> ToolResult | None:
    source = scope.generation.catalog.sources[spec.source_id]
    routes = source.routes(spec, routed_as(scope.principal, scope.identity))
    if form_of(spec, routes) == answered.waiting.form:
        return None
    return refused(
        call,
        "tool.changed",
        f"{call.name} was not run and nothing was changed: the tool is not the same any more as when "
        "the person was asked. Call it again if it is still wanted",
    )
