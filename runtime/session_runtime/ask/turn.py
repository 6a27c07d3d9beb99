"""The calls of one reply: prepare each in order, run what may run, answer every one (ASK-4)."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from session_runtime.ask.arguments import ArgumentFault, Arguments, parse_arguments
from session_runtime.ask.exposure import Exposure, Turn
from session_runtime.ask.guards import Refused
from session_runtime.ask.notices import call_notices
from session_runtime.ask.scope import AskScope
from session_runtime.registry.deprecation import replacement_of
from session_runtime.registry.deprecation import warning as warning_of
from session_runtime.registry.invoke.results import Place
from session_runtime.registry.names import END, RESULTS_READ, TOOL_SEARCH
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import SearchGovernor
from session_runtime.spelling import nearest
from session_runtime.threads import aside
from session_runtime.trace.record import CallRecord, SearchRecord, record_call
from session_runtime.types import (
    ConfirmationRequired,
    JsonObject,
    PendingCall,
    ToolCall,
    ToolFinished,
    ToolResult,
    ToolsLoaded,
    ToolStarted,
)
from session_runtime.types import Notice as NoticeEvent

CANCEL_GRACE_S = 2.0
NAMES_IN_REFUSAL = 12
MAX_COMPARED = 200
MAX_CALLS = 128
READ_AT_ONCE_CHARS = 16_384
UNKNOWN = "tool.unknown"
WRITTEN_AS_TEXT = "written as text"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that may run: exposed, readable, within limits."""

    call: ToolCall
    spec: ToolSpec
    arguments: JsonObject
    warning: str = ""
    repairs: tuple[str, ...] = ()

    @property
    def as_run(self) -> ToolCall:
        """The call with the arguments that it ran with; untouched where nothing was repaired."""
        if not self.repairs:
            return self.call
        return replace(self.call, arguments=json.dumps(self.arguments, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class TurnRun:
    """All results in call order; ``ended`` if the model called ``end`` alone and it succeeded.

    ``calls`` are those of the reply as they are to be remembered: with repaired arguments. ``pending`` are
    those that wait for a person's consent.
    """

    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    records: tuple[CallRecord, ...]
    pending: tuple[PendingCall, ...] = ()
    ended: bool = False
    all_refused: bool = False


async def run_calls(
    scope: AskScope,
    exposure: Exposure,
    turn: Turn,
    calls: Sequence[ToolCall],
    *,
    cut_off: bool = False,
) -> TurnRun:
    """Answer every call of one reply exactly once.

    With ``cut_off`` the reply ended before the model had finished.
    """
    prepared = [
        await _prepare(scope, exposure, turn, calls, at, cut_off=cut_off)
        for at in range(len(calls))
    ]
    return await run_prepared(scope, exposure, calls, prepared)


async def run_prepared(
    scope: AskScope,
    exposure: Exposure,
    calls: Sequence[ToolCall],
    prepared: Sequence[Ready | ToolResult],
) -> TurnRun:
    """Run the calls that are ready; the others have their results.

    Searches are answered first; the other calls run concurrently. Cancelling cancels the running tools and
    waits for them for at most CANCEL_GRACE_S seconds.
    """
    ready = [item for item in prepared if isinstance(item, Ready)]
    _announce(scope, ready)
    finished = await _search_all(scope, exposure, ready)
    finished |= await _run_all(scope, ready, exposure.reads_results)
    load_reading(scope, exposure)
    results = tuple(
        finished[item.call.id] if isinstance(item, Ready) else item for item in prepared
    )
    for result in results:
        if result.call_id not in finished:
            _report_finished(scope, result)
    pending = tuple(filter(None, (scope.consent.pending(call.id) for call in calls)))
    for call in pending:
        scope.emitter.send(ConfirmationRequired(pending=call))
    return TurnRun(
        tuple(
            item.as_run if isinstance(item, Ready) else call
            for item, call in zip(prepared, calls, strict=True)
        ),
        results,
        tuple(map(partial(_record, scope), calls, prepared, results)),
        pending,
        ended=any(item.spec.name == END for item in ready) and results[0].status == "ok",
        all_refused=not ready,
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
    *,
    cut_off: bool,
) -> Ready | ToolResult:
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
    read = partial(_read, scope, call, spec, cut_off=cut_off)
    if len(call.arguments) <= READ_AT_ONCE_CHARS:
        return read()
    return await aside("reading arguments", read)


def _read(scope: AskScope, call: ToolCall, spec: ToolSpec, *, cut_off: bool) -> Ready | ToolResult:
    """Read the arguments of a call and admit it; only one at a time, in the order of the calls.

    Nothing at all may stand for no arguments, but not where they were still to come (ASK-5).
    """
    parsed = parse_arguments(call.arguments, spec.parameters)
    if isinstance(parsed, ArgumentFault):
        return _wrong(call, f"{parsed.problem}. Call it again with a JSON object.")
    if cut_off and not parsed.values:
        return _wrong(call, "your reply was cut off before its arguments. Call it again.")
    return admit(scope, call, spec, parsed)


def admit(scope: AskScope, call: ToolCall, spec: ToolSpec, parsed: Arguments) -> Ready | ToolResult:
    """Count a call against the limits of the ask; a result says why it may not run."""
    if spec.name == TOOL_SEARCH and spec.origin == "virtual":
        problems = scope.generation.loader.check.problems(parsed.values)
        if problems:
            return _wrong(call, f"{'; '.join(problems)}.")
        return Ready(call, spec, parsed.values, repairs=parsed.repairs)
    decision = scope.guard.admit(spec.name, parsed.values)
    if isinstance(decision, Refused):
        return refused(call, decision.code, decision.reason)
    warning = "\n".join(filter(None, (decision.warning, _deprecation(scope, spec))))
    return Ready(call, spec, parsed.values, warning, parsed.repairs)


def _deprecation(scope: AskScope, spec: ToolSpec) -> str:
    """Warn once in an ask of a tool that should not be used any more (RTE-12)."""
    if spec.deprecated is None or not scope.guard.warns_now(spec.name):
        return ""
    generation = scope.generation
    usable = generation.policy.permitted(scope.principal, scope.identity)
    return warning_of(spec, replacement_of(spec, generation.permitted.get(usable).names))


def _not_exposed(scope: AskScope, exposure: Exposure, turn: Turn, call: ToolCall) -> ToolResult:
    """Refuse a call; where that is wanted, its tool is loaded for the next turn."""
    if exposure.autoload(call.name):
        scope.emitter.send(ToolsLoaded(names=(call.name,)))
    if exposure.autoloads and call.name in exposure.loaded and call.name not in exposure.revoked:
        return refused(
            call,
            "tool.not_loaded",
            f"{call.name} was not run, because it was not loaded in this turn. It is loaded now: call "
            f"{call.name} again in the next turn, with arguments that fit its parameters",
        )
    code, reason = why_not_exposed(exposure, turn, call.name)
    again = scope.guard.refuse_again(call.name) if code == UNKNOWN else None
    return refused(call, code, reason) if again is None else refused(call, again.code, again.reason)


def why_not_exposed(exposure: Exposure, turn: Turn, name: str) -> tuple[str, str]:
    """A refusal that names only what this identity may know and call now (TS-13, RTE-11).

    A forbidden name and one that does not exist take the same path to the same words. One that was
    revoked before it was loaded does not exist any more (REL-9).
    """
    waiting = exposure.session.deferred if exposure.session is not None else ()
    if name in waiting and name not in exposure.revoked:
        return (
            "tool.not_loaded",
            f"{name} is not loaded in this turn. Call tool_search with the query "
            f"'select:{name}', then call {name} in the next turn",
        )
    usable = [other for other in turn.by_name if other not in exposure.revoked]
    near = nearest(name, usable, 3) if len(usable) <= MAX_COMPARED else []
    now = near or usable[:NAMES_IN_REFUSAL]
    label = "Similar tools that can be called now" if near else "Tools that can be called now"
    return UNKNOWN, f"there is no tool named {name[:80]!r} here. {label}: {', '.join(now)}"


def _wrong(call: ToolCall, problem: str) -> ToolResult:
    text = f"{call.name} was not run: {problem}"
    return ToolResult(call.id, call.name, "error", text, error_code="tool.invalid_arguments")


def refused(call: ToolCall, code: str, reason: str) -> ToolResult:
    """The result of a call that was not run."""
    return ToolResult(call.id, call.name, "refused", f"{reason}.", error_code=code)


async def _search_all(
    scope: AskScope, exposure: Exposure, ready: Sequence[Ready]
) -> dict[str, ToolResult]:
    searches = [item for item in ready if item.spec.origin == "virtual"]
    if exposure.governor is None or not searches:
        return {}
    await exposure.prepare_search()
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
    _report_finished(scope, result)
    return result


async def _run_all(
    scope: AskScope, ready: Sequence[Ready], readable: bool
) -> dict[str, ToolResult]:
    """Run what is no search; ``readable`` says whether references to results would be of use."""
    tasks = {
        item.call.id: asyncio.create_task(
            _run(scope, item, _place(scope, item, readable)), name=f"tool {item.spec.name}"
        )
        for item in ready
        if item.spec.origin != "virtual"
    }
    if not tasks:
        return {}
    remaining = max(0.0, scope.deadline - asyncio.get_running_loop().time())
    try:
        await asyncio.wait(tasks.values(), timeout=remaining + CANCEL_GRACE_S)
    finally:
        await _cancel_running(tasks)
    return {
        call_id: task.result() if task.done() and not task.cancelled() else _cut_off(task, call_id)
        for call_id, task in tasks.items()
    }


def _place(scope: AskScope, item: Ready, readable: bool) -> Place | None:
    name = item.spec.name
    return scope.results.place(readable=readable and name != RESULTS_READ, tool=name)


async def _cancel_running(tasks: Mapping[str, asyncio.Task[ToolResult]]) -> None:
    running = [task for task in tasks.values() if not task.done()]
    for task in running:
        task.cancel()
    if running:
        _, stuck = await asyncio.wait(running, timeout=CANCEL_GRACE_S)
        for task in stuck:
            _log.error("%s ignores cancelling and is left running", task.get_name())


def _cut_off(task: asyncio.Task[ToolResult], call_id: str) -> ToolResult:
    return ToolResult(
        call_id,
        task.get_name().removeprefix("tool "),
        "error",
        "The call was cut off when the time for this request was up; it may have taken effect.",
        error_code="limit.deadline",
    )


async def _run(scope: AskScope, item: Ready, place: Place | None) -> ToolResult:
    result = await scope.generation.invoker.invoke(
        scope.generation.catalog,
        item.spec,
        item.arguments,
        scope.context(item.call.id),
        place,
        item.warning,
        scope.principal,
        scope.consent.of(item.call),
    )
    result = replace(result, call_id=item.call.id)  # which a sub-agent's loop knows it by
    if result.whole_chars is not None:
        scope.results.note(result.content, place)
    _report_finished(scope, result)
    return result


def _report_finished(scope: AskScope, result: ToolResult) -> None:
    scope.emitter.send(
        ToolFinished(
            call_id=result.call_id,
            name=result.name,
            status=result.status,
            error_code=result.error_code,
        )
    )


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
