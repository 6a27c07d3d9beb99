"""A bounded queue from an ask to a reader of its events: the ask never waits for the reader."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from session_runtime.types import AskEvent, AskFinished, TextDelta, ToolProgress

CAPACITY: Final = 1_024


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event for the reader; ``lost`` events before it were dropped because the reader lagged."""

    event: AskEvent
    lost: int = 0


class Outbox:
    """Takes events by ``emit`` and hands them out by ``async for`` to one reader (ASK-1).

    When ``capacity`` events wait, text deltas are dropped first, then progress; all others always
    arrive: their number is bounded by the limits of the ask. Iteration ends after ``ask.finished``,
    or when the box was closed and is empty. Used on the event loop only.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._waiting: deque[AskEvent] = deque()
        self._lost = 0
        self._closed = False
        self._changed = asyncio.Event()

    def emit(self, event: AskEvent) -> None:
        """Take one event; never blocks. What comes after ``close`` or the last event is ignored."""
        if self._closed:
            return
        self._waiting.append(event)
        if len(self._waiting) > self._capacity:
            self._drop(TextDelta)
        if len(self._waiting) > self._capacity:
            self._drop(ToolProgress)
        self._closed = isinstance(event, AskFinished)
        self._changed.set()

    def close(self) -> None:
        """End the iteration after what is waiting, without a last event."""
        self._closed = True
        self._changed.set()

    async def take(self) -> Delivery | None:
        """Wait for the next event; None at the end. Cancelling the wait loses nothing."""
        while not self._waiting:
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        lost, self._lost = self._lost, 0
        return Delivery(self._waiting.popleft(), lost)

    def __aiter__(self) -> "Outbox":
        return self

    async def __anext__(self) -> Delivery:
        delivery = await self.take()
        if delivery is None:
            raise StopAsyncIteration
        return delivery

    def _drop(self, kind: type[TextDelta] | type[ToolProgress]) -> None:
        kept = [event for event in self._waiting if not isinstance(event, kind)]
        self._lost += len(self._waiting) - len(kept)
        self._waiting = deque(kept)
