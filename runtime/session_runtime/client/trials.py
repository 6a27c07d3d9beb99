"""Gives messages to a broker so that one that ends connections is found, and no other is taken for it.

For both ends. Which connection there is, and what is told of a message that is given up, they decide.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

DEATHS: Final = 3
"""After so many connections that ended lately while a message was given to the broker, it is given up.

It was alone on its way for all of them but the first.
"""


LATELY_S: Final = 60.0
"""Connections that ended further apart than this have causes of their own."""


@dataclass(slots=True)
class Deaths:
    """How many connections ended lately while a message was given to the broker; times in seconds."""

    number: int = 0
    last: float = -math.inf

    def count(self, now: float) -> None:
        """Another one ended now."""
        self.number = self.number + 1 if now - self.last <= LATELY_S else 1
        self.last = now

    def forget(self) -> None:
        """The broker has the message: it is not the reason."""
        self.number = 0


class Trials:
    """Lets messages go to the broker side by side, and one over which a connection broke alone."""

    def __init__(self) -> None:
        self._door = asyncio.Lock()
        self._on_the_way = 0
        self._nobody = asyncio.Event()
        self._nobody.set()

    @asynccontextmanager
    async def turn(self, deaths: int) -> AsyncIterator[None]:
        """Give a message to the broker within the block; ``deaths`` is what that has cost so far."""
        if deaths:
            async with self._door:
                await self._nobody.wait()
                yield
            return
        async with self._door:
            self._on_the_way += 1
            self._nobody.clear()
        try:
            yield
        finally:
            self._on_the_way -= 1
            if self._on_the_way == 0:
                self._nobody.set()
