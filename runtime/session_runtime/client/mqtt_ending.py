"""Asks that are to end although nobody waits for them any more, or nobody has them just now (NET-6).

How one is told to end is decided in ``mqtt``.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from session_runtime.client.attempts import Attempts
from session_runtime.client.mqtt_pending import Pending
from session_runtime.errors import PermanentError

MOST_LEFT: Final = 1_024


class Left:
    """Which replica has asks that went on when whoever had asked gave up; the last of them only."""

    def __init__(self) -> None:
        self._replicas: dict[str, str] = {}

    def add(self, ask_id: str, replica: str) -> None:
        """Remember an ask; the oldest makes room."""
        self._replicas[ask_id] = replica
        if len(self._replicas) > MOST_LEFT:
            del self._replicas[next(iter(self._replicas))]

    def drop(self, ask_id: str) -> None:
        """Forget an ask that was told to end."""
        self._replicas.pop(ask_id, None)

    def replica_of(self, ask_id: str) -> str | None:
        """Who has that ask, if it is known."""
        return self._replicas.get(ask_id)


def unwanted(attempts: Attempts) -> PermanentError:
    """The error of an ask that was to end when its replica was gone, so that it is not asked anew."""
    told = "its caller ended this ask, and the replica that had it is gone: it is not asked anew"
    return attempts.told_by(PermanentError(told, code="cancelled.caller"))


async def place_of(pending: Pending) -> tuple[str, str] | None:
    """Wait until a replica has begun an ask: that one, and the name there; None if it is over before."""
    while not pending.over:
        if pending.replica is not None and pending.ask_id is not None:
            return pending.replica, pending.ask_id
        pending.changed.clear()
        await pending.changed.wait()
    return None


async def unless_dropped(
    pending: Pending, telling: Coroutine[Any, Any, bool | None]
) -> bool | None:
    """What its replica says of the end of an ask; True if it is ended here, as its replica is gone."""
    told = asyncio.create_task(telling, name="mqtt cancel")
    dropped = asyncio.create_task(pending.dropped.wait(), name="mqtt ask dropped")
    try:
        await asyncio.wait((told, dropped), return_when=asyncio.FIRST_COMPLETED)
        return True if pending.dropped.is_set() else told.result()
    finally:
        told.cancel()
        dropped.cancel()
        await asyncio.wait((told, dropped))
