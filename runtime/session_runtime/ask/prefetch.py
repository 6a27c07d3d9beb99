"""Runs the prefetch tools before the first turn, in parallel, each in its own time limit (PRE-1)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from session_runtime.ask.running import attended
from session_runtime.ask.scope import AskScope
from session_runtime.registry.invoke.consent import NEEDS_CONFIRMATION_CODE
from session_runtime.registry.invoke.results import Place
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.search import SearchView, resolve_names
from session_runtime.trace.record import record_call
from session_runtime.types import NOTHING, ToolResult

NOT_FOUND = "tool.not_found"


@dataclass(frozen=True, slots=True)
class Prefetched:
    """Texts of those that succeeded in configured order; ``failed`` maps a name to its error code."""

    results: tuple[tuple[str, str], ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Tools whose prefetch succeeded."""
        return tuple(name for name, _ in self.results)


async def run_prefetch(scope: AskScope, view: SearchView, readable: bool) -> Prefetched:
    """Call each configured tool that this identity may see once with no arguments.

    A failure is typed and final for this ask: the tool stays visible and can be called (PRE-1).
    ``readable`` says whether a result that is too long may be given by reference (ASK-8b).
    """
    skills = scope.generation.settings.skills
    wanted = [name for name in skills.prefetch_tools if name != TOOL_SEARCH]
    found, missing = resolve_names(view, wanted)
    deadline = asyncio.get_running_loop().time() + skills.prefetch_timeout_s
    ended: dict[str, ToolResult] = {}
    try:
        async with asyncio.TaskGroup() as group:  # cancelled, it waits for the tools to stop
            for name in found:
                place = scope.results.place(readable=readable, tool=name)
                call = partial(_call, scope, name, deadline, place)
                keep = partial(ended.__setitem__, name)
                group.create_task(attended(call, _id(name), name, keep), name=f"tool {name}")
    finally:
        results = [ended[name] for name in found if name in ended]
        scope.totals.prefetch += (record_call(result, NOTHING) for result in results)
    return Prefetched(
        tuple((r.name, r.content) for r in results if r.status == "ok"),
        {
            **dict.fromkeys(missing, NOT_FOUND),
            **{r.name: r.error_code or "tool.failed" for r in results if r.status != "ok"},
        },
    )


def _id(name: str) -> str:
    return f"prefetch:{name}"


async def _call(scope: AskScope, name: str, deadline: float, place: Place | None) -> ToolResult:
    catalog = scope.generation.catalog
    context = scope.context(_id(name), deadline)
    spec = catalog.lookup(name)
    if spec.annotations.destructive:  # nobody asked for it yet, whatever access.destructive says
        return ToolResult(context.call_id, name, "refused", "", NEEDS_CONFIRMATION_CODE)
    invoke = scope.generation.invoker.invoke
    return await invoke(catalog, spec, NOTHING, context, place, principal=scope.principal)
