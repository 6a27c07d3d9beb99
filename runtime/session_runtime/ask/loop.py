"""Turn after turn until the ask ends: expose, ask the model, run its calls, decide what comes next."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from session_runtime.ask.calling import Candidate, DeadlineReached, ModelCall
from session_runtime.ask.compaction import CHARS_PER_TOKEN, characters, compacted, room_chars
from session_runtime.ask.confirmed import carry_out
from session_runtime.ask.exposure import Exposure, Turn
from session_runtime.ask.scope import AskScope
from session_runtime.ask.transcript import Transcript
from session_runtime.ask.turn import TurnRun, load_reading, run_calls
from session_runtime.models.base import CUT_OFF, NUDGE, ModelReply, ModelRequest, OnText
from session_runtime.registry.confirmations import Answered
from session_runtime.trace.record import CallRecord, TurnRecord
from session_runtime.types import (
    AskState,
    ErrorInfo,
    Message,
    Outcome,
    PendingCall,
    ToolCall,
    ToolResult,
    TurnStarted,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Ending:
    """How the loop ended; ``text`` is the last text of the model, ``pending`` what waits for consent."""

    outcome: Outcome
    text: str = ""
    error: ErrorInfo | None = None
    pending: tuple[PendingCall, ...] = ()


@dataclass(slots=True)
class OpenTurn:
    """A turn as far as it has come, so that one that is cut off leaves a trace too."""

    step: int
    turn: Turn
    at_s: float = 0.0
    model: str = ""
    attempts: int = 0
    model_s: float = 0.0
    tools_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    finish_reason: str | None = None
    calls: list[CallRecord] = field(default_factory=list)
    revoked: tuple[str, ...] = ()


@dataclass(slots=True)
class Progress:
    """What an ask has done so far; only its loop writes here, its service reads it.

    ``step`` is the turn under way, ``calls`` how many tool calls were begun, ``state`` what is waited for.
    ``confirmed`` are the calls that were carried out before the first turn, in ``confirmed_s`` seconds.
    ``text`` is what the last whole reply said, ``pieces`` what was told of the one under way.
    """

    state: AskState = "starting"
    step: int = 0
    calls: int = 0
    turns: list[TurnRecord] = field(default_factory=list)
    confirmed: list[CallRecord] = field(default_factory=list)
    confirmed_s: float = 0.0
    text: str = ""
    pieces: list[str] = field(default_factory=list)
    nudges: int = 0
    carry: object = None

    @property
    def said(self) -> str:
        """The last words of the model, be they whole or not."""
        return "".join(self.pieces) or self.text


class Loop:
    """The turns of one ask. ``run`` raises the model's TransientError or PermanentError."""

    def __init__(self, scope: AskScope, exposure: Exposure, transcript: Transcript) -> None:
        self._scope = scope
        self._exposure = exposure
        self._transcript = transcript
        self._limits = scope.limits
        self.progress = Progress()

    async def carry_out(self, answered: Sequence[Answered]) -> Ending | None:
        """Before the first turn: run what a person agreed to, and show it to the model (RTE-9)."""
        if not answered:
            return None
        started = _now()
        self.progress.state = "tools"
        self.progress.calls += len(answered)
        try:
            run = await carry_out(
                *(self._scope, self._exposure, self._transcript.sent, answered),
                *(self.progress.confirmed, partial(self._keep_turn, ModelReply(""))),
            )
        finally:
            self.progress.confirmed_s = _now() - started
        return Ending("needs_confirmation", pending=run.pending) if run.pending else None

    async def run(self) -> Ending:
        """Take turns until one of them ends the ask (ASK-7, ASK-8)."""
        while self._scope.steps.take():
            try:
                ending = await self._turn(self.progress.step + 1)
            except DeadlineReached:
                return self._limit("limit.deadline", "the time for this request is up")
            if ending is not None:
                return ending
        most = self._scope.steps.most
        return self._limit("limit.steps", f"the limit of {most} model turns is reached")

    async def _turn(self, step: int) -> Ending | None:
        await self._fit()
        opened = OpenTurn(step, self._exposure.next_turn(), _now() - self._scope.begun)
        self.progress.step, self.progress.state = step, "model"
        try:
            reply = await self._call_model(opened)
            self.progress.text, self.progress.pieces = reply.text, []
            run = await self._run_calls(opened, reply) if reply.calls else None
        finally:
            if opened.attempts:
                self.progress.turns.append(self._record(opened))
        return self._after_prose(reply) if run is None else self._after_calls(reply, run)

    async def _call_model(self, opened: OpenTurn) -> ModelReply:
        call = ModelCall(
            self._scope.deadline, partial(self._begin, opened), partial(self._count, opened)
        )
        started = _now()
        try:
            answered, reply = await call.answer(self._candidates(opened.turn))
        finally:
            opened.model_s = _now() - started
        self._exposure.hand_over(answered.profile)
        self.progress.carry = reply.carry
        return reply

    async def _fit(self) -> None:
        """Make the conversation fit the room that it has; a service that chained turns gets it whole."""
        most = room_chars(self._exposure.profile.settings.context_window)
        sent, results = self._transcript.sent, self._scope.results
        if not most or sum(map(characters, sent)) <= most:
            return
        readable = self._exposure.reads_results
        question_at = self._transcript.question_at
        shorter = await compacted(sent, question_at, most, results, readable=readable)
        if shorter == sent:
            return
        self._transcript.replace_sent(shorter)
        self.progress.carry = None
        load_reading(self._scope, self._exposure)

    def _candidates(self, turn: Turn) -> list[Candidate]:
        """The profile of this ask with what its last reply handed over, then those behind it."""
        exposure, sent = self._exposure, self._transcript.sent
        candidates: list[Candidate] = []
        for profile in (exposure.profile, *self._scope.generation.fallbacks(exposure.profile)):
            carry = None if candidates else self.progress.carry
            request = ModelRequest(sent, turn.tools, exposure.names_for(profile), carry)
            candidates.append(Candidate(profile, request, exposure.obstacle(profile, turn)))
        return candidates

    def _begin(self, opened: OpenTurn, attempt: int, model: str) -> OnText:
        opened.attempts, opened.model = attempt, model
        exposed = tuple(spec.name for spec in opened.turn.tools)
        self._scope.emitter.send(
            TurnStarted(step=opened.step, exposed=exposed, model=model, attempt=attempt)
        )
        self.progress.pieces = []
        return self._tell

    def _tell(self, text: str) -> None:
        self.progress.pieces.append(text)
        self._scope.emitter.text(text)

    def _count(self, opened: OpenTurn, reply: ModelReply) -> None:
        opened.finish_reason = reply.finish_reason
        usage = reply.usage or self._estimated(opened.turn, reply)
        opened.usage += usage
        self._scope.totals.usage += usage

    async def _run_calls(self, opened: OpenTurn, reply: ModelReply) -> TurnRun:
        started = _now()
        self.progress.state = "tools"
        self.progress.calls += len(reply.calls)
        opened.revoked = self._exposure.taken_away
        try:
            cut_off = reply.finish_reason in CUT_OFF
            run = await run_calls(
                *(self._scope, self._exposure, opened.turn, reply.calls, opened.calls),
                partial(self._keep_turn, reply),
                cut_off=cut_off,
            )
        finally:
            opened.tools_s = _now() - started
        return run

    def _keep_turn(
        self, reply: ModelReply, calls: tuple[ToolCall, ...], results: tuple[ToolResult, ...]
    ) -> None:
        """Also of a turn that was cancelled: what its tools did must not get lost."""
        self._transcript.add_turn(_assistant(replace(reply, calls=calls)), results)

    def _after_calls(self, reply: ModelReply, run: TurnRun) -> Ending | None:
        if run.ended:
            return Ending("ended", reply.text)
        if run.pending:
            return Ending("needs_confirmation", reply.text, pending=run.pending)
        if run.all_refused and self._scope.guard.exhausted:
            most = self._scope.guard.most
            return self._limit("limit.calls", f"the limit of {most} tool calls is reached")
        return self._out_of_tokens()

    def _after_prose(self, reply: ModelReply) -> Ending | None:
        if (
            self._limits.require_end
            and self.progress.nudges < self._limits.missing_tool_call_retries
        ):
            self.progress.nudges += 1
            self._transcript.add_nudge(_assistant(reply), NUDGE)
            return self._out_of_tokens()
        self._transcript.add_turn(_assistant(reply), ())
        return Ending("answered", reply.text)

    def _out_of_tokens(self) -> Ending | None:
        limit = self._limits.max_total_tokens
        if limit and self._scope.totals.usage.total_tokens >= limit:
            return self._limit("limit.tokens", f"the limit of {limit} tokens is reached")
        return None

    def _limit(self, code: str, message: str) -> Ending:
        return Ending("limit", self.progress.said, ErrorInfo(code, message))

    def _estimated(self, turn: Turn, reply: ModelReply) -> Usage:
        """Characters over four, tool schemas included, when the provider does not count."""
        sent = sum(map(characters, self._transcript.sent))
        written = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
        return Usage(
            sent // CHARS_PER_TOKEN + turn.tokens,
            written // CHARS_PER_TOKEN + 1,
            model_calls=1,
            estimated=True,
        )

    def _record(self, opened: OpenTurn) -> TurnRecord:
        return TurnRecord(
            opened.step,
            opened.model,
            tuple(opened.turn.by_name),
            opened.turn.tokens,
            opened.attempts,
            opened.model_s,
            opened.tools_s,
            opened.usage,
            opened.finish_reason,
            tuple(opened.calls),
            opened.at_s,
            opened.revoked,
        )


def _now() -> float:
    return asyncio.get_running_loop().time()


def _assistant(reply: ModelReply) -> Message:
    return Message("assistant", reply.text or None, reply.calls, extra=reply.extra)
