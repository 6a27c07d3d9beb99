"""Bounds how many strangers are told why they are refused: each of them names where that goes (NET-6)."""

from collections.abc import Callable
from typing import Final

PER_S: Final = 10.0
AT_ONCE: Final = 100


class Throttle:
    """Lets through ``at_once`` in a row, and ``per_s`` in a second from then on; ``clock`` gives seconds."""

    def __init__(
        self, clock: Callable[[], float], *, per_s: float = PER_S, at_once: int = AT_ONCE
    ) -> None:
        self._clock = clock
        self._per_s = per_s
        self._at_once = at_once
        self._left: float = at_once
        self._since = clock()

    def admits(self) -> bool:
        """Whether one more may go through, which is counted then."""
        now = self._clock()
        self._left = min(self._at_once, self._left + (now - self._since) * self._per_s)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
