"""Runs plain functions away from the event loop; which functions those are is ``source``'s choice."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from session_runtime.errors import TransientError
from session_runtime.threads import in_thread

T = TypeVar("T")


class Threads:
    """At most ``limit`` functions at once, each in a thread named after its work.

    A thread cannot be stopped: when its caller is cancelled, the function runs on, keeps its place,
    and its result is dropped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._places = asyncio.Semaphore(limit)

    async def run(self, name: str, function: Callable[[], T], deadline: float | None = None) -> T:
        """Give what ``function`` returns or raises, waiting for a free place first.

        TransientError ``tool.no_thread`` tells that none became free before ``deadline``, on the
        clock of the loop: the function did not run. It takes the place of a cancellation that comes
        when the time is up.
        """
        await self._take_place(deadline)
        try:
            outcome = in_thread(name, function)
        except RuntimeError:
            self._places.release()
            raise
        outcome.add_done_callback(lambda _: self._places.release())
        return await asyncio.shield(outcome)

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
