"""Ends a process that an asynchronous handler forked before it can go on as a second daemon."""

import logging
import os
import types
from collections.abc import Coroutine, Generator
from typing import Any, Final, TypeVar

EXIT_FORKED: Final = 70
T = TypeVar("T")

_log = logging.getLogger(__name__)


@types.coroutine
def in_one_process(name: str, running: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await ``running``, the call of the tool ``name``.

    A child that it forks shares the event loop's sockets. One that comes back to the loop, instead of
    becoming another program or exiting, would answer every ask a second time: it ends here.
    """
    home = os.getpid()
    step = running.send
    given: Any = None
    while True:
        try:
            awaited = step(given)
        except StopIteration as ended:
            _leave_if_forked(name, home)
            result: T = ended.value
            return result
        except BaseException:
            _leave_if_forked(name, home)
            raise
        _leave_if_forked(name, home)
        try:
            step, given = running.send, (yield awaited)
        except GeneratorExit:
            running.close()
            raise
        except BaseException as thrown:  # noqa: BLE001 - it goes where it was thrown at
            step, given = running.throw, thrown


def _leave_if_forked(name: str, home: int) -> None:
    if os.getpid() != home:
        _log.error(
            "tool %s forked and the child did not exit: it is ended; use a subprocess instead", name
        )
        os._exit(EXIT_FORKED)
