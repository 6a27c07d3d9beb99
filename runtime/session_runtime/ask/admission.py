"""The one owner of what principals and their users have used of their rates and budgets (NET-5).

Whether there is a place to run in is decided in ``places``; what the limits are, by the configuration.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from session_runtime.errors import BusyError
from session_runtime.limits import Limits

MINUTE_S: Final = 60.0
DAY_S: Final = 86_400.0
MOST_PRINCIPALS: Final = 1_024
MOST_BYTES: Final = 16 * 1024 * 1024
USER_BYTES: Final = 384
"""What a remembered user takes; all take the same, as of a name a digest is kept."""

_NEARLY: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Who:
    """Whom an ask is counted for: a principal, and the user that it acts for, None for its own."""

    principal: str
    user: str | None


@dataclass(slots=True)
class _Used:
    """How full two buckets are that leak all the time: of asks, and of tokens; as they were ``at``.

    ``per_minute`` and ``per_day`` are the limits at that time.
    """

    at: float
    asks: float = 0.0
    tokens: float = 0.0
    per_minute: int | None = None
    per_day: int | None = None

    def leak(self, now: float, per_minute: int | None, per_day: int | None) -> None:
        passed, self.at = now - self.at, now
        if (self.per_minute, self.per_day) != (per_minute, per_day):
            self.asks = _rescaled(self.asks, self.per_minute, per_minute)
            self.tokens = _rescaled(self.tokens, self.per_day, per_day)
            self.per_minute, self.per_day = per_minute, per_day
        self.asks = _left(self.asks, passed, per_minute, MINUTE_S)
        self.tokens = _left(self.tokens, passed, per_day, DAY_S)


@dataclass(slots=True)
class _Account:
    """What one principal has used, by itself and by user; the users least lately heard of first."""

    own: _Used
    users: OrderedDict[bytes, _Used] = field(default_factory=OrderedDict)


class Admission:
    """Lets asks in that are within the rates and budgets of their principal and user; in memory only.

    Both are buckets that leak evenly: so many at once, and then as many as leak out. ``clock`` gives
    seconds. As many users are remembered as ``most_users``; where there are more, the principal that has
    the most forgets the one that it has not heard of for longest. Used on the event loop only.
    """

    def __init__(
        self, clock: Callable[[], float], most_users: int = MOST_BYTES // USER_BYTES
    ) -> None:
        self._clock = clock
        self._most_users = most_users
        self._accounts: OrderedDict[str, _Account] = OrderedDict()
        self._users = 0

    @property
    def users(self) -> int:
        """How many users are remembered."""
        return self._users

    def enter(self, who: Who, limits: Limits) -> None:
        """Count an ask; raises BusyError, and counts nothing, if it is one too many.

        The codes are ``busy.rate`` for too many asks, ``busy.budget`` for too many tokens; the error says
        when there is room again.
        """
        if limits.bounds_principal:
            own = self._account(who.principal).own
            own.leak(self._clock(), limits.asks_per_minute, limits.tokens_per_day)
            named = f"the principal {who.principal[:64]!r}"
            _check(own, named, "", limits.asks_per_minute, limits.tokens_per_day)
        if limits.bounds_user:
            user = self._user(who)
            user.leak(self._clock(), limits.user_asks_per_minute, limits.user_tokens_per_day)
            named = f"one user of {who.principal[:64]!r}"
            per_minute, per_day = limits.user_asks_per_minute, limits.user_tokens_per_day
            _check(user, named, "user_", per_minute, per_day)
            user.asks += 1
        if limits.bounds_principal:
            self._account(who.principal).own.asks += 1

    def charge(self, who: Who, limits: Limits, tokens: int) -> None:
        """Count the tokens that an ask took; they may be more than there were left."""
        now = self._clock()
        if limits.tokens_per_day is not None:
            own = self._account(who.principal).own
            own.leak(now, limits.asks_per_minute, limits.tokens_per_day)
            own.tokens += tokens
        if limits.user_tokens_per_day is not None:
            user = self._user(who)
            user.leak(now, limits.user_asks_per_minute, limits.user_tokens_per_day)
            user.tokens += tokens

    def _account(self, principal: str) -> _Account:
        account = self._accounts.get(principal)
        if account is None:
            account = self._accounts[principal] = _Account(_Used(self._clock()))
            if len(self._accounts) > MOST_PRINCIPALS:
                _, forgotten = self._accounts.popitem(last=False)
                self._users -= len(forgotten.users)
        self._accounts.move_to_end(principal)
        return account

    def _user(self, who: Who) -> _Used:
        users, key = self._account(who.principal).users, _digest(who.user)
        used = users.get(key)
        if used is None:
            used = users[key] = _Used(self._clock())
            self._users += 1
        users.move_to_end(key)
        if self._users > self._most_users:
            most = max(self._accounts.values(), key=lambda account: len(account.users))
            most.users.popitem(last=False)
            self._users -= 1
        return used


def _rescaled(level: float, before: int | None, now: int | None) -> float:
    """The level under a lower limit than before: full at most, or overdrawn for as long as it was."""
    if not before or now is None or now >= before:
        return level
    return min(level, max(now, level * now / before))


def _left(level: float, passed: float, most: int | None, period_s: float) -> float:
    """What is in a bucket after some time; nothing where there is no limit."""
    return 0.0 if most is None else max(0.0, level - passed * most / period_s)


def _check(used: _Used, who: str, prefix: str, per_minute: int | None, per_day: int | None) -> None:
    """Raise BusyError unless there is room for one more ask, and for one token at least."""
    if per_minute is not None and (over := used.asks + 1 - per_minute) > _NEARLY:
        what = f"may ask {per_minute} times per minute ({prefix}asks_per_minute)"
        raise _busy(who, what, "busy.rate", over * MINUTE_S / per_minute)
    if per_day is not None and (over := used.tokens + 1 - per_day) > _NEARLY:
        what = f"may use {per_day} tokens per day ({prefix}tokens_per_day)"
        raise _busy(who, what, "busy.budget", over * DAY_S / per_day)


def _busy(who: str, what: str, code: str, wait_s: float) -> BusyError:
    told = f"{who} {what}, and that is used up: ask again in {wait_s:.1f} s"
    return BusyError(told, code=code, retry_after_s=wait_s)


def _digest(user: str | None) -> bytes:
    if user is None:
        return b""
    return blake2b(user.encode("utf-8", "surrogatepass"), digest_size=16).digest()
