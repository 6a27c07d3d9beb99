"""How soon what somebody else asks for is done again: at once after quiet, ever later while it goes on."""

from typing import Final

MOST_S: Final = 60.0


class Pace:
    """Pauses after each time, of ``least_s`` at first, each up to twice the one before; all in seconds.

    It is quiet again when the next begins later than after two pauses.
    """

    def __init__(self, least_s: float) -> None:
        self._least_s = least_s
        self._pause_s = least_s
        self._ended_at: float | None = None

    @property
    def next_at(self) -> float | None:
        """When the next may begin; None for at once."""
        return None if self._ended_at is None else self._ended_at + self._pause_s

    def is_due(self, now: float) -> bool:
        """Whether the next may begin."""
        return self.next_at is None or now >= self.next_at

    def begin(self, now: float) -> None:
        """It is done once more, from now on."""
        if self._ended_at is not None:
            quiet = now >= self._ended_at + 2 * self._pause_s
            self._pause_s = self._least_s if quiet else min(2 * self._pause_s, MOST_S)

    def end(self, now: float) -> None:
        """It was done, which took until now."""
        self._ended_at = now
