"""Publishes by whichever connection is up, so that an answer survives the one its request came by."""

import asyncio

from session_runtime.transports.mqtt.link import Link, LinkError, Outgoing


class Outlet:
    """Holds the connection of the moment; ``broken`` is set once it failed somebody."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._up = asyncio.Event()
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
        """Publish, by the next connection if this one breaks; waits as long as there is none."""
        while True:
            await self._up.wait()
            link = self._link
            if link is None:
                continue
            try:
                return await link.publish(message)
            except LinkError:
                if link is self._link:
                    self.close()
                    self.broken.set()
