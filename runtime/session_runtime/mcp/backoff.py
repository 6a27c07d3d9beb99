"""How long to wait before the next attempt: growing and random (RTE-6)."""

from collections.abc import Callable
from typing import Final

FIRST_S: Final = 0.5
MOST_S: Final = 60.0


class Backoff:
    """Waits of which the longest possible doubles; ``jitter`` gives the part of it, from 0 to 1."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._longest_s = FIRST_S

    def next_s(self) -> float:
        """The wait before the next attempt, in seconds."""
        longest_s, self._longest_s = self._longest_s, min(2 * self._longest_s, MOST_S)
        return longest_s * self._jitter()

    def reset(self) -> None:
        """Begin anew: all was well for long enough."""
        self._longest_s = FIRST_S
