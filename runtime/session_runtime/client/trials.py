"""Gives messages to a broker so that one that ends connections is found, and no other is taken for it.

For both ends. Which connection there is, and what is told of a message that is given up, they decide.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

DEATHS: Final = 3
"""After so many connections that ended while a message was given to the broker, it is given up.

It was alone on its way for all of them but the first.
"""


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
