"""How long a tool may run: its silence, the whole call, and stopping it have limits (RTE-7)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from session_runtime.errors import TransientError
from session_runtime.registry.invoke.outcome import Ended, Raised, Returned, TimedOut, TimeLimit

CANCEL_GRACE_S: Final = 1.0

SILENT: Final = "it was silent for too long"
"""What a tool is cancelled with for that alone, so that whoever calls it can tell."""

_log = logging.getLogger(__name__)

Heard = Callable[[], None]
"""Says that the tool gave a sign of life."""

Work = Callable[[Heard], Awaitable[object]]
"""What runs the tool."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """When a call ends whatever the tool tells, and how long the tool may be silent.

    ``deadline`` is event-loop time, ``seconds`` before it the call began; it is the tool's own, ``hard``, or
    that of the request, ``ask``. ``idle_s`` is None for a tool that may be silent all the time.
    """

    deadline: float
    seconds: float
    kind: TimeLimit
    idle_s: float | None

    def length_s(self, limit: TimeLimit) -> float:
        """How long the tool could run, or be silent."""
        return self.seconds if limit != "idle" or self.idle_s is None else self.idle_s


def limits_of(now: float, hard_s: float, idle_s: float | None, ask: float | None) -> TimeLimits:
    """The limits of a call that begins now; ``ask`` is the deadline of the request."""
    if ask is not None and ask < now + hard_s:
        return TimeLimits(ask, ask - now, "ask", idle_s)
    return TimeLimits(now + hard_s, hard_s, "hard", idle_s)


class Timing:
    """Runs tools within limits; one that does not stop within ``grace_s`` is left behind."""

    def __init__(self, grace_s: float = CANCEL_GRACE_S) -> None:
        self._grace_s = grace_s
        self._left_behind: set[asyncio.Task[Ended]] = set()

    async def run(
        self,
        name: str,
        work: Work,
        limits: TimeLimits,
        has_begun: Callable[[], bool],
    ) -> Ended:
        """Wait for the work in a task of its own: the wait ends even if the work ignores that.

        ``has_begun`` says whether it may have reached the tool. Cancelling this cancels the work, once.
        """
        silence, limit = _Silence(limits.idle_s), limits.kind
        task = asyncio.create_task(_ended(work, silence.end), name=f"call of {name}")
        try:
            limit = await _first_limit(task, silence, limits)
            if task.done():
                return task.result()
        finally:
            if not task.done():
                await self._stop(task, SILENT if limit == "idle" else None)
        begun = not task.cancelled() and has_begun()
        if begun and task.done() and _did_not_run(task.result()):
            return task.result()
        return TimedOut(limit, limits.length_s(limit), begun)

    async def _stop(self, task: asyncio.Task[Ended], why: str | None) -> None:
        task.cancel(why)
        try:
            await asyncio.wait({task}, timeout=self._grace_s)
        finally:
            if not task.done():
                self._left_behind.add(task)
                task.add_done_callback(self._left_behind.discard)
                _log.error("the %s ignores that it was cancelled and goes on", task.get_name())


class _Silence:
    """Since when nothing was heard of a tool; each sign of it ends one silence and begins the next."""

    def __init__(self, longest_s: float | None) -> None:
        self._clock = asyncio.get_running_loop().time
        self._longest_s = longest_s
        self._since = self._clock()

    def end(self) -> None:
        """The tool gave a sign."""
        self._since = self._clock()

    def lasts_until(self, deadline: float) -> float:
        """When it will have been too long; not after ``deadline``."""
        if self._longest_s is None:
            return deadline
        return min(deadline, self._since + self._longest_s)


async def _first_limit(
    task: asyncio.Task[Ended], silence: _Silence, limits: TimeLimits
) -> TimeLimit:
    """Wait until the task is done or a limit is reached; say which."""
    clock = asyncio.get_running_loop().time
    until = silence.lasts_until(limits.deadline)
    while not task.done() and (left_s := until - clock()) > 0:
        await asyncio.wait((task,), timeout=left_s)
        until = silence.lasts_until(limits.deadline)
    return "idle" if until < limits.deadline else limits.kind


async def _ended(work: Work, heard: Heard) -> Ended:
    try:
        value = await work(heard)
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, even SystemExit
        return Raised(error)
    if is_cancelled():  # the tool ignored that, and nobody waits for its result
        return Raised(asyncio.CancelledError())
    return Returned(value)


def _did_not_run(outcome: Ended) -> bool:
    match outcome:
        case Raised(TransientError() as error):
            return not error.may_have_run
    return False


def is_cancelled() -> bool:
    """Whether the running task was told to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
