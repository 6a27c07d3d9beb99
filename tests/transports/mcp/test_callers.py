"""Calls of clients end once, however often they are told to."""

import asyncio
from pathlib import Path

from session_runtime.transports.mcp.callers import Caller
from session_runtime.transports.mcp.outcome import Outcome
from tests.support import opened


async def test_a_call_that_ends_in_its_own_time_is_cancelled_only_once(tmp_path: Path) -> None:
    begun, cleaning, go_on, cleaned = (asyncio.Event() for _ in range(4))

    async def call() -> Outcome:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await go_on.wait()
            cleaned.set()
        raise AssertionError

    async with opened(tmp_path, "") as runtime:
        running = asyncio.create_task(runtime.callers.run(Caller(), "a.slow", call()))
        await begun.wait()
        runtime.callers.cancel()
        await cleaning.wait()
        runtime.callers.cancel()
        await asyncio.sleep(0)
        go_on.set()
        outcome = await running
    assert cleaned.is_set()
    assert outcome.text == (
        "The call was stopped because the daemon stops; it may have taken effect."
    )
