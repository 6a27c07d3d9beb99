"""The clock of the running event loop in the hands of a test, so that waits take no time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

TURN_S = 0.001


class Clock:
    """Runs as it did, plus what ``advance`` added; timers that are due then fire in the next turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._ahead_s = 0.0
        monkeypatch.setattr(loop, "time", self.now)

    def now(self) -> float:
        return self._real() + self._ahead_s

    def advance(self, seconds: float) -> None:
        self._ahead_s += seconds


@asynccontextmanager
async def hurried(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Each turn of the event loop is at least a millisecond of its clock; 20 s at most may pass."""
    clock = Clock(monkeypatch)

    async def hurry() -> None:
        while True:
            clock.advance(TURN_S)
            await asyncio.sleep(0)

    hurrying = asyncio.create_task(hurry())
    try:
        async with asyncio.timeout(20):
            yield
    finally:
        hurrying.cancel()
