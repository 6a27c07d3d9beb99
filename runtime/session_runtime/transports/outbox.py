"""A bounded queue from an ask to a reader of its events: the ask never waits for the reader."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass
from typing import Final

from session_runtime.types import AskEvent, AskFinished, TextDelta, ToolProgress

CAPACITY: Final = 1_024
_MAY_BE_LOST: Final = (TextDelta, ToolProgress)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event for the reader; ``lost`` events before it were dropped because the reader lagged."""

    event: AskEvent
    lost: int = 0


class Outbox:
    """Takes events by ``emit`` and hands them out by ``async for`` to one reader (ASK-1).

    When ``capacity`` events wait, text deltas are dropped first, then progress. All others always
    arrive and wait beyond ``capacity`` if need be, as many as the ask emits until its end. Iteration
    ends after ``ask.finished``, or when the box was closed and is empty. Used on the event loop only.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._waiting: deque[AskEvent] = deque()
        self._kinds: Counter[type[AskEvent]] = Counter()
        self._lost = 0
        self._closed = False
        self._changed = asyncio.Event()

    def emit(self, event: AskEvent) -> None:
        """Take one event; never blocks. What comes after ``close`` or the last event is ignored."""
        if self._closed:
            return
        for kind in _MAY_BE_LOST:
            if self._is_full():
                self._drop(kind)
        if self._is_full() and isinstance(event, _MAY_BE_LOST):
            self._lost += 1
        else:
            self._waiting.append(event)
            self._kinds[type(event)] += 1
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
        event = self._waiting.popleft()
        self._kinds[type(event)] -= 1
        return Delivery(event, lost)

    def __aiter__(self) -> "Outbox":
        return self

    async def __anext__(self) -> Delivery:
        delivery = await self.take()
        if delivery is None:
            raise StopAsyncIteration
        return delivery

    def _is_full(self) -> bool:
        return len(self._waiting) >= self._capacity

    def _drop(self, kind: type[TextDelta] | type[ToolProgress]) -> None:
        if lost := self._kinds.pop(kind, 0):
            self._lost += lost
            self._waiting = deque(e for e in self._waiting if not isinstance(e, kind))
