"""One request of an HTTP session: whether its client still listens, and how long its id is in use."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

EXCHANGE: Final = "session_runtime.exchange"
"""Where the scope of a request holds its exchange."""


class Exchange:
    """Is over once the client does not listen any more and nobody works on the answer; ``over`` is called."""

    def __init__(self, over: "Callable[[Exchange], None]") -> None:
        self._over = over
        self._holders = 0
        self._gone = False
        self._watching: set[Callable[[], None]] = set()

    @contextmanager
    def heard(self) -> Iterator[None]:
        """While the client listens for the answer."""
        with self.held():
            try:
                yield
            finally:
                self._gone = True
                for tell in [*self._watching]:
                    tell()

    @contextmanager
    def held(self) -> Iterator[None]:
        """While somebody works on the answer."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                self._over(self)

    @contextmanager
    def watching(self, tell: Callable[[], None]) -> Iterator[None]:
        """Call ``tell`` once the client does not listen any more, at once if it does not now."""
        if self._gone:
            tell()
        self._watching.add(tell)
        try:
            yield
        finally:
            self._watching.discard(tell)
