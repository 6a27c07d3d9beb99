"""Tells a client when the list of its tools is another one, because a new generation came into force."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from session_runtime.transports.mcp.callers import Caller, Callers
from session_runtime.transports.mcp.session import CallerSession

LONGEST_WAIT_S: Final = 5.0
_log = logging.getLogger(__name__)


class Tellable(Protocol):
    """Whoever can be told that the list has changed."""

    async def tell(self) -> None:
        """Say so; may wait for a client that reads slowly."""


async def tell_of_changes(
    callers: Callers,
    session: CallerSession,
    client: Tellable,
    caller: Callable[[], Caller | None],
) -> None:
    """Go on until the caller has no key any more, or this is cancelled.

    A client that does not take the news in time lists again whenever it likes: each list is the newest.
    """
    seen = callers.generation.number
    while True:
        newer = await callers.generations.newer_than(seen)
        seen = newer.number  # what comes while the client is told of this one is told next
        if (whose := caller()) is None:
            return
        await _tell_if_outdated(session, whose, client)


async def _tell_if_outdated(session: CallerSession, caller: Caller, client: Tellable) -> None:
    try:
        await session.prepare(caller)
        if session.outdated(caller):
            async with asyncio.timeout(LONGEST_WAIT_S):
                await client.tell()
    except TimeoutError:
        _log.info("an MCP client was not told of a change in time")
    except Exception as error:  # noqa: BLE001 - whether its owner may still come in is watched on
        _log.info("an MCP client could not be told of a change", exc_info=error)
