"""Runs functions in threads of their own; how many there may be is decided by whoever starts them."""

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, TypeVar

IDLE: Final = "idle"

T = TypeVar("T")
_Queue: TypeAlias = SimpleQueue[Callable[[], None] | None]


class Worker:
    """A thread that runs one function after the other, until it was told to ``end``.

    It is a daemon, so that a hung one cannot hold up the end of the process, as the threads of an
    executor would. One event loop uses it; the constructor raises RuntimeError if the system gives
    no more threads.
    """

    def __init__(self) -> None:
        self._work: _Queue = SimpleQueue()
        threading.Thread(target=_run_all, args=(self._work,), name=IDLE, daemon=True).start()
        weakref.finalize(self, self._work.put, None).atexit = False  # nobody can give it more

    def run(self, name: str, function: Callable[[], T]) -> asyncio.Future[T]:
        """Run this function next, in a thread of this name; the future gets what it returns or raises."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            threading.current_thread().name = name
            settle: Callable[[], None]
            try:
                settle = partial(_give, outcome, context.run(function))
            except BaseException as error:  # noqa: BLE001 - it is raised again where the caller waits
                settle = partial(_raise, outcome, error)
            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        self._work.put(work)
        return outcome

    def end(self) -> None:
        """Let the thread go once everything it was given is done."""
        self._work.put(None)


def in_thread(name: str, function: Callable[[], T]) -> asyncio.Future[T]:
    """Run one function in a thread started for it; the future gets what it returns or raises."""
    worker = Worker()
    outcome = worker.run(name, function)
    worker.end()
    return outcome


async def aside(name: str, function: Callable[[], T]) -> T:
    """Give what a function returns or raises without holding up the event loop, if there is a thread for it.

    Where the system gives no more threads it runs here; so it must be one that ends by itself soon.
    """
    try:
        outcome = in_thread(name, function)
    except RuntimeError:
        return function()
    return await outcome


def _give(outcome: asyncio.Future[Any], result: object) -> None:
    if not outcome.cancelled():
        outcome.set_result(result)


def _raise(outcome: asyncio.Future[Any], error: BaseException) -> None:
    if isinstance(error, StopIteration):
        error = RuntimeError("the function raised StopIteration")
    if not outcome.cancelled():
        outcome.set_exception(error)


def _run_all(queue: _Queue) -> None:
    process = os.getpid()
    while (work := queue.get()) is not None:
        work()
        if os.getpid() != process:
            return  # a child that the function forked has no one to give it more: it ends
        del work  # what it returned must not live as long as the thread
        threading.current_thread().name = IDLE
