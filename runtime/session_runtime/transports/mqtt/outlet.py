"""Publishes by whichever connection is up, so that an answer survives the one its request came by."""

import asyncio
from typing import Final

from session_runtime.transports.mqtt.link import Link, LinkError, Outgoing, UndeliverableError

DEATHS: Final = 2
"""After so many connections that ended while a message was given to the broker, it is given up."""


class Outlet:
    """Holds the connection of the moment; ``broken`` is set once it failed somebody."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._up = asyncio.Event()
        self._suspects = asyncio.Lock()
        self.broken = asyncio.Event()

    @property
    def up(self) -> bool:
        """Whether there is a connection."""
        return self._link is not None

    def open(self, link: Link) -> None:
        """Use a new connection."""
        self._link = link
        self.broken.clear()
        self._up.set()

    def close(self) -> None:
        """Use none until there is another one."""
        self._link = None
        self._up.clear()

    async def publish(self, message: Outgoing) -> None:
        """Publish, by the next connection if this one breaks; waits as long as there is none.

        What was on its way when a connection broke may be the reason: such messages are given to the
        broker one at a time, so that of many the one is found that it does not bear. Raises
        UndeliverableError for that one, and for what the broker refuses.
        """
        if await self._published(message):
            return
        async with self._suspects:
            for _ in range(DEATHS - 1):
                if await self._published(message):
                    return
        raise UndeliverableError(f"{DEATHS} connections broke while the broker was given it")

    async def _published(self, message: Outgoing) -> bool:
        """Publish by the next connection that is up; whether the broker has it."""
        while (link := self._link) is None:
            await self._up.wait()
        try:
            await link.publish(message)
        except LinkError:
            if link is self._link:
                self.close()
                self.broken.set()
            return False
        return True
