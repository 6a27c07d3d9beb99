"""How long to wait before the next connection: longer each time, and never the same for two replicas."""

import random
from collections.abc import Callable
from typing import Final

FIRST_S: Final = 0.5
LONGEST_S: Final = 30.0
STEADY_S: Final = 10.0
"""A connection that lasted so long was a good one; one that breaks at once is another failure."""

MANY: Final = 3
UNDISPUTED_S: Final = 2 * LONGEST_S
"""After so many failures, so long: of two clients of one name, each waits for less before it takes over."""


class Backoff:
    """Counts failures; ``clock`` gives seconds, ``chance`` numbers from 0 to 1."""

    def __init__(
        self, clock: Callable[[], float], chance: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._failures = 0
        self._brief = 0
        self._since: float | None = None

    @property
    def disputed(self) -> bool:
        """Whether so many connections in a row did not last that another client may have the same name."""
        return self._brief >= MANY

    def connected(self) -> None:
        """A connection is up."""
        self._since = self._clock()

    def next_s(self, *, taken_over: bool = False) -> float:
        """How long to wait now that there is no connection: half of the full time, and a part by chance.

        ``taken_over`` says that the broker ended it for another one of the same name. Not every broker says
        so; but where no connection can be made, the broker was away, and nobody has taken any over.
        """
        least_s = UNDISPUTED_S if self.disputed else STEADY_S
        if self._since is None and not taken_over:
            self._brief = 0
        elif self._since is not None and self._clock() - self._since >= least_s:
            self._failures = self._brief = 0
        else:
            self._brief += 1
        self._since = None
        full: float = min(LONGEST_S, FIRST_S * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        return full / 2 + full / 2 * self._chance()
