"""Publishes by whichever connection is up, so that an answer survives the one its request came by."""

import asyncio

from session_runtime.client.trials import DEATHS, Deaths, Trials
from session_runtime.transports.mqtt.link import BrokenOverError, Link, LinkError, Outgoing


class Outlet:
    """Holds the connection of the moment; ``broken`` is set once it failed somebody."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._up = asyncio.Event()
        self._trials = Trials()
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
        broker alone, so that of many the one is found that it does not bear. Raises BrokenOverError
        for that one, and UndeliverableError for what the broker refuses.
        """
        deaths = Deaths()
        while deaths.number < DEATHS:
            link = await self._next()
            async with self._trials.turn(deaths.number):
                if link is not self._link:
                    continue  # it broke meanwhile, over another message or none
                try:
                    await link.publish(message)
                except LinkError as error:
                    self._fail(link)
                    if error.broke:
                        deaths.count(asyncio.get_running_loop().time())
                else:
                    return
        raise BrokenOverError(f"{DEATHS} connections broke while the broker was given it")

    async def _next(self) -> Link:
        """The connection that is up, as soon as one is."""
        while (link := self._link) is None:
            await self._up.wait()
        return link

    def _fail(self, link: Link) -> None:
        if link is self._link:
            self.close()
            self.broken.set()
