"""Access to files that several processes change, on disks that may hang; what is in them, others decide."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from session_runtime.threads import Worker

ANSWERS_S: Final = 5.0
"""So long a disk is waited for."""

Stamp = tuple[int, int, int]
"""Differs once a file is another one, or was written to."""

T = TypeVar("T")


def stamp_of(path: Path) -> Stamp | None:
    """What the file at ``path`` is known by; None if there is none. Blocks, and raises OSError."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class Accesses:
    """Makes one access after the other in a thread of its own; none is begun while one hangs.

    Used on the event loop. Where the system gives no thread they are made there.
    """

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._latest: asyncio.Future[Any] | None = None

    async def run(self, name: str, access: Callable[[], T], then: Callable[[T], None]) -> None:
        """Make an access, and give ``then`` what it returns, however late that comes.

        Raises what the access does, and OSError if there is no answer within ANSWERS_S, or none yet to the
        access before this one.
        """
        if self._latest is not None and not self._latest.done():
            raise OSError("the disk does not answer")
        access_made = self._latest = self._begun(name, access)
        access_made.add_done_callback(partial(_told, then))
        await asyncio.wait([access_made], timeout=ANSWERS_S)
        if not access_made.done():
            raise OSError("the disk does not answer")
        access_made.result()

    def _begun(self, name: str, access: Callable[[], T]) -> asyncio.Future[T]:
        try:
            self._worker = self._worker or Worker()
        except RuntimeError:
            return _made_here(access)
        return self._worker.run(name, access)


def _made_here(access: Callable[[], T]) -> asyncio.Future[T]:
    made: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    try:
        made.set_result(access())
    except (OSError, ValueError) as error:
        made.set_exception(error)
    return made


def _told(then: Callable[[T], None], made: asyncio.Future[T]) -> None:
    if not made.cancelled() and made.exception() is None:
        then(made.result())
