"""Work that belongs to a client is cancelled exactly once, whatever ends it."""

import asyncio
from typing import Any, Literal

import pytest
from starlette.types import Message

from session_runtime.transports.http.attached import attached

End = Literal["the client leaves", "the daemon stops", "both", "the caller leaves"]


class CountingWork:
    """Waits until it is cancelled, then cleans up for some turns of the loop."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancels = 0

    async def __call__(self) -> None:
        self.started.set()
        await self._outlast(1_000)
        await self._outlast(10)

    async def _outlast(self, turns: int) -> None:
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancels += 1


class Client:
    """A connection that is silent until the client leaves."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}


@pytest.mark.requirement("ASK-1")
@pytest.mark.parametrize(
    "end", ["the client leaves", "the daemon stops", "both", "the caller leaves"]
)
async def test_work_is_cancelled_exactly_once(end: End) -> None:
    work, client, stop = CountingWork(), Client(), asyncio.Event()
    task: asyncio.Task[Any] = asyncio.create_task(work())
    async with attached(task, client.receive, stop):
        await work.started.wait()
        if end in ("the client leaves", "both"):
            client.left.set()
        if end in ("the daemon stops", "both"):
            stop.set()
        if end != "the caller leaves":
            await asyncio.wait([task])
    assert task.done()
    assert work.cancels == 1


async def test_work_that_ended_by_itself_is_not_cancelled() -> None:
    task = asyncio.create_task(asyncio.sleep(0, "done"))
    async with attached(task, Client().receive, asyncio.Event()):
        await asyncio.wait([task])
    assert task.result() == "done"
