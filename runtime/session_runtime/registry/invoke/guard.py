"""What one route is let through: so many calls at once and in a minute, none while it keeps failing (RTE-6).

Whether a call that is refused here takes another route, or comes again, is decided in ``retry``.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from session_runtime.registry.spec import UNLIMITED, Limits
from session_runtime.types import JsonObject

MINUTE_S: Final = 60.0
MOST_CONNECTIONS: Final = 1_000
"""Of so many, the newest, it is remembered how often they failed: each edit of a secret makes one more."""

Reason = Literal["open", "full", "rate", "obstacle"]
Verdict = Literal["answered", "failed", "lost", "unknown"]
BreakerState = Literal["closed", "open", "half_open"]

_WORDS: Final[Mapping[Reason, str]] = {
    "open": "it failed several times in a row and is left alone for a while",
    "full": "as many calls are under way as it bears, and none of them ended in time",
    "rate": "as many calls have begun within a minute as may",
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A route was not taken, for a ``reason`` of the guard, or an obstacle of its own in ``words``."""

    reason: Reason
    words: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What a breaker gives to a call that it lets through; an epoch lasts until it opens or closes.

    ``losses`` is how many times connections had been lost by then.
    """

    epoch: int
    probe: bool
    losses: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Lets one attempt through; its guard gets it back, once. ``token`` is None without a rate."""

    breaker: "Breaker"
    admission: Admission
    token: float | None


@dataclass(frozen=True, slots=True)
class RouteStatistics:
    """How a route is: calls that began, those that failed by its fault, and what is so just now.

    ``breaker`` is that of the connection which was called last. ``refused`` counts by reason how often it
    was not taken.
    """

    calls: int
    failures: int
    breaker: BreakerState
    in_flight: int
    waiting: int
    refused: Mapping[str, int]

    def to_json(self) -> JsonObject:
        """Give the numbers as JSON."""
        return {
            "calls": self.calls,
            "failures": self.failures,
            "breaker": self.breaker,
            "in_flight": self.in_flight,
            "waiting": self.waiting,
            "refused": dict(self.refused),
        }


class Breaker:
    """Opens after ``limits.failures`` failures in a row; ``limits.pause_s`` later it lets one probe through.

    The probe decides whether it closes. What began before it opened or closed has no say any more. Calls
    that were under way together and whose answers were ``lost`` went down with one connection: that is one
    failure.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False
        self._epoch = 0
        self._losses = 0

    def state(self, now: float, limits: Limits) -> BreakerState:
        """Closed, open, or half open: ready for the probe, or waiting for its outcome."""
        if self._opened_at is None or limits.failures == 0:
            return "closed"
        return "open" if self._opened_at + limits.pause_s > now else "half_open"

    def blocked_s(self, now: float, limits: Limits) -> float | None:
        """In how many seconds it is worth trying again; None if a call may go through now."""
        if self._opened_at is None or limits.failures == 0:
            return None
        left_s = self._opened_at + limits.pause_s - now
        if left_s > 0:
            return left_s
        return limits.pause_s if self._probing else None

    def enter(self, limits: Limits) -> Admission:
        """Let a call through that is not blocked."""
        if limits.failures == 0 and self._opened_at is not None:
            self._close()
        self._probing = self._opened_at is not None
        return Admission(self._epoch, self._probing, self._losses)

    def leave(self, admission: Admission, verdict: Verdict, now: float, limits: Limits) -> None:
        """Take note of what became of a call; ``unknown`` if that says nothing about the route."""
        if admission.epoch != self._epoch:
            return
        if admission.probe:
            self._probing = False
        if verdict == "answered":
            self._failures = 0
            if admission.probe:
                self._close()
        elif self._is_failure(admission, verdict) and limits.failures > 0:
            self._failures += 1
            if admission.probe or self._failures >= limits.failures:
                self._open(now)

    def _is_failure(self, admission: Admission, verdict: Verdict) -> bool:
        if verdict != "lost":
            return verdict == "failed"
        if admission.losses < self._losses:
            return False
        self._losses += 1
        return True

    def _open(self, now: float) -> None:
        self._opened_at = now
        self._epoch += 1

    def _close(self) -> None:
        self._failures, self._opened_at, self._probing = 0, None, False
        self._epoch += 1


class Tokens:
    """``rate`` tokens: each call takes one, which comes back a minute later.

    So no minute, whenever it begins, sees more calls begin than that.
    """

    def __init__(self) -> None:
        self._back: deque[float] = deque()

    def free_at(self, now: float, rate: int, ahead: int = 0) -> float:
        """When a token is there for a call with ``ahead`` others in front of it, at the earliest."""
        if rate == 0:
            return now
        while self._back and self._back[0] <= now:
            self._back.popleft()
        missing = ahead + 1 + len(self._back) - rate
        if missing <= 0:
            return now
        return self._back[missing - 1] if missing <= len(self._back) else now + MINUTE_S

    def take(self, now: float, rate: int) -> float | None:
        """Take a token; give what it is to be put back by, None without a rate."""
        if rate == 0:
            return None
        self._back.append(now + MINUTE_S)
        return self._back[-1]

    def put_back(self, token: float | None) -> None:
        """Put back a token that was not used."""
        if token is not None and token in self._back:
            self._back.remove(token)


class Guard:
    """Lets calls of one route through, in the order in which they came; used on the event loop alone.

    It lives as long as the process. The limits of the newest call hold for all, those who wait too. Failures
    are counted for each connection alone.
    """

    def __init__(self) -> None:
        self._limits = UNLIMITED
        self._breakers: dict[str, Breaker] = {}
        self._newest = Breaker()
        self._tokens = Tokens()
        self._waiting: dict[asyncio.Future[Pass | Refused], Breaker] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._calls = 0
        self._failures = 0
        self._in_flight = 0
        self._refused: Counter[str] = Counter()

    @property
    def idle(self) -> bool:
        """Whether no call is under way or waiting."""
        return not self._in_flight and not self._waiting

    def statistics(self, now: float) -> RouteStatistics:
        """How the route is at ``now``, in seconds of the event loop's clock."""
        return RouteStatistics(
            self._calls,
            self._failures,
            self._newest.state(now, self._limits),
            self._in_flight,
            len(self._waiting),
            dict(self._refused),
        )

    async def enter(self, limits: Limits, until: float, reaches: str = "") -> Pass | Refused:
        """Give a pass, waiting for room until ``until``, or say at once why there will be none.

        Whoever gets a pass calls ``leave``. Where nothing is limited it does not wait at all.
        """
        self._limits = limits
        now = asyncio.get_running_loop().time()
        breaker = self._newest = self._breaker_of(reaches)
        self._let_in(now)
        blocked = self._blocked(breaker, now)
        if blocked is not None:
            return blocked
        if self._has_room(now):  # then nobody waits
            return self._begin(breaker, now)
        free_at = self._tokens.free_at(now, limits.rate_per_minute, len(self._waiting))
        if free_at > now and free_at >= until:
            return self._refuse("rate", free_at - now)
        if until <= now:
            return self._refuse("full")
        return await self._wait(breaker, now, until)

    def leave(self, entered: Pass, verdict: Verdict) -> None:
        """Take back a pass, with what became of the call."""
        now = asyncio.get_running_loop().time()
        self._in_flight -= 1
        self._failures += verdict in ("failed", "lost")
        entered.breaker.leave(entered.admission, verdict, now, self._limits)
        self._let_in(now)

    def refuse(self, words: str) -> Refused:
        """Refuse a call because of an obstacle that the route itself tells."""
        self._refused["obstacle"] += 1
        return Refused("obstacle", words)

    async def _wait(self, breaker: Breaker, now: float, until: float) -> Pass | Refused:
        waiter: asyncio.Future[Pass | Refused] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = breaker
        self._let_in(now)
        try:
            await asyncio.wait((waiter,), timeout=until - now)
        except asyncio.CancelledError:
            self._withdraw(waiter)
            raise
        if waiter.done():
            return waiter.result()
        self._withdraw(waiter)
        return self._refuse("full")

    def _withdraw(self, waiter: asyncio.Future[Pass | Refused]) -> None:
        """Leave the queue; what was given to a waiter that is gone goes to the next one."""
        now = asyncio.get_running_loop().time()
        self._waiting.pop(waiter, None)
        if waiter.done() and isinstance(entered := waiter.result(), Pass):
            self._calls -= 1
            self._in_flight -= 1
            self._tokens.put_back(entered.token)
            entered.breaker.leave(entered.admission, "unknown", now, self._limits)
        self._let_in(now)

    def _let_in(self, now: float) -> None:
        """Answer those who wait, as far as can be, and come back when the next token is there."""
        if not self._waiting and self._alarm is None:
            return
        for waiter, breaker in tuple(self._waiting.items()):
            answer: Pass | Refused | None = self._blocked(breaker, now)
            if answer is None and self._has_room(now):
                answer = self._begin(breaker, now)
            if answer is not None:
                del self._waiting[waiter]
                waiter.set_result(answer)
        self._set_alarm(now)

    def _set_alarm(self, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._waiting:
            free_at = self._tokens.free_at(now, self._limits.rate_per_minute)
            if free_at > now:
                loop = asyncio.get_running_loop()
                self._alarm = loop.call_at(free_at, lambda: self._let_in(loop.time()))

    def _has_room(self, now: float) -> bool:
        most = self._limits.max_concurrency
        if most and self._in_flight >= most:
            return False
        return self._tokens.free_at(now, self._limits.rate_per_minute) <= now

    def _begin(self, breaker: Breaker, now: float) -> Pass:
        self._calls += 1
        self._in_flight += 1
        token = self._tokens.take(now, self._limits.rate_per_minute)
        return Pass(breaker, breaker.enter(self._limits), token)

    def _breaker_of(self, reaches: str) -> Breaker:
        breaker = self._breakers.get(reaches)
        if breaker is None:
            if len(self._breakers) == MOST_CONNECTIONS:
                del self._breakers[next(iter(self._breakers))]
            breaker = self._breakers[reaches] = Breaker()
        return breaker

    def _blocked(self, breaker: Breaker, now: float) -> Refused | None:
        blocked_s = breaker.blocked_s(now, self._limits)
        return None if blocked_s is None else self._refuse("open", blocked_s)

    def _refuse(self, reason: Reason, retry_after_s: float | None = None) -> Refused:
        self._refused[reason] += 1
        return Refused(reason, _WORDS[reason], retry_after_s)
