"""The calls of one reply: prepare each in order, run what may run, answer every one (ASK-4)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from session_runtime.ask.arguments import ArgumentFault
from session_runtime.ask.exposure import Exposure, Turn
from session_runtime.ask.guards import Refused
from session_runtime.ask.notices import call_notices
from session_runtime.ask.reading import CallReader, ReadCall
from session_runtime.ask.running import Ready, report_finished, run_ready
from session_runtime.ask.scope import AskScope
from session_runtime.ask.unexposed import refuse_unexposed
from session_runtime.registry.deprecation import replacement_of
from session_runtime.registry.deprecation import warning as warning_of
from session_runtime.registry.names import END, RESULTS_READ, TOOL_SEARCH
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import SearchGovernor
from session_runtime.trace.record import CallRecord, SearchRecord, record_call
from session_runtime.types import (
    ConfirmationRequired,
    PendingCall,
    ToolCall,
    ToolResult,
    ToolsLoaded,
    ToolStarted,
)
from session_runtime.types import Notice as NoticeEvent

MAX_CALLS = 128
WRITTEN_AS_TEXT = "written as text"


KeepTurn = Callable[[tuple[ToolCall, ...], tuple[ToolResult, ...]], None]
"""Gets the calls of a reply as they are to be remembered, with repaired arguments, and all their results."""


@dataclass(frozen=True, slots=True)
class TurnRun:
    """What the calls of a turn came to; ``ended`` if the model called ``end`` alone and it succeeded.

    ``pending`` are those that wait for a person's consent.
    """

    pending: tuple[PendingCall, ...] = ()
    ended: bool = False
    all_refused: bool = False


async def run_calls(
    scope: AskScope,
    exposure: Exposure,
    turn: Turn,
    calls: Sequence[ToolCall],
    records: list[CallRecord],
    keep: KeepTurn,
    *,
    cut_off: bool = False,
) -> TurnRun:
    """Answer every call of one reply exactly once; see ``run_prepared``.

    With ``cut_off`` the reply ended before the model had finished.
    """
    reader = CallReader(cut_off=cut_off)
    prepared = [
        await _prepare(scope, exposure, turn, calls, at, reader) for at in range(len(calls))
    ]
    return await run_prepared(scope, exposure, calls, prepared, records, keep)


async def run_prepared(
    scope: AskScope,
    exposure: Exposure,
    calls: Sequence[ToolCall],
    prepared: Sequence[Ready | ToolResult],
    records: list[CallRecord],
    keep: KeepTurn,
) -> TurnRun:
    """Run the calls that are ready; the others have their results.

    Searches are answered first; the other calls run concurrently. Cancelling cancels the running tools.
    Once one has begun, every call is in ``records`` at the end and was given to ``keep``, however it ends.
    """
    ready = [item for item in prepared if isinstance(item, Ready)]
    if any(item.spec.origin == "virtual" for item in ready):
        await exposure.prepare_search()
    _announce(scope, ready)
    finished = _search_all(scope, exposure, ready)
    try:
        await run_ready(scope, ready, finished, readable=exposure.reads_results)
    finally:
        results = tuple(
            finished[item.call.id] if isinstance(item, Ready) else item for item in prepared
        )
        records += map(partial(_record, scope), calls, prepared, results)
        keep(_as_run(calls, prepared), results)
        for result in results:
            if result.call_id not in finished:
                report_finished(scope, result)
    load_reading(scope, exposure)
    pending = tuple(filter(None, (scope.consent.pending(call.id) for call in calls)))
    for call in pending:
        scope.emitter.send(ConfirmationRequired(pending=call))
    return TurnRun(
        pending,
        ended=any(item.spec.name == END for item in ready) and results[0].status == "ok",
        all_refused=not ready,
    )


def _as_run(
    calls: Sequence[ToolCall], prepared: Sequence[Ready | ToolResult]
) -> tuple[ToolCall, ...]:
    return tuple(
        item.as_run if isinstance(item, Ready) else call
        for item, call in zip(prepared, calls, strict=True)
    )


def load_reading(scope: AskScope, exposure: Exposure) -> None:
    """Once a result was given by reference, load what reads it (ASK-8b)."""
    if scope.results.used and exposure.load_results_read():
        scope.emitter.send(ToolsLoaded(names=(RESULTS_READ,)))


def _announce(scope: AskScope, ready: Sequence[Ready]) -> None:
    called = [item.spec for item in ready]
    in_agent = bool(scope.agents)
    for line in call_notices(scope.notices, scope.silent, called, in_agent=in_agent):
        scope.emitter.send(NoticeEvent(text=line))
    for item in ready:
        scope.emitter.send(
            ToolStarted(call_id=item.call.id, name=item.spec.name, arguments=item.arguments)
        )


async def _prepare(
    scope: AskScope,
    exposure: Exposure,
    turn: Turn,
    calls: Sequence[ToolCall],
    at: int,
    reader: CallReader,
) -> Ready | ToolResult:
    """Whether a call may run, decided in the event loop and in the order of the calls."""
    call = calls[at]
    if at >= MAX_CALLS:
        reason = f"a reply may hold at most {MAX_CALLS} calls: make the others in later turns"
        return refused(call, "limit.calls_in_turn", reason)
    spec = turn.by_name.get(call.name)
    if spec is None:
        scope.generation.invoker.lookups.add("unknown")
        return _not_exposed(scope, exposure, turn, call)
    if spec.name == END and len(calls) > 1:
        return refused(
            call,
            "tool.end_not_alone",
            "end was not carried out because other calls stood beside it; they were handled. "
            "Read their results, then call end alone if nothing is left to do",
        )
    searches = spec.name == TOOL_SEARCH and spec.origin == "virtual"
    check = scope.generation.loader.check.problems if searches else None
    read = await reader.read(call, spec, check)
    if isinstance(read, ArgumentFault):
        return _wrong(call, read.problem)
    if searches:
        return Ready(call, spec, read.values, repairs=read.repairs)
    return admit(scope, call, spec, read)


def admit(scope: AskScope, call: ToolCall, spec: ToolSpec, read: ReadCall) -> Ready | ToolResult:
    """Count a call against the limits of the ask; a result says why it may not run."""
    decision = scope.guard.admit(spec.name, read.same_as)
    if isinstance(decision, Refused):
        return refused(call, decision.code, decision.reason)
    warning = "\n".join(filter(None, (decision.warning, _deprecation(scope, spec))))
    return Ready(call, spec, read.values, warning, read.repairs)


def _deprecation(scope: AskScope, spec: ToolSpec) -> str:
    """Warn once in an ask of a tool that should not be used any more (RTE-12)."""
    if spec.deprecated is None or not scope.guard.warns_now(spec.name):
        return ""
    generation = scope.generation
    usable = generation.policy.permitted(scope.principal, scope.identity)
    return warning_of(spec, replacement_of(spec, generation.permitted.get(usable).names))


def _not_exposed(scope: AskScope, exposure: Exposure, turn: Turn, call: ToolCall) -> ToolResult:
    refusal = refuse_unexposed(exposure, turn, scope.guard, call.name)
    if refusal.loaded:
        scope.emitter.send(ToolsLoaded(names=(call.name,)))
    return refused(call, refusal.code, refusal.reason)


def _wrong(call: ToolCall, problem: str) -> ToolResult:
    text = f"{call.name} was not run: {problem}"
    return ToolResult(call.id, call.name, "error", text, error_code="tool.invalid_arguments")


def refused(call: ToolCall, code: str, reason: str) -> ToolResult:
    """The result of a call that was not run."""
    return ToolResult(call.id, call.name, "refused", f"{reason}.", error_code=code)


def _search_all(
    scope: AskScope, exposure: Exposure, ready: Sequence[Ready]
) -> dict[str, ToolResult]:
    searches = [item for item in ready if item.spec.origin == "virtual"]
    if exposure.governor is None:
        return {}
    return {item.call.id: _search(scope, exposure.governor, item) for item in searches}


def _search(scope: AskScope, governor: SearchGovernor, item: Ready) -> ToolResult:
    wanted = item.arguments.get("max_results")
    reply = governor.answer(item.arguments["query"], None if wanted is None else int(wanted))
    if reply.loaded:
        scope.emitter.send(ToolsLoaded(names=reply.loaded))
    result = ToolResult(
        item.call.id,
        item.spec.name,
        "refused" if reply.refused else "ok",
        reply.content,
        error_code=reply.error_code,
    )
    report_finished(scope, result)
    return result


def _record(
    scope: AskScope, call: ToolCall, item: Ready | ToolResult, result: ToolResult
) -> CallRecord:
    written = (WRITTEN_AS_TEXT,) if call.recovered else ()
    if isinstance(item, ToolResult):
        return record_call(result, None, repairs=written)
    return record_call(
        result,
        item.arguments if scope.keep_arguments else None,
        repairs=(*written, *item.repairs),
        search=_search_record(item, result) if item.spec.origin == "virtual" else None,
        counted=item.spec.origin != "virtual",
    )


def _search_record(item: Ready, result: ToolResult) -> SearchRecord:
    query, most = str(item.arguments["query"]), item.arguments.get("max_results")
    max_results = None if most is None else int(most)
    if result.status != "ok":
        return SearchRecord(query, max_results=max_results)
    found = json.loads(result.content)
    return SearchRecord(
        query,
        tuple(found["loaded"]),
        tuple(found["already_loaded"]),
        tuple(found["not_found"]),
        found["truncated"],
        max_results,
    )
