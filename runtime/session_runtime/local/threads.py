"""Runs plain functions away from the event loop; which functions those are is ``source``'s choice."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """At most ``limit`` functions at once, each in a thread named after its work.

    A thread cannot be stopped: when its caller is cancelled, the function runs on, keeps its place,
    and its result is dropped. Threads are daemons, so that a hung one cannot hold up the end of the
    process, as the threads of an executor would.
    """

    def __init__(self, limit: int) -> None:
        self._places = asyncio.Semaphore(limit)

    async def run(self, name: str, function: Callable[[], T]) -> T:
        """Give what ``function`` returns or raises, waiting for a free place first."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            settle: Callable[[], None]
            try:
                settle = partial(_give, outcome, context.run(function))
            except BaseException as error:  # noqa: BLE001 - it is raised again where the caller waits
                settle = partial(_raise, outcome, error)
            try:
                loop.call_soon_threadsafe(self._finish, settle)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        try:
            threading.Thread(target=work, name=name, daemon=True).start()
        except RuntimeError:
            self._places.release()
            raise
        return await outcome

    def _finish(self, settle: Callable[[], None]) -> None:
        self._places.release()
        settle()


def _give(outcome: asyncio.Future[T], result: T) -> None:
    if not outcome.cancelled():
        outcome.set_result(result)


def _raise(outcome: asyncio.Future[T], error: BaseException) -> None:
    if isinstance(error, StopIteration):
        error = RuntimeError("the function raised StopIteration")
    if not outcome.cancelled():
        outcome.set_exception(error)
