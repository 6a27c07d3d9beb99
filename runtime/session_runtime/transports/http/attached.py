"""Ties work to the client who asked for it: when the client is gone, the work is cancelled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import Receive


@asynccontextmanager
async def attached(
    work: asyncio.Task[Any], receive: Receive, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Cancel ``work`` when the client disconnects or ``stop`` is set; it has ended on exit.

    It is cancelled once: a second time would interrupt what it does to end well. Enter only after
    the body of the request was read. How ``work`` ended is left to the caller.
    """
    watchers = (
        asyncio.create_task(_disconnected(receive), name="watch client"),
        asyncio.create_task(stop.wait(), name="watch stop"),
    )
    told = False

    def cancel_work(_: object = None) -> None:
        nonlocal told
        if not told:
            told = True
            work.cancel()

    for watcher in watchers:
        watcher.add_done_callback(cancel_work)
    try:
        yield
    finally:
        cancel_work()
        for watcher in watchers:
            watcher.cancel()
        await asyncio.wait((work, *watchers))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
