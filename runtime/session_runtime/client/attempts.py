"""What became of each attempt at one request, for both clients: out, taken back, or refused.

When an attempt is made is decided in ``http`` and ``mqtt``; what is told of a request follows from here.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from session_runtime.errors import SessionRuntimeError

E = TypeVar("E", bound=SessionRuntimeError)


@dataclass(slots=True)
class Attempts:
    """The attempts at one request, counted from 1; ``number`` is that of the latest, 0 before there is one.

    An attempt is out as soon as it leaves here, and may run until it is known not to: whoever got it refused
    it, or nobody got it. ``cause`` is why the latest has no answer. One that only ``looks`` runs nothing.
    ``left`` says whether there ever was one on its way.
    """

    number: int = 0
    cause: Exception | None = None
    looks: bool = False
    left: bool = False
    _out: set[int] = field(default_factory=set)

    def begin(self) -> None:
        """Make another attempt, which has not left yet."""
        self.number += 1

    def leave(self) -> None:
        """The latest attempt leaves: from now on it may run."""
        self.left = True
        self._out.add(self.number)

    def take_back(self) -> None:
        """Nobody got the latest attempt: it counts as not made."""
        self._out.discard(self.number)
        self.number -= 1

    def refuse(self, number: int) -> None:
        """Whoever got that attempt did not begin it."""
        self._out.discard(number)

    @property
    def may_have_run(self) -> bool:
        """Whether any attempt may have run, or may yet."""
        return bool(self._out) and not self.looks

    def told_by(self, error: E) -> E:
        """The error that ends the request, which says whether it may have run."""
        error.may_have_run = self.may_have_run
        return error

    @property
    def earlier(self) -> int:
        """How many attempts before the latest one may have run."""
        return sum(number < self.number for number in self._out)

    @property
    def unsure(self) -> bool:
        """Whether an attempt before the latest one may have run."""
        return self.earlier > 0
