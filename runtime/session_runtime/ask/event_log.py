"""What one ask has reported so far, as much of it as is kept, for readers who come late or come back."""

import asyncio
from collections import deque
from typing import Final

from session_runtime.ask.lengths import FRAME_CHARS, chars_of
from session_runtime.types import AskEvent, AskFinished, AskResult, AskStarted, ToolStarted

MOST_EVENTS: Final = 2_048
MOST_CHARS: Final = 512 * 1024


class EventLog:
    """The last events of an ask, in order; the oldest make room, and whoever reads is told (INT-3).

    Every reader goes by the ``seq`` it has seen, so that readers cost nothing and slow down nobody.
    Used on the event loop only.
    """

    def __init__(self, most_events: int = MOST_EVENTS, most_chars: int = MOST_CHARS) -> None:
        self._most_events = most_events
        self._most_chars = most_chars
        self._events: deque[tuple[AskEvent, int]] = deque()
        self._chars = 0
        self._result: AskResult | None = None
        self._model: str | None = None
        self._tools_ran = False
        self._changed = asyncio.Event()

    @property
    def result(self) -> AskResult | None:
        """How the ask ended; None until it has."""
        return self._result

    @property
    def model(self) -> str | None:
        """The profile that answers, however long ago it was told; None until it has begun."""
        return self._model

    @property
    def tools_ran(self) -> bool:
        """Whether any tool was called, however long ago it was told."""
        return self._tools_ran

    @property
    def chars(self) -> int:
        """How much is kept, in characters."""
        return self._chars

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        return self._events[-1][0].seq + 1 if self._events else 1

    def emit(self, event: AskEvent) -> None:
        """Take the next event; never blocks. What comes after the last one is ignored."""
        if self._result is not None:
            return
        chars = FRAME_CHARS + chars_of(event)
        self._events.append((event, chars))
        self._chars += chars
        while len(self._events) > 1 and not self._fits():
            self._chars -= self._events.popleft()[1]
        self._note(event)
        self.wake()

    def _note(self, event: AskEvent) -> None:
        """Remember what every reader has to know, though its event may have made room."""
        match event:
            case AskStarted():
                self._model = event.model
            case ToolStarted():
                self._tools_ran = True
            case AskFinished():
                self._result = event.result
            case _:
                pass

    def wake(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def next_after(self, seq: int) -> tuple[AskEvent, int] | None:
        """The first event later than ``seq`` that is kept, and how many before it are not any more.

        None if there is none yet, or, once the ask has ended, none any more.
        """
        if not self._events or self._events[-1][0].seq <= seq:
            return None
        first = self._events[0][0].seq
        event = self._events[max(0, seq + 1 - first)][0]
        return event, max(0, event.seq - seq - 1)

    async def change(self) -> None:
        """Wait until there may be another event."""
        if self._result is None:
            await self._changed.wait()

    def _fits(self) -> bool:
        return len(self._events) <= self._most_events and self._chars <= self._most_chars
