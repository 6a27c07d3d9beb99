"""One ask from its pinned generation to how it ended; admission and the last event are the service's."""

import asyncio
from collections.abc import Callable, Mapping, Sequence, Sized
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

from session_runtime.ask.agents import with_agents
from session_runtime.ask.compaction import AT_ONCE_MESSAGES, CHARS_PER_TOKEN, within
from session_runtime.ask.emitter import Emitter
from session_runtime.ask.exposure import (
    Exposure,
    may_read_results,
    open_exposure,
    prepare_directory,
)
from session_runtime.ask.guards import Budget, CallGuard
from session_runtime.ask.history import repair_history
from session_runtime.ask.invoking import Invoked, chosen, invoke
from session_runtime.ask.kept import KeptResults, Room, next_number
from session_runtime.ask.loop import Ending, Loop, Progress
from session_runtime.ask.notices import prefetch_notices
from session_runtime.ask.prefetch import Prefetched, run_prefetch
from session_runtime.ask.prompt import opening_messages, prefetch_message, question_messages
from session_runtime.ask.request import check_request
from session_runtime.ask.scope import AskScope, LoopLimits, Totals
from session_runtime.ask.sticky import called_in, load_again
from session_runtime.ask.transcript import Transcript
from session_runtime.ask.turn import load_reading
from session_runtime.config.runtime import AskSettings
from session_runtime.direct import DirectCall
from session_runtime.errors import RequestError
from session_runtime.generation import Generation, Profile
from session_runtime.generation.unavailable import unavailable_to
from session_runtime.models.base import CUT_OFF
from session_runtime.registry.confirmations import Answered, Asker, Confirmations
from session_runtime.registry.invoke.consent import AskConsent
from session_runtime.registry.policy import acting_for
from session_runtime.spelling import hint
from session_runtime.threads import aside
from session_runtime.toolbox.owner import Owner
from session_runtime.trace.record import TurnRecord
from session_runtime.trace.traceparent import trace_of
from session_runtime.types import (
    AskRequest,
    AskResult,
    AskStarted,
    CutOff,
    ErrorInfo,
    Identity,
    Notice,
    PrefetchFinished,
    ToolsLoaded,
)

T = TypeVar("T")


class AskRun:
    """The state of one running ask; ``result`` may be read whenever it stopped, however it stopped."""

    def __init__(
        self,
        ask_id: str,
        request: AskRequest,
        generation: Generation,
        resources: Mapping[str, Any],
        emitter: Emitter,
        room: Room,
        confirmations: Confirmations,
    ) -> None:
        self.ask_id = ask_id
        self.request = request
        self.generation = generation
        self.profile: Profile | None = None
        self.prefetched = Prefetched()
        self.prefetch_s = 0.0
        self.exposure: Exposure | None = None
        self._resources = resources
        self._emitter = emitter
        self._room = room
        self._confirmations = confirmations
        self._answered: tuple[Answered, ...] = ()
        self.totals = Totals()
        self.well_formed = False
        self.revoked: tuple[str, ...] = ()
        otel = generation.settings.otel
        self.trace = trace_of(ask_id, request.trace, otel.sample if otel.enabled else None)
        self._begun = asyncio.get_running_loop().time()
        self.invoked: Invoked | None = None
        self._has_begun = False
        self._direct = Progress()
        self._loop: Loop | None = None
        self._transcript: Transcript | None = None

    @property
    def progress(self) -> Progress:
        """What the loop, or the one call that stands instead, has done so far; empty before."""
        return self._loop.progress if self._loop is not None else self._direct

    @property
    def model(self) -> str:
        """The profile that answers now; before it is chosen the one that was asked for, if any."""
        profile = self.exposure.profile if self.exposure is not None else self.profile
        return profile.name if profile is not None else self.request.model or ""

    async def execute(self) -> Ending:
        """Check the request, prefetch, expose, loop. Raises RequestError and the model's errors.

        What the request confirms is claimed last: a request that is refused uses up nothing (RTE-9).
        """
        await _aside_if_long(self.request, partial(check_request, self.request))
        self.well_formed = True
        self.revoked = tuple(sorted(self.generation.policy.revoked.names))
        identity = acting_for(self.request.principal, self.request.identity)
        if self.request.call is not None:
            return await self._invoke(self.request.call, identity)
        profile = choose_profile(self.generation, self.request.model)
        self.profile = profile
        self._claim()
        with closing(self._open_results()) as results:
            return await self._answer(profile, self._scope(identity, results))

    def _claim(self) -> None:
        request = self.request
        self._answered = self._confirmations.claim(
            self._asker(), request.confirmations, request.declined
        )

    async def _invoke(self, wanted: DirectCall, identity: Identity) -> Ending:
        """Call one tool instead of asking a model (NET-1f)."""
        spec = chosen(self.generation, self.request.principal, identity, wanted)
        self._claim()
        self._direct = Progress(state="tools", calls=1)
        self._begin("")
        with closing(self._open_results()) as results:
            scope = self._scope(identity, results)
            self.invoked = await invoke(scope, spec, wanted, self._answered)
        if self.invoked.pending:
            return Ending("needs_confirmation", "", self.invoked.error, self.invoked.pending)
        return Ending("failed" if self.invoked.error else "answered", "", self.invoked.error)

    def _begin(self, model: str) -> None:
        """From here on tools may run: whatever happens, the ask was not refused."""
        self._has_begun = True
        self._emitter.send(AskStarted(generation=self.generation.number, model=model))

    async def _answer(self, profile: Profile, scope: AskScope) -> Ending:
        self._begin(profile.name)
        mask = self.generation.policy.permitted(scope.principal, scope.identity)
        await self._prefetch(scope, mask, profile)
        explains = self.generation.settings.skills.tool_search_explain
        who = scope.principal, scope.identity
        down = unavailable_to(self.generation, *who, mask) if explains else ()
        await prepare_directory(self.generation, profile, mask, self.prefetched.names)
        exposure = open_exposure(self.generation, profile, mask, self.prefetched.names, down)
        self.exposure = exposure
        self._load_again()
        self._transcript = await self._open_transcript(scope, exposure)
        load_reading(scope, exposure)
        self._loop = Loop(scope, exposure, self._transcript)
        return await self._loop.carry_out(self._answered) or await self._loop.run()

    def result(self, ending: Ending) -> AskResult:
        """Everything the caller gets to know (ASK-1)."""
        progress = self.progress
        return AskResult(
            ask_id=self.ask_id,
            outcome=ending.outcome,
            text=ending.text,
            messages=self._emitter.messages,
            new_messages=self._transcript.kept if self._transcript is not None else (),
            usage=self.totals.usage,
            steps=len(progress.turns),
            loaded_tools=self.exposure.loaded if self.exposure is not None else (),
            generation=self.generation.number,
            error=ending.error,
            pending=ending.pending,
            cut_off=_cut_off(progress.turns),
            called=self.invoked.called if self.invoked is not None else None,
            refused=ending.outcome == "failed" and not self._has_begun,
        )

    def _asker(self) -> Asker:
        request = self.request
        return Asker(request.principal.name, request.identity, request.conversation)

    def _open_results(self) -> KeptResults:
        earlier = (*self.request.history, *self.request.messages)
        limit = self.generation.settings.ask.max_result_chars
        revoked = self.generation.policy.revoked
        return KeptResults(
            limit,
            next_number(earlier),
            room=self._room,
            revoked=lambda tool: revoked.by(tool) is not None,
        )

    def _scope(self, identity: Identity, results: KeptResults) -> AskScope:
        settings, principal = self.generation.settings, self.request.principal
        owner = Owner(principal.name, self.request.identity.user)
        limit_s = min(settings.runtime.ask_timeout_s, self.request.deadline_s or float("inf"))
        scope = AskScope(
            ask_id=self.ask_id,
            generation=self.generation,
            identity=identity,
            emitter=self._emitter,
            guard=CallGuard(settings.ask.max_tool_calls),
            steps=Budget(settings.ask.max_steps),
            deadline=asyncio.get_running_loop().time() + limit_s,
            consent=AskConsent(
                self._confirmations,
                self._asker(),
                self.ask_id,
                settings.access.confirm_ttl_s,
                self._answered,
            ),
            limits=_limits(settings.ask),
            notices=settings.notices.mode,
            silent=self.request.silent,
            keep_arguments=settings.trace.content,
            resources=self._resources,
            services=self.generation.toolbox.services(owner, results),
            results=results,
            principal=principal,
            conversation=self.request.conversation,
            metadata=self.request.metadata,
            totals=self.totals,
            begun=self._begun,
            trace=self.trace,
        )
        return with_agents(scope, self._profile_in_use)

    def _profile_in_use(self) -> Profile:
        """The profile that answers now; where none does, the one that an ask would begin with."""
        profile = self.profile if self.exposure is None else self.exposure.profile
        return profile or choose_profile(self.generation, self.request.model)

    async def _prefetch(self, scope: AskScope, mask: int, profile: Profile) -> None:
        settings = self.generation.settings
        if not settings.skills.prefetch_tools:
            return
        started = asyncio.get_running_loop().time()
        # whether max_tools leaves room for results.read is known only when the exposure is open
        readable = profile.settings.max_tools is None and may_read_results(
            self.generation, self.generation.permitted.get(mask)
        )
        try:
            view = self.generation.index.view(mask)
            self.prefetched = await run_prefetch(scope, view, readable)
        finally:
            self.prefetch_s = asyncio.get_running_loop().time() - started
        for line in prefetch_notices(settings.notices.mode, self.prefetched.names):
            self._emitter.send(Notice(text=line))
        self._emitter.send(
            PrefetchFinished(ok=self.prefetched.names, failed=self.prefetched.failed)
        )

    def _load_again(self) -> None:
        """Load the tools that the last turns of the conversation called, as if they had been searched for."""
        turns = self.generation.settings.skills.tool_search_sticky_turns
        session = self.exposure.session if self.exposure is not None else None
        if not turns or session is None:
            return
        if loaded := load_again(session, called_in(self.request.history, turns)):
            self._emitter.send(ToolsLoaded(names=loaded))

    async def _open_transcript(self, scope: AskScope, exposure: Exposure) -> Transcript:
        directory = exposure.session.prompt if exposure.session is not None else ""
        opening = opening_messages(
            self.generation.snapshot.system_prompt,
            self.request,
            directory,
            prefetch_message(self.prefetched.results),
        )
        repair = partial(repair_history, self.request.history, question_messages(self.request))
        history, question = await _aside_if_long(self.request, repair)
        most = self.generation.settings.ask.history_tokens
        if most is not None:
            readable = exposure.reads_results
            history = await within(
                history, most * CHARS_PER_TOKEN, scope.results, readable=readable
            )
        return Transcript((*opening, *history), question)


async def _aside_if_long(request: AskRequest, work: Callable[[], T]) -> T:
    """What goes through all messages of a request holds up nobody else."""
    given = (request.history, request.messages)
    is_long = any(isinstance(each, Sized) and len(each) > AT_ONCE_MESSAGES for each in given)
    return await aside("reading a conversation", work) if is_long else work()


def _limits(settings: AskSettings) -> LoopLimits:
    return LoopLimits(
        max_total_tokens=settings.max_total_tokens,
        require_end=settings.require_end,
        missing_tool_call_retries=settings.missing_tool_call_retries,
    )


def choose_profile(generation: Generation, name: str | None) -> Profile:
    """The named profile or the default one; raises RequestError with the nearest name."""
    wanted = name or generation.default_profile
    profile = generation.profiles.get(wanted)
    if profile is None:
        way_out = hint(wanted, generation.profiles) or f"use one of {sorted(generation.profiles)}"
        raise RequestError(
            f"there is no model profile {wanted!r}; {way_out}", code="request.unknown_model"
        )
    return profile


def _cut_off(turns: Sequence[TurnRecord]) -> CutOff | None:
    """Why the last reply ended early, if it did."""
    reason = turns[-1].finish_reason if turns else None
    if reason not in CUT_OFF:
        return None
    return "content_filter" if reason == "content_filter" else "length"


def failure(error: BaseException, code: str, *, retryable: bool, wait_s: float | None) -> Ending:
    """The ending of an ask that could not go on."""
    return Ending("failed", "", ErrorInfo(code, str(error), retryable, wait_s))
