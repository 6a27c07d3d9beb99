"""Runs the calls of a turn side by side until each has a result, however the ask ends (ASK-4).

Which calls may run is decided in ``turn``, what one call is in ``registry/invoke``.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from session_runtime.ask.scope import AskScope
from session_runtime.registry.invoke.results import Place
from session_runtime.registry.names import RESULTS_READ
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import JsonObject, ToolCall, ToolFinished, ToolResult

CANCEL_GRACE_S = 2.0
CANCELLED: Final = "tool.cancelled"
_TOO_LATE: Final = "limit.deadline"
_FAULT: Final = "internal"
_WHEN: Final = MappingProxyType(
    {_TOO_LATE: "the time for this request was up", _FAULT: "the runtime failed"}
)
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


async def run_ready(
    scope: AskScope, ready: Sequence[Ready], finished: dict[str, ToolResult], *, readable: bool
) -> None:
    """Run what is no search, and put each result into ``finished`` by the id of its call.

    ``readable`` says whether references to results would be of use. If this is cancelled, the tools are
    too, and are waited for at most CANCEL_GRACE_S seconds; then too each call has a result. So it is if the
    runtime itself fails, which raises what went wrong.
    """
    clock = asyncio.get_running_loop().time
    begun, code = clock(), CANCELLED
    tasks = {
        item.call.id: asyncio.create_task(
            _run(scope, item, _place(scope, item, readable)), name=f"tool {item.spec.name}"
        )
        for item in ready
        if item.spec.origin != "virtual"
    }
    if not tasks:
        return
    remaining = max(0.0, scope.deadline - begun)
    try:
        await asyncio.wait(tasks.values(), timeout=remaining + CANCEL_GRACE_S)
        code = _TOO_LATE
    finally:
        try:
            await _cancel_running(tasks)
        finally:
            for call_id, task in tasks.items():
                result = _result_of(task)
                if result is None:
                    why = _FAULT if _fault_of(task) else code
                    result = cut_off(call_id, _tool_of(task), clock() - begun, why)
                    report_finished(scope, result)
                finished[call_id] = result
    for fault in filter(None, map(_fault_of, tasks.values())):
        raise fault


def cut_off(call_id: str, name: str, latency_s: float, code: str = CANCELLED) -> ToolResult:
    """The result of a call that ran when its ask was cancelled, its time was up, or the runtime failed."""
    when = _WHEN.get(code, "the request was cancelled")
    content = f"The call was cut off when {when}; it may have taken effect."
    return ToolResult(call_id, name, "error", content, error_code=code, latency_s=latency_s)


async def attended(
    run: Callable[[], Awaitable[ToolResult]],
    call_id: str,
    name: str,
    keep: Callable[[ToolResult], None],
) -> ToolResult:
    """Run a call outside of turns; ``keep`` gets its result, also if it is cancelled."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    try:
        result = await run()
    except asyncio.CancelledError:
        keep(cut_off(call_id, name, clock() - begun))
        raise
    keep(result)
    return result


def report_finished(scope: AskScope, result: ToolResult) -> None:
    """Tell that a call has its result."""
    scope.emitter.send(
        ToolFinished(
            call_id=result.call_id,
            name=result.name,
            status=result.status,
            error_code=result.error_code,
        )
    )


def _result_of(task: asyncio.Task[ToolResult]) -> ToolResult | None:
    if not task.done() or task.cancelled() or task.exception() is not None:
        return None
    return task.result()


def _fault_of(task: asyncio.Task[ToolResult]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


def _tool_of(task: asyncio.Task[ToolResult]) -> str:
    return task.get_name().removeprefix("tool ")


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
    report_finished(scope, result)
    return result
