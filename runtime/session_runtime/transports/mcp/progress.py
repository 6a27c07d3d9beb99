"""Hands the progress of one call to a client as fast as it takes it; what it misses is older."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from session_runtime.handler import ProgressSink

MOST_CHARS: Final = 500

_log: Final = logging.getLogger(__name__)

Send = Callable[[float, float | None, str | None], Awaitable[None]]
_News = tuple[float, float | None, str | None]


class ProgressRelay:
    """``report`` may be called from any thread, and any number of times; only what grows is sent.

    Once sending fails, nothing more is sent: the call goes on without.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._there = asyncio.Event()
        self._newest: _News | None = None
        self._closed = False
        self._done = float("-inf")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ProgressSink]:
        """Send what is reported meanwhile; what was reported last is sent before this is left."""
        sending = asyncio.create_task(self._run(), name="progress of a call")
        try:
            yield self.report
            self._finish()
            await asyncio.wait([sending])
        finally:
            self._finish()
            sending.cancel()

    def report(self, done: float, total: float | None, message: str | None) -> None:
        """Keep this in place of what was not sent yet."""
        words = None if message is None else message[:MOST_CHARS]
        with self._lock:
            if self._closed:
                return
            told = self._newest is not None
            self._newest = (done, total, words)
            if not told:
                self._loop.call_soon_threadsafe(self._there.set)

    def _finish(self) -> None:
        with self._lock:
            self._closed = True
        self._there.set()

    async def _run(self) -> None:
        try:
            await self._send_all()
        except Exception as error:  # noqa: BLE001 - progress that nobody hears is no fault of the call
            _log.info("the progress of a call could not be told: %s", type(error).__name__)

    async def _send_all(self) -> None:
        last = False
        while not last:
            await self._there.wait()
            self._there.clear()
            last = self._closed
            await self._send_newest()

    async def _send_newest(self) -> None:
        with self._lock:
            news, self._newest = self._newest, None
        if news is not None and news[0] > self._done:
            self._done = news[0]
            await self._send(*news)
