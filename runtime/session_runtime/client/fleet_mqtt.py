"""Reads the presence of all replicas from their broker, and sends nothing (NET-6)."""

import asyncio
import time
from collections.abc import Callable
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
) -> tuple[Presence, ...]:
    """What the broker keeps of each replica, and what they say meanwhile.

    Raises TransientError (``fleet.broker``) if the broker cannot be reached, or goes away.
    """
    found: dict[str, Presence] = {}
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
        if not found:
            raise TransientError(
                f"the MQTT broker did not answer within {LONGEST_S:g} s", code="fleet.broker"
            ) from None
    return tuple(found.values())


async def _gather(
    line: Line,
    prefix: str,
    found: dict[str, Presence],
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
                if presence is not None and (len(found) < MOST or presence.replica in found):
                    found[presence.replica] = presence
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
