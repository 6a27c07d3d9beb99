"""The one place that decides whether a call is made again, where, and after how long (RTE-8).

A source only classifies what went wrong; how one attempt is guarded and timed is decided in the pipeline.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from session_runtime.errors import TransientError
from session_runtime.registry.invoke.guard import Refused
from session_runtime.registry.invoke.outcome import (
    Ended,
    Outcome,
    Raised,
    TimedOut,
    did_not_run,
)
from session_runtime.registry.spec import Route, ToolSpec

FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 10.0
MOST_ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class Try:
    """What to do next: take ``route`` after ``pause_s`` seconds; ``patient``: wait for room there."""

    route: Route
    pause_s: float = 0.0
    patient: bool = False


class Tries:
    """The attempts of one call: all routes, best first, round by round, with growing pauses in between.

    Another route is taken where the one before did not run the tool, or the tool is repeatable. The caller
    asks for the ``next`` try, until there is none, and tells how each ended. What a handler of this process
    raises comes from code that ran: it is never called again. ``deadline`` is event-loop time.
    """

    def __init__(
        self,
        spec: ToolSpec,
        routes: Sequence[Route],
        deadline: float,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._repeatable = spec.repeatable
        self._remote = spec.origin == "mcp"
        self._routes = routes
        self._deadline = deadline
        self._jitter = jitter
        self._round = _Round(routes)
        self._rounds = 1
        self._done = False
        self._told: Outcome | None = None
        self.attempts = 0

    @property
    def outcome(self) -> Outcome:
        """How the call ended: by its last attempt, or if there was none, why the best route was not taken."""
        if self._told is None:
            raise AssertionError("no route was tried")
        return self._told

    def next(self, now: float) -> Try | None:
        """What to try next; None if the outcome stands."""
        if self._done or (self._told is not None and now >= self._deadline):
            return None
        following = self._round.next()
        if following is not None:
            return following
        if self._rounds == MOST_ROUNDS or not self._round.may_pass:
            return None
        pause_s = max(self._backoff_s(), self._round.wanted_s)
        if now + pause_s >= self._deadline:
            return None
        self._rounds += 1
        self._round = _Round(self._routes, pause_s)
        return self._round.next()

    def ended(self, tried: Try, outcome: Outcome) -> None:
        """Tell how a try ended."""
        if isinstance(outcome, Refused):
            self._told = _refused_again(self._told, outcome)
            self._round.refused(tried, outcome, again=self.attempts > 0)
            return
        self.attempts += 1
        self._told = outcome
        if self._remote and self._harmless(outcome):
            self._round.failed(outcome)
        else:
            self._done = True

    def _harmless(self, outcome: Ended) -> bool:
        """Whether the tool may be run after this: it did not run, or running it twice does no harm."""
        match outcome:
            case TimedOut() | Raised(TransientError()):
                return self._repeatable or did_not_run(outcome)
        return did_not_run(outcome)

    def _backoff_s(self) -> float:
        longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self._rounds - 1))
        return longest * self._jitter()


class _Round:
    """Each route once: those with room at once; if none has, the best that is only full is waited for.

    ``may_pass``: a failure was seen that trying the same again may mend. ``wanted_s`` is the shortest wait
    that the other side asked for.
    """

    def __init__(self, routes: Sequence[Route], pause_s: float = 0.0) -> None:
        self._pause_s = pause_s
        self._left = iter(routes)
        self._only_one = len(routes) == 1
        self._full: Route | None = None
        self._wanted: list[float] = []
        self.may_pass = False

    @property
    def wanted_s(self) -> float:
        """The shortest wait that any route asked for, in seconds."""
        return min(self._wanted, default=0.0)

    def next(self) -> Try | None:
        """The next route of this round."""
        pause_s, self._pause_s = self._pause_s, 0.0
        for route in self._left:
            return Try(route, pause_s, patient=self._only_one)
        if self._full is not None:
            full, self._full = self._full, None
            return Try(full, pause_s, patient=True)
        return None

    def refused(self, tried: Try, refused: Refused, *, again: bool) -> None:
        """Note that a route was not taken; once the call did begin somewhere, an obstacle may pass."""
        if refused.reason in ("full", "rate") and not tried.patient:
            self._full = self._full or tried.route
        self.may_pass |= again and refused.reason == "obstacle"

    def failed(self, outcome: Ended) -> None:
        """Note a failure after which the tool may be run."""
        match outcome:
            case Raised(TransientError() as error):
                self.may_pass = True
                self._wanted.append(error.retry_after_s or 0.0)
            case TimedOut():
                self.may_pass = True


def _refused_again(told: Outcome | None, refused: Refused) -> Outcome:
    """What is told of a call that one more route was not taken for; all that are not there are named."""
    match told:
        case None:
            return refused
        case Refused(reason="obstacle", words=words) if (
            refused.reason == "obstacle" and refused.words not in words
        ):
            return replace(told, words=f"{words}; {refused.words}")
        case _:
            return told
