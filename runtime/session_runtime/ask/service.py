"""The one door of every ask: admits it, pins its generation, and makes sure that it ends once (ASK-1)."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from session_runtime.ask.admission import Admission, Who
from session_runtime.ask.emitter import Emit, Emitter, discard, new_ask_id
from session_runtime.ask.kept import Room
from session_runtime.ask.loop import Ending, Progress
from session_runtime.ask.places import (
    Bounds,
    Claim,
    Places,
    claim_of,
    deadline_of,
    principal_of,
    user_of,
)
from session_runtime.ask.record import build_record
from session_runtime.ask.run import AskRun, failure
from session_runtime.config.settings import Settings
from session_runtime.errors import BusyError, SessionRuntimeError, TransientError
from session_runtime.generation import Generation, Generations
from session_runtime.limits import Limits
from session_runtime.registry.confirmations import Confirmations
from session_runtime.trace.record import AskRecord
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    ErrorInfo,
    Identity,
    Principal,
    RunningAsk,
)

ALL: Final = "all"
REFUSALS: Final = (
    "busy.budget",
    "busy.capacity",
    "busy.draining",
    "busy.queue",
    "busy.rate",
    "busy.waiting",
)
"""Why an ask may be refused before it began."""
BY_OPERATOR: Final = "cancelled.operator"
REPLACED: Final = "cancelled.replaced"
GONE: Final = ErrorInfo("cancelled.caller", "the caller went away")
"""Why an ask was cancelled that nobody told to end: the task that awaited it was cancelled."""

_LEFT: Final = Ending("cancelled", "", GONE)
_LEAST_S: Final = 0.001
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Open:
    """An ask in flight: when it came on two clocks, and why it is being cancelled, if it is.

    ``run`` is None while it waits for its turn, ``chars`` unless the door told how long the request is.
    """

    ask_id: str
    request: AskRequest
    chars: int | None
    at: float
    begun: float
    run: AskRun | None = None
    task: asyncio.Task[Ending] | None = None
    told: ErrorInfo | None = None


class AskService:
    """Runs asks against the current generation until ``drain``; ``cancel`` ends what runs.

    ``keep_record`` receives one trace record per ask that was let in, also of one that ended while it
    waited; it must not block. All asks keep their long results in the same room, and what waits for consent
    in the same ``confirmations``. Rates and budgets go by ``clock``, in seconds.
    """

    def __init__(
        self,
        generations: Generations,
        keep_record: Callable[[AskRecord], None],
        resources: Mapping[str, Any],
        confirmations: Confirmations | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._generations = generations
        self._resources = resources
        self._room = Room()
        self._confirmations = Confirmations() if confirmations is None else confirmations
        self._keep_record = keep_record
        self._places = Places(self._bounds)
        self._admission = Admission(clock)
        self._refused: Counter[str] = Counter()
        self._open: dict[str, _Open] = {}
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()
        generations.after_publish(self._review)

    @property
    def _settings(self) -> Settings:
        return self._generations.current.settings

    @property
    def running(self) -> int:
        """How many asks run; those that wait for their turn are not counted."""
        return sum(each.run is not None for each in self._open.values())

    @property
    def waiting(self) -> int:
        """How many asks wait for their turn."""
        return self._places.waiting

    @property
    def known_users(self) -> int:
        """Of how many users it is remembered what they used of their limits."""
        return self._admission.users

    @property
    def refused(self) -> Mapping[str, int]:
        """How many asks were refused before they began, by each of ``REFUSALS``."""
        return {code: self._refused[code] for code in REFUSALS}

    @property
    def draining(self) -> bool:
        """Whether new asks are refused."""
        return self._draining

    async def ask(
        self,
        request: AskRequest,
        emit: Emit = discard,
        ask_id: str | None = None,
        chars: int | None = None,
    ) -> AskResult:
        """Answer one request; events go to ``emit``, the result last (ASK-1).

        Raises nothing but CancelledError, when the caller cancels; the ask's tools are cancelled
        first and ``emit`` still gets the last event. ``ask_id`` is a new one unless it is given,
        ``chars`` how long the request is, if its door has measured it. An
        ask that has to wait for its turn does so here (ASK-13), without a generation.
        """
        ask_id = ask_id or new_ask_id()
        emitter = Emitter(ask_id, _unbreakable(emit))
        ask = _Open(ask_id, request, chars, time.time(), asyncio.get_running_loop().time())
        self._open[ask_id] = ask
        self._idle.clear()
        try:
            if ended := await self._wait(ask, emitter):
                return self._end_waiting(ask, ended, emitter)
            with self._generations.pin() as generation:
                return await self._run(ask, generation, emitter)
        finally:
            self._close(ask_id)

    def drain(self) -> None:
        """Refuse new asks from now on; running ones go on (REL-8)."""
        self._draining = True

    async def idle(self) -> None:
        """Wait until no ask is in flight."""
        await self._idle.wait()

    def list(self) -> tuple[RunningAsk, ...]:
        """Show every ask that has not ended, the oldest first (REL-9)."""
        now, number = asyncio.get_running_loop().time(), self._generations.current.number
        return tuple(_shown(ask, now, number) for ask in self._open.values())

    def cancel(self, ask_id: str, reason: str, code: str = BY_OPERATOR) -> int:
        """Cancel an ask that has not ended, or ``ALL``; each ends as ``cancelled`` (REL-9).

        Gives the number of asks that were told; those that were told before are not counted. What an operator
        does is logged as a warning.
        """
        why = ErrorInfo(code, reason)
        chosen = tuple(self._open.values()) if ask_id == ALL else self._named(ask_id)
        told = sum(self._tell(ask, why) for ask in chosen)
        if told:
            level = logging.WARNING if code == BY_OPERATOR else logging.INFO
            _log.log(level, "%d running asks were told to end: %s", told, reason)
        return told

    def _named(self, ask_id: str) -> tuple[_Open, ...]:
        ask = self._open.get(ask_id)
        return () if ask is None else (ask,)

    def _tell(self, ask: _Open, why: ErrorInfo) -> bool:
        if ask.told is not None or (ask.task is not None and ask.task.cancelling()):
            return False
        ask.told = why
        if ask.task is None:
            self._places.dismiss(ask.ask_id)
        else:
            ask.task.cancel()
        return True

    def count_call(self, principal: Principal, stated: Identity) -> None:
        """Count a call of a tool that is made without an ask as an ask of that user (NET-5).

        Raises BusyError, and counts nothing, if it is one too many.
        """
        request = AskRequest(principal=principal, identity=stated)
        try:
            self._admission.enter(Who(principal.name, user_of(request)), self._limits(request))
        except BusyError as error:
            self._refused[error.code] += 1
            raise

    def _bounds(self) -> Bounds:
        settings = self._settings.runtime
        return Bounds(
            settings.max_concurrent_asks,
            settings.max_waiting_asks,
            settings.max_waiting_asks_in_all,
        )

    def _limits(self, request: AskRequest) -> Limits:
        return principal_of(request).limits.over(self._settings.limits.limits)

    async def _wait(self, ask: _Open, emitter: Emitter) -> Ending | None:
        try:
            return await self._get_place(ask)
        except asyncio.CancelledError:
            self._end_waiting(ask, _LEFT, emitter)
            raise

    def _end_waiting(self, ask: _Open, ending: Ending, emitter: Emitter) -> AskResult:
        """End an ask that never ran; of one that was refused no more than the number is kept."""
        if ending.outcome == "failed":
            refused = AskResult(ask.ask_id, "failed", error=ending.error, refused=True)
            return _finish(emitter, refused)
        with self._generations.pin() as generation:
            run = self._open_run(ask, generation, emitter)
            result = _finish(emitter, run.result(ending))
            self._keep_record(build_record(run, result, duration_s=0.0))
        return result

    async def _get_place(self, ask: _Open) -> Ending | None:
        """Wait until the ask may run; gives how it ended if it may not."""
        limit_s = min(self._settings.runtime.ask_timeout_s, deadline_of(ask.request))
        try:
            async with asyncio.timeout(limit_s):
                waited = await self._places.enter(self._admit(ask))
        except BusyError as error:
            self._refused[error.code] += 1
            return failure(error, error.code, retryable=True, wait_s=error.retry_after_s)
        except TimeoutError:
            over = "the time for this request was up before its turn came"
            return Ending("limit", "", ErrorInfo("limit.deadline", over, retryable=True))
        if ask.told is not None:
            return Ending("cancelled", "", ask.told)
        if waited:
            left_s = limit_s - (asyncio.get_running_loop().time() - ask.begun)
            ask.request = replace(ask.request, deadline_s=max(left_s, _LEAST_S))
        return None

    def _admit(self, ask: _Open) -> Claim:
        """What the ask claims; where it replaces others of its conversation, those are cancelled.

        Raises BusyError, with nothing counted and nothing cancelled, if it may not even wait.
        """
        if self._draining:
            raise BusyError("the daemon is stopping: ask another replica", code="busy.draining")
        mode, claim = self._settings.ask.conversations, self._claim(ask)
        self._places.check(claim)
        self._admission.enter(Who(*claim.whose), self._limits(ask.request))
        if mode == "cancel_previous" and claim.conversation is not None:
            for earlier in self._places.of_talk(claim):
                self.cancel(earlier, "a newer ask of its conversation took its place", REPLACED)
        return claim

    def _claim(self, ask: _Open) -> Claim:
        settings, of_user = self._settings, self._limits(ask.request).user_max_concurrent_asks
        own = settings.runtime.max_concurrent_asks_per_principal
        mode = settings.ask.conversations
        return claim_of(ask.ask_id, ask.request, mode, own, of_user, ask.chars)

    def _review(self) -> None:
        """Let in who waits and may run by the limits of another generation."""
        self._places.review(lambda claim: self._claim(self._open[claim.ask_id]))

    def _close(self, ask_id: str) -> None:
        self._open.pop(ask_id, None)
        self._places.leave(ask_id)
        if not self._open:
            self._idle.set()

    def _open_run(self, ask: _Open, generation: Generation, emitter: Emitter) -> AskRun:
        return AskRun(
            *(ask.ask_id, ask.request, generation, self._resources, emitter, self._room),
            self._confirmations,
        )

    async def _run(self, ask: _Open, generation: Generation, emitter: Emitter) -> AskResult:
        run = ask.run = self._open_run(ask, generation, emitter)
        started = asyncio.get_running_loop().time()
        ending = _LEFT
        try:
            ending = await _supervise(run, ask)
        finally:
            self._close(ask.ask_id)
            duration_s = asyncio.get_running_loop().time() - started
            result = _finish(emitter, run.result(ending))
            who = Who(principal_of(ask.request).name, user_of(ask.request))
            self._admission.charge(who, self._limits(ask.request), result.usage.total_tokens)
            self._keep_record(build_record(run, result, duration_s))
            _log_failure(result)
        return result


async def _supervise(run: AskRun, running: _Open) -> Ending:
    """Run the ask in a task of its own, so that cancelling it is not cancelling its caller."""
    task = running.task = asyncio.create_task(_execute(run), name=run.ask_id)
    told: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            if told is None:
                task.cancel()
            told = error  # whoever cancels twice still waits for the tools to be cancelled once
    if told is not None:
        raise told
    if task.cancelled():
        return Ending("cancelled", "", running.told or GONE)
    return task.result()


async def _execute(run: AskRun) -> Ending:
    """Turn every failure into an ending: the one place where an ask may fail in unforeseen ways."""
    try:
        return await run.execute()
    except TransientError as error:
        return failure(error, error.code, retryable=True, wait_s=error.retry_after_s)
    except SessionRuntimeError as error:
        return failure(error, error.code, retryable=False, wait_s=None)
    except Exception:  # noqa: BLE001 - a fault of ours must end the ask, not the backend (ASK-1)
        _log.exception("ask %s failed inside the runtime", run.ask_id)
        return Ending(
            "failed", "", ErrorInfo("internal", "the runtime failed; its log has the details")
        )


def _shown(ask: _Open, now: float, number: int) -> RunningAsk:
    """One ask as operators see it; ``number`` is of the generation that one which waits would run on."""
    run = ask.run
    progress = Progress(state="queued") if run is None else run.progress
    return RunningAsk(
        ask_id=ask.ask_id,
        started=ask.at,
        age_s=now - ask.begun,
        generation=number if run is None else run.generation.number,
        model=ask.request.model or "" if run is None else run.model,
        user=user_of(ask.request),
        principal=ask.request.principal.name,
        steps=progress.step,
        tool_calls=progress.calls,
        state=progress.state,
        cancelling=ask.told is not None or (ask.task is not None and ask.task.cancelling() > 0),
    )


def _log_failure(result: AskResult) -> None:
    if result.outcome == "failed" and result.error is not None:
        _log.warning("%s failed: %s (%s)", result.ask_id, result.error.message, result.error.code)


def _finish(emitter: Emitter, result: AskResult) -> AskResult:
    emitter.finish(AskFinished(result=result))
    return result


def _unbreakable(emit: Emit) -> Emit:
    """A sink that cannot break the ask: its first exception is logged, later events still go to it."""
    if emit is discard:
        return emit
    told: list[bool] = []

    def guarded(event: AskEvent) -> None:
        try:
            emit(event)
        except Exception:  # noqa: BLE001 - the embedding program's code must not break the ask
            if not told:
                _log.exception("the emit function failed at %s; the ask goes on", event.type)
            told.append(True)

    return guarded
