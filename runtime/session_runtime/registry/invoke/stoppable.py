"""Work in threads that ends soon once nobody waits for it; what the work is, is not decided here."""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from session_runtime.threads import in_thread

T = TypeVar("T")

Stopped = Callable[[], bool]
"""Whether nobody waits any more for what a function does; it asks between its steps."""


def never() -> bool:
    """The ``Stopped`` of work that is short."""
    return False


class StoppableThreads:
    """At most ``limit`` functions at once, each in a thread, and told when nobody waits for it.

    A function keeps its place until it ends; waiting for one can be cancelled at once. Whenever it asks
    whether it is stopped, other threads get their turn: the event loop does not wait longer than a step.
    """

    def __init__(self, limit: int) -> None:
        self._places = asyncio.Semaphore(limit)

    async def run(self, name: str, function: Callable[[Stopped], T]) -> T:
        """Wait for a place, then give what ``function`` returns or raises."""
        await self._places.acquire()
        stop = threading.Event()

        def stopped() -> bool:
            time.sleep(0)
            return stop.is_set()

        try:
            outcome = in_thread(name, partial(function, stopped))
        except BaseException:  # such as the system's, that gives no more threads
            self._places.release()
            raise
        outcome.add_done_callback(lambda _: self._places.release())
        try:
            return await asyncio.shield(outcome)
        finally:
            stop.set()
