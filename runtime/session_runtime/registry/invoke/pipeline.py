"""One call of a tool, one concern per function: what may stop it, time, which way it takes, its result.

In this order: statistics and the audit log, revocation, arguments, consent, time limits, routes and trying
again, the guard of a route, the tool itself, output. Whatever goes wrong becomes a result in words (ASK-4).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never

from session_runtime.audit.log import AuditLog
from session_runtime.config.tools import Destructive
from session_runtime.handler import HandlerContext
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.invoke.audited import CallAudit
from session_runtime.registry.invoke.call import Answer, Call
from session_runtime.registry.invoke.consent import (
    NOBODY,
    Consent,
    Proposed,
    form_of,
)
from session_runtime.registry.invoke.guard import Refused, Verdict
from session_runtime.registry.invoke.marking import Outside, outside_of
from session_runtime.registry.invoke.outcome import (
    Ended,
    Outcome,
    Raised,
    Returned,
    TimedOut,
    did_not_run,
    verdict,
)
from session_runtime.registry.invoke.output import OutputChecks
from session_runtime.registry.invoke.results import Place, Renderer
from session_runtime.registry.invoke.retry import Tries, Try
from session_runtime.registry.invoke.timing import (
    CANCEL_GRACE_S,
    Heard,
    TimeLimits,
    Timing,
    is_cancelled,
    limits_of,
)
from session_runtime.registry.invoke.wording import (
    broken_promise,
    failure,
    invalid_arguments,
    no_time,
    not_let_through,
    not_offered,
    not_recorded,
    not_shown,
    shown_too_late,
    taken_away,
    time_is_up,
)
from session_runtime.registry.policy import routed_as
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.spec import Route, ToolSpec
from session_runtime.types import LOCAL, Principal, ToolResult


@dataclass(frozen=True, slots=True)
class Pauses:
    """How waiting between attempts is done; both are edges to the world."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


_PAUSES: Final = Pauses()


class Invoker:
    """Calls tools of a catalogue and counts what happened.

    ``default_timeout_s`` and ``max_result_chars`` hold for tools that do not set their own. Unless
    ``destructive`` is ``allow``, tools that are destructive are not run (RTE-9). A tool that does not
    stop within ``grace_s`` seconds of being cancelled is left behind. All results that take long to show
    are made readable by ``renderer``. What ``revocations`` take away is not run, or stopped (REL-9).
    Each call is told to ``audit`` (RTE-13).
    """

    def __init__(
        self,
        registry: Registry,
        default_timeout_s: float,
        max_result_chars: int,
        destructive: Destructive = "confirm",
        grace_s: float = CANCEL_GRACE_S,
        renderer: Renderer | None = None,
        revocations: Revocations | None = None,
        pauses: Pauses = _PAUSES,
        audit: AuditLog | None = None,
    ) -> None:
        self._registry = registry
        self.lookups = registry.lookups
        self._default_timeout_s = default_timeout_s
        self._max_result_chars = max_result_chars
        self._destructive = destructive
        self._renderer = renderer or Renderer()
        self._revocations = revocations or Revocations()
        self._pauses = pauses
        self._audit = audit
        self._timing = Timing(grace_s)
        self._outputs = OutputChecks()

    async def invoke(
        self,
        catalog: Catalog,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        context: HandlerContext,
        place: Place | None = None,
        note: str = "",
        principal: Principal = LOCAL,
        consent: Consent = NOBODY,
        most_chars: int | None = None,
    ) -> ToolResult:
        """Run one tool of ``catalog`` and put its result, or what went wrong, into words.

        ``place`` is where the whole of a result that is too long is kept (ASK-8b). ``note`` is added
        below the result, within the same limit; where that leaves no half of it, it is left out.
        ``principal`` is who asks for the identity of ``context``, ``consent`` what is known of a person's
        consent to this call. ``most_chars`` is how long a result may be for who is no model.
        Raises nothing but the cancellation of the caller, after the tool was cancelled too.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        limit = most_chars or spec.max_result_chars or self._max_result_chars
        below = f"\n{note}" if note and 2 * len(note) < limit else ""
        caller = routed_as(principal, context.identity)
        room = limit - len(below)
        audit = CallAudit(self._audit, principal, spec, arguments, context)
        call = Call(
            catalog, spec, arguments, context, room, place, principal, caller, consent, audit
        )
        answer: Answer | None = None
        try:
            answer = await self._heed_revocations(call)
        finally:
            latency_s = clock() - started
            self._tell(call, answer, latency_s)
        return ToolResult(
            context.call_id,
            spec.name,
            answer.status,
            f"{answer.content}{below}",
            error_code=answer.code,
            attempts=answer.attempts,
            latency_s=latency_s,
            whole_chars=answer.whole_chars,
        )

    def record_refused(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        context: HandlerContext,
        principal: Principal,
        result: ToolResult,
    ) -> None:
        """Record a call that was refused before it came here (RTE-13)."""
        audit = CallAudit(self._audit, principal, spec, arguments, context)
        audit.answered(result.status, result.error_code, 0, result.content, 0.0)

    def _tell(self, call: Call, answer: Answer | None, latency_s: float) -> None:
        """Count a call and record it; without an answer it was cancelled."""
        loaded = call.source.is_loaded(call.spec)
        if answer is None:
            self._registry.record(call.spec, latency_s, "cancelled", loaded)
            call.audit.cancelled(latency_s)
            return
        if not answer.refused:  # a call that may not be made is no failure of its tool
            error = answer.content if answer.code else None
            self._registry.record(call.spec, latency_s, error, loaded)
        call.audit.answered(answer.status, answer.code, answer.attempts, answer.content, latency_s)

    async def _heed_revocations(self, call: Call) -> Answer:
        """Refuse a revoked tool, and cut off the call of one that is revoked meanwhile (REL-9)."""
        name, clock = call.spec.name, asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(None) as until_revoked:
                with self._revocations.watching(name, lambda: until_revoked.reschedule(clock())):
                    if self._revocations.blocks(name) is not None:
                        return taken_away(f"{name} was not run: an operator has taken it away.")
                    return await self._check_arguments(call)
        except TimeoutError:
            if not until_revoked.expired():
                raise
        if call.effect.possible:
            return taken_away(
                f"{name} was stopped, as an operator has taken it away. It may have taken effect."
            )
        return taken_away(f"{name} was not run: an operator has taken it away meanwhile.")

    async def _check_arguments(self, call: Call) -> Answer:
        problems = await call.catalog.checks[call.spec.name].examine(call.arguments)
        if problems:
            return invalid_arguments(call.spec.name, problems)
        return await self._ask_consent(call)

    async def _ask_consent(self, call: Call) -> Answer:
        """Run no destructive tool without the consent that it needs (RTE-9)."""
        if not call.spec.annotations.destructive or self._destructive == "allow":
            return await self._be_recorded(call)
        form = form_of(call.spec, call.source.routes(call.spec, call.caller))
        consent = NOBODY if self._destructive == "deny" else call.consent
        lacking = await consent.missing(Proposed(call.spec, form, call.arguments))
        if lacking is not None:
            return Answer(lacking.reason, lacking.code, refused=True)
        try:
            return await self._be_recorded(call)
        finally:
            if not call.effect.possible:
                consent.give_back()

    async def _be_recorded(self, call: Call) -> Answer:
        """Run nothing that has to be recorded before and cannot be (RTE-13)."""
        if await call.audit.missing():
            return not_recorded(call.spec.name)
        return await self._set_limits(call)

    async def _set_limits(self, call: Call) -> Answer:
        """Say when the call ends, all attempts and pauses included (RTE-7)."""
        spec, now = call.spec, asyncio.get_running_loop().time()
        hard_s = self._default_timeout_s if spec.timeout_s is None else spec.timeout_s
        limits = limits_of(now, hard_s, spec.idle_timeout_s, call.context.deadline)
        if limits.deadline <= now:
            return no_time(spec.name)
        context = replace(call.context, deadline=limits.deadline)
        return await self._try_routes(_Run(call, context, limits))

    async def _try_routes(self, run: "_Run") -> Answer:
        """Try the routes of this caller as often as is right (RTE-2, RTE-8)."""
        call = run.call
        routes = call.source.routes(call.spec, call.caller)
        usable = any(route.obstacle() is None for route in routes)
        self.lookups.add("hit" if usable else "unavailable")
        if not routes:
            return not_offered(call.spec.name)
        clock = asyncio.get_running_loop().time
        tries = Tries(call.spec, routes, run.limits.deadline, self._pauses.jitter)
        while (following := tries.next(clock())) is not None:
            if following.pause_s > 0:
                await self._pauses.sleep(following.pause_s)
            tries.ended(following, await self._pass_guard(run, following))
        answer = await self._answer(run, tries.outcome)
        return answer.after(tries.attempts)

    async def _pass_guard(self, run: "_Run", attempt: Try) -> Outcome:
        """Take a route if it is usable and bears one more call (RTE-6)."""
        route = attempt.route
        guard = self._registry.guard(route.id, run.call.spec.source_id)
        obstacle = route.obstacle()
        if obstacle is not None:
            return guard.refuse(obstacle)
        until = run.limits.deadline if attempt.patient else 0.0
        entered = await guard.enter(route.limits, until, route.reaches)
        if isinstance(entered, Refused):
            return entered
        seen: Verdict = "unknown"
        try:
            ended = await self._run_in_time(run, route)
            seen = verdict(ended)
        finally:
            guard.leave(entered, seen)
        if _ran_nothing(run.call, ended):
            run.call.effect.take_back()
        return ended

    async def _run_in_time(self, run: "_Run", route: Route) -> Ended:
        """Run the tool once, and no longer than it may."""
        call = run.call

        def work(heard: Heard) -> Awaitable[object]:
            if run.limits.idle_s is None:
                return route.run(call.arguments, run.context)
            return route.run(call.arguments, _listened_to(run.context, heard))

        call.effect.begin()
        return await self._timing.run(
            call.spec.name, work, run.limits, lambda: call.source.is_loaded(call.spec)
        )

    async def _answer(self, run: "_Run", outcome: Outcome) -> Answer:
        """Put into words what became of the call; what comes too late is never kept."""
        call, name, outside = run.call, run.call.spec.name, outside_of(run.call)
        match outcome:
            case Returned(value):
                return await self._show(call, run.limits, value, outside)
            case Raised():
                return failure(name, outcome, outside)
            case TimedOut():
                return time_is_up(name, outcome)
            case Refused():
                return not_let_through(name, outcome)
            case _:
                assert_never(outcome)

    async def _show(
        self, call: Call, limits: TimeLimits, value: object, outside: Outside | None
    ) -> Answer:
        """Check and show what a tool returned; to read it may be a trap too."""
        try:
            async with asyncio.timeout_at(limits.deadline) as until:
                return await self._shown(call, value, outside)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            if isinstance(error, TimeoutError) and until.expired():
                return shown_too_late(call.spec.name)
            return failure(call.spec.name, Raised(error), outside)

    async def _shown(self, call: Call, value: object, outside: Outside | None) -> Answer:
        """The result, or why it is none (ASK-8b, RTE-10)."""
        problems = await self._outputs.violations(call.spec, value)
        if problems:
            return broken_promise(call.spec.name, problems, outside)
        reference = call.place.reference if call.place is not None else None
        draft = await self._renderer.draft(value, call.max_result_chars, reference)
        if draft is None:
            return not_shown(call.spec.name, type(value).__name__)
        if outside is None:
            shown = draft.settle(call.place)
            return Answer(shown.content, whole_chars=shown.whole_chars)
        shown = (await outside.cleaned(draft)).settle(call.place)
        return Answer(outside.marked(shown.content), whole_chars=shown.whole_chars)


@dataclass(frozen=True, slots=True)
class _Run:
    """A call that may be made, the context that its tool gets, and when it ends."""

    call: Call
    context: HandlerContext
    limits: TimeLimits


def _ran_nothing(call: Call, ended: Ended) -> bool:
    """Whether the code of a tool was not there to be run, or its server was certainly not reached."""
    if not call.source.is_loaded(call.spec):
        return True
    return call.spec.origin == "mcp" and did_not_run(ended)


def _listened_to(context: HandlerContext, heard: Heard) -> HandlerContext:
    """The same context, of which every report of progress is a sign of life."""

    def report(done: float, total: float | None, message: str | None) -> None:
        heard()
        context.on_progress(done, total, message)

    return replace(context, on_progress=report)
