"""How long a backend's client waits before it sends again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Pauses:
    """How waiting between attempts is done; both are edges to the world."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class Waits:
    """Pauses that grow, at random, and are no shorter than was asked for."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._longest_s = FIRST_WAIT_S

    def next(self, asked_s: float) -> float:
        """The next pause, in seconds."""
        share = 0.5 + self._jitter() / 2
        wait_s, self._longest_s = self._longest_s, min(LONGEST_WAIT_S, self._longest_s * 2)
        return max(wait_s * share, asked_s * (1 + self._jitter() / 4))
