"""Starts a thread for one function; how many there may be is decided by whoever starts them."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def in_thread(name: str, function: Callable[[], T]) -> asyncio.Future[T]:
    """Start a thread of this name; the future gets what ``function`` returns or raises.

    The thread is a daemon, so that a hung one cannot hold up the end of the process, as the threads
    of an executor would.
    """
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
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    threading.Thread(target=work, name=name, daemon=True).start()
    return outcome


def _give(outcome: asyncio.Future[T], result: T) -> None:
    if not outcome.cancelled():
        outcome.set_result(result)


def _raise(outcome: asyncio.Future[T], error: BaseException) -> None:
    if isinstance(error, StopIteration):
        error = RuntimeError("the function raised StopIteration")
    if not outcome.cancelled():
        outcome.set_exception(error)
