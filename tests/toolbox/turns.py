"""Watches whether the event loop gets its turns while something goes on."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class Turns:
    """``longest_s``: the most processor time of this thread that passed between two turns."""

    longest_s: float = 0.0


@asynccontextmanager
async def turns() -> AsyncIterator[Turns]:
    """Take turns until the body ends; what other threads and processes do does not count."""
    seen = Turns()

    async def take() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            seen.longest_s = max(seen.longest_s, now - last)
            last = now

    task = asyncio.create_task(take())
    await asyncio.sleep(0)
    try:
        yield seen
        await asyncio.sleep(0)
    finally:
        task.cancel()
