"""Runs plain functions away from the event loop; which functions those are is ``source``'s choice."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from session_runtime.errors import TransientError
from session_runtime.threads import Worker

KEPT: Final = 8

T = TypeVar("T")


class Threads:
    """At most ``limit`` functions at once, each in a thread named after its work.

    A thread cannot be stopped: when its caller is cancelled, the function runs on, keeps its place,
    and its result is dropped. Up to ``KEPT`` idle threads wait for more work, as starting one takes
    longer than most functions.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places = asyncio.Semaphore(limit)
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()

    async def run(self, name: str, function: Callable[[], T], deadline: float | None = None) -> T:
        """Give what ``function`` returns or raises, waiting for a free place first.

        TransientError ``tool.no_thread`` tells that none became free before ``deadline``, on the
        clock of the loop: the function did not run. It takes the place of a cancellation that comes
        when the time is up.
        """
        await self._take_place(deadline)
        try:
            worker = self._idle.pop() if self._idle else Worker()
        except RuntimeError:
            self._places.release()
            raise
        self._busy.add(worker)
        outcome = worker.run(name, function)
        outcome.add_done_callback(lambda _: self._give_back(worker))
        return await asyncio.shield(outcome)

    def close(self) -> None:
        """Let all threads go, each once its function has ended."""
        for worker in (*self._idle, *self._busy):
            worker.end()
        self._idle.clear()
        self._busy.clear()

    def _give_back(self, worker: Worker) -> None:
        self._places.release()
        if worker not in self._busy:
            return  # closed meanwhile
        self._busy.remove(worker)
        if len(self._idle) < KEPT:
            self._idle.append(worker)
        else:
            worker.end()

    async def _take_place(self, deadline: float | None) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._places.acquire()
        except (TimeoutError, asyncio.CancelledError):
            if deadline is None or asyncio.get_running_loop().time() < deadline:
                raise
            raise TransientError(
                f"all {self._limit} threads for tools are busy", code="tool.no_thread"
            ) from None
