"""One reader of an ask that is kept: what it reported before, then what it does now."""

import asyncio
from typing import Final

from session_runtime.ask.event_log import EventLog
from session_runtime.transports.outbox import Delivery

AT_ONCE: Final = 32
"""So many events that are there already are handed out in one go, before others have their turn."""


class Follower:
    """Hands out the events of a log that are later than ``after``, and tells how many are missing.

    Ends after the last event, or when it was closed and has handed out what was there.
    """

    def __init__(self, log: EventLog, after: int = 0) -> None:
        self._log = log
        self._seen = after
        self._closed = False
        self._in_a_row = 0

    def close(self) -> None:
        """End the iteration after what is there."""
        self._closed = True
        self._log.wake()

    async def take(self) -> Delivery | None:
        """Wait for the next event; None at the end. Cancelling the wait loses nothing."""
        while (found := self._log.next_after(self._seen)) is None:
            if self._closed or self._log.result is not None:
                return None
            self._in_a_row = 0
            await self._log.change()
        self._in_a_row += 1
        if self._in_a_row % AT_ONCE == 0:
            await asyncio.sleep(0)
        event, lost = found
        self._seen = event.seq
        return Delivery(event, lost)
