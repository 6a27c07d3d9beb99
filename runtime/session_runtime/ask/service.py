"""The one door of every ask: admits it, pins its generation, and makes sure that it ends once (ASK-1)."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from session_runtime.ask.emitter import Emit, Emitter, discard
from session_runtime.ask.kept import Room
from session_runtime.ask.loop import Ending
from session_runtime.ask.record import build_record
from session_runtime.ask.run import AskRun, failure
from session_runtime.errors import BusyError, SessionRuntimeError, TransientError
from session_runtime.generation import Generation, Generations
from session_runtime.registry.confirmations import Confirmations
from session_runtime.trace.record import AskRecord
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    ErrorInfo,
    RunningAsk,
)

ALL: Final = "all"
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Running:
    """An ask in flight: when it began on two clocks, and why it is being cancelled, if it is."""

    run: AskRun
    at: float
    begun: float
    task: asyncio.Task[Ending] | None = None
    cancel_reason: str = field(default="cancelled")


class AskService:
    """Runs asks against the current generation until ``drain``; ``cancel`` ends what runs.

    ``keep_record`` receives one trace record per ask that ran; it must not block. All asks keep their
    long results in the same room, and what waits for consent in the same ``confirmations``.
    """

    def __init__(
        self,
        generations: Generations,
        keep_record: Callable[[AskRecord], None],
        resources: Mapping[str, Any],
        confirmations: Confirmations | None = None,
    ) -> None:
        self._generations = generations
        self._resources = resources
        self._room = Room()
        self._confirmations = Confirmations() if confirmations is None else confirmations
        self._keep_record = keep_record
        self._running: dict[str, _Running] = {}
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running(self) -> int:
        """How many asks are in flight."""
        return len(self._running)

    @property
    def draining(self) -> bool:
        """Whether new asks are refused."""
        return self._draining

    async def ask(self, request: AskRequest, emit: Emit = discard) -> AskResult:
        """Answer one request; events go to ``emit``, the result last (ASK-1).

        Raises nothing but CancelledError, when the caller cancels; the ask's tools are cancelled
        first and ``emit`` still gets the last event.
        """
        ask_id = f"ask_{secrets.token_hex(10)}"
        emitter = Emitter(ask_id, _unbreakable(emit))
        try:
            self._admit()
        except BusyError as error:
            return _finish(emitter, AskResult(ask_id, "failed", error=_busy_info(error)))
        with self._generations.pin() as generation:
            return await self._run(ask_id, request, generation, emitter)

    def drain(self) -> None:
        """Refuse new asks from now on; running ones go on (REL-8)."""
        self._draining = True

    async def idle(self) -> None:
        """Wait until no ask is in flight."""
        await self._idle.wait()

    def list(self) -> tuple[RunningAsk, ...]:
        """Show every running ask, the oldest first (REL-9)."""
        now = asyncio.get_running_loop().time()
        return tuple(_shown(running, now) for running in self._running.values())

    def cancel(self, ask_id: str, reason: str) -> int:
        """Cancel a running ask, or ``ALL``; each ends as ``cancelled`` with ``reason`` (REL-9).

        Gives the number of asks that were told; those that were told before are not counted.
        """
        told = 0
        for each, running in self._running.items():
            wanted = ask_id in (each, ALL)
            if wanted and running.task is not None and not running.task.cancelling():
                running.cancel_reason = reason
                running.task.cancel()
                told += 1
        if told:
            _log.warning("%d running asks were told to end: %s", told, reason)
        return told

    def _admit(self) -> None:
        if self._draining:
            raise BusyError("the daemon is stopping: ask another replica", code="busy.draining")
        limit = self._generations.current.settings.runtime.max_concurrent_asks
        if len(self._running) >= limit:
            raise BusyError(
                f"{limit} asks are running, the most that runtime.max_concurrent_asks allows",
                code="busy.capacity",
            )

    async def _run(
        self, ask_id: str, request: AskRequest, generation: Generation, emitter: Emitter
    ) -> AskResult:
        run = AskRun(
            ask_id, request, generation, self._resources, emitter, self._room, self._confirmations
        )
        started = asyncio.get_running_loop().time()
        running = self._running[ask_id] = _Running(run, time.time(), started)
        self._idle.clear()
        ending = Ending("cancelled", "", ErrorInfo("cancelled.caller", "the caller went away"))
        try:
            ending = await _supervise(run, running)
        finally:
            del self._running[ask_id]
            if not self._running:
                self._idle.set()
            duration_s = asyncio.get_running_loop().time() - started
            result = _finish(emitter, run.result(ending))
            self._keep_record(build_record(run, result, duration_s))
            _log_failure(result)
        return result


async def _supervise(run: AskRun, running: _Running) -> Ending:
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
        return Ending("cancelled", "", ErrorInfo("cancelled.operator", running.cancel_reason))
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


def _shown(running: _Running, now: float) -> RunningAsk:
    run, request = running.run, running.run.request
    own = request.principal.identity
    user = request.identity.user
    return RunningAsk(
        ask_id=run.ask_id,
        started=running.at,
        age_s=now - running.begun,
        generation=run.generation.number,
        model=run.model,
        user=own.user if user is None and own is not None else user,
        principal=request.principal.name,
        steps=run.progress.step,
        tool_calls=run.progress.calls,
        state=run.progress.state,
        cancelling=running.task is not None and running.task.cancelling() > 0,
    )


def _log_failure(result: AskResult) -> None:
    if result.outcome == "failed" and result.error is not None:
        _log.warning("%s failed: %s (%s)", result.ask_id, result.error.message, result.error.code)


def _finish(emitter: Emitter, result: AskResult) -> AskResult:
    emitter.finish(AskFinished(result=result))
    return result


def _busy_info(error: BusyError) -> ErrorInfo:
    return ErrorInfo(error.code, str(error), retryable=True, retry_after_s=error.retry_after_s)


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
