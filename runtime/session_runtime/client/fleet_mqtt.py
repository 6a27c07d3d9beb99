"""Reads the presence of all replicas from their broker, and sends nothing (NET-6)."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from session_runtime.client.fleet import MOST
from session_runtime.client.mqtt_line import Connect, Line, LineError, Received
from session_runtime.errors import TransientError
from session_runtime.wire.mqtt import PRESENCE_S, status_filter, status_topic
from session_runtime.wire.presence import Presence, presence_from_bytes

QUIET_S: Final = 0.5
"""After so long without one, the broker has no more retained messages to send."""

LONGEST_S: Final = 10.0


async def presences(
    connect: Connect,
    prefix: str,
    *,
    quiet_s: float = QUIET_S,
    wall: Callable[[], float] = time.time,
) -> "Seen":
    """What the broker keeps of each replica, and what they say meanwhile.

    Raises TransientError (``fleet.broker``) if the broker cannot be reached, or goes away.
    """
    found = Seen()
    try:
        async with asyncio.timeout(LONGEST_S), connect([status_filter(prefix)]) as line:
            await _gather(line, prefix, found, quiet_s, wall)
    except LineError as error:
        raise TransientError(
            f"the MQTT broker cannot be read ({error}): look at [mqtt], and whether this user may"
            f" subscribe to {status_filter(prefix)}",
            code="fleet.broker",
        ) from error
    except TimeoutError:
        if not found.presences:
            raise TransientError(
                f"the MQTT broker did not answer within {LONGEST_S:g} s", code="fleet.broker"
            ) from None
    return found


@dataclass(slots=True)
class Seen:
    """The statuses that were looked at, and how many were not, as there were more than ``MOST``."""

    by_name: dict[str, Presence] = field(default_factory=dict)
    left_out: int = 0

    @property
    def presences(self) -> tuple[Presence, ...]:
        """One for each replica."""
        return tuple(self.by_name.values())

    def add(self, presence: Presence) -> None:
        """Take one in; if there are too many, one that is offline gives way to one that is not."""
        if presence.replica not in self.by_name and len(self.by_name) >= MOST:
            self.left_out += 1
            offline = (name for name, each in self.by_name.items() if each.state == "offline")
            gives_way = None if presence.state == "offline" else next(offline, None)
            if gives_way is None:
                return
            del self.by_name[gives_way]
        self.by_name[presence.replica] = presence


async def _gather(
    line: Line,
    prefix: str,
    found: Seen,
    quiet_s: float,
    wall: Callable[[], float],
) -> None:
    """Fill ``found`` until nothing that was retained comes any more; news alone do not prolong it."""
    loop = asyncio.get_running_loop()
    messages = line.messages()
    try:
        async with asyncio.timeout(quiet_s) as quiet:
            async for message in messages:
                presence = _read(message, prefix, wall())
                if presence is not None:
                    found.add(presence)
                if message.retained:
                    quiet.reschedule(loop.time() + quiet_s)
    except TimeoutError:
        return


def _read(message: Received, prefix: str, now: float) -> Presence | None:
    """None for what has been taken away: an empty retained message."""
    replica = message.topic.removeprefix(status_topic(prefix, ""))
    if not message.body:
        return None
    age_s = None
    if message.expiry_s is not None:
        age_s = float(max(0, PRESENCE_S - message.expiry_s))
    return presence_from_bytes(message.body, replica, now=now, age_s=age_s)
