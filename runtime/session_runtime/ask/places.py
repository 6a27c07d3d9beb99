"""The one owner of places to run in: which ask has one, which wait, and who is next (ASK-13, NET-5).

How many there are is decided by the configuration, what an ask does with its place by ``service``.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypeVar

from session_runtime.ask.lengths import chars_of_request
from session_runtime.errors import BusyError
from session_runtime.types import AskRequest, Identity, Principal

MOST_WAITING_CHARS: Final = 64 * 1024 * 1024
"""How long the requests of all that wait may be together."""

_NOBODY: Final = Principal("")


@dataclass(frozen=True)  # no slots: it keeps what it has measured
class Claim:
    """Who wants to run an ask: users share the places of their principal.

    ``conversation`` is None if the ask may run beside any other, ``own`` the most that its principal
    may have at once and ``of_user`` the most that its user may, None for no bound of their own.
    ``measured`` is how long its request is, if that is known.
    """

    ask_id: str
    principal: str
    user: str | None = None
    conversation: str | None = None
    own: int | None = None
    of_user: int | None = None
    request: AskRequest | None = None
    measured: int | None = None

    @cached_property
    def chars(self) -> int:
        """How long its request is; 0 for one with values of wrong types, which is refused when it runs."""
        if self.measured is not None:
            return self.measured
        try:
            return 0 if self.request is None else chars_of_request(self.request)
        except (TypeError, AttributeError):
            return 0

    @property
    def whose(self) -> tuple[str, str | None]:
        """The user together with the principal."""
        return self.principal, self.user

    @property
    def talk(self) -> tuple[str, str | None, str | None]:
        """The conversation together with whose it is."""
        return self.principal, self.user, self.conversation


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many asks may run, and how many may wait for that: of one principal, and in all."""

    running: int
    waiting: int
    waiting_in_all: int


@dataclass(slots=True)
class _Waiting:
    """A claim that waits; it goes on when it has its place, or was dismissed."""

    claim: Claim
    go_on: asyncio.Future[None]
    chars: int


class Places:
    """Places of asks, on the event loop only.

    An ask waits if its conversation is busy or its principal or user has as many asks as it may; where
    the daemon itself is full it is refused. Places that become free go round the principals that wait, and
    within each round its users, each of whom is served in order. ``bounds`` gives those in force.
    """

    def __init__(self, bounds: Callable[[], Bounds]) -> None:
        self._bounds = bounds
        self._running: dict[str, Claim] = {}
        self._of_principal: Counter[str] = Counter()
        self._of_user: Counter[tuple[str, str | None]] = Counter()
        self._talking: set[tuple[str, str | None, str | None]] = set()
        self._waiting: dict[str, dict[str | None, dict[str, _Waiting]]] = {}
        self._queued: Counter[str] = Counter()
        self._chars: Counter[str] = Counter()  # of the requests that wait, by principal

    @property
    def waiting(self) -> int:
        """How many asks wait."""
        return self._queued.total()

    async def enter(self, claim: Claim) -> bool:
        """Get a place, which ``leave`` gives back, or be dismissed; tells whether that took a wait.

        Raises BusyError at once if there is no room to run or to wait. One that is cancelled has no place.
        """
        self.check(claim)
        if self._is_free(claim):
            self._take(claim)
            return False
        waiting = _Waiting(claim, asyncio.get_running_loop().create_future(), claim.chars)
        self._asks_of(claim)[claim.ask_id] = waiting
        self._queued[claim.principal] += 1
        self._chars[claim.principal] += waiting.chars
        try:
            await waiting.go_on
        except asyncio.CancelledError:
            self._drop(claim)
            self.leave(claim.ask_id)  # it may have had its place before it could know
            raise
        return True

    def check(self, claim: Claim) -> None:
        """Raise BusyError if there is no room to run or to wait."""
        if self._is_free(claim):
            self._check_capacity()
        else:
            self._check_queue(claim)

    def leave(self, ask_id: str) -> None:
        """Give back a place, if the ask has one, and let in who waited for it."""
        claim = self._running.pop(ask_id, None)
        if claim is None:
            return
        _count_down(self._of_principal, claim.principal)
        _count_down(self._of_user, claim.whose)
        self._talking.discard(claim.talk)
        self._let_in()

    def review(self, anew: Callable[[Claim], Claim]) -> None:
        """Let in who may run by other limits: ``anew`` gives a claim with those that are in force now."""
        for each in self._each():
            now = anew(each.claim)
            each.claim = replace(each.claim, own=now.own, of_user=now.of_user)
        self._let_in()

    def dismiss(self, ask_id: str) -> None:
        """Let an ask wait no longer, if it does; it gets no place."""
        found = next((each for each in self._each() if each.claim.ask_id == ask_id), None)
        if found is not None:
            self._drop(found.claim)
            found.go_on.set_result(None)

    def of_talk(self, claim: Claim) -> tuple[str, ...]:
        """The asks of the same conversation, waiting and running."""
        waiting = (each.claim for each in self._each())
        everybody = (*waiting, *self._running.values())
        return tuple(each.ask_id for each in everybody if each.talk == claim.talk)

    def _is_free(self, claim: Claim) -> bool:
        if claim.conversation is not None and claim.talk in self._talking:
            return False
        if claim.of_user is not None and self._of_user[claim.whose] >= claim.of_user:
            return False
        return claim.own is None or self._of_principal[claim.principal] < claim.own

    def _take(self, claim: Claim) -> None:
        self._running[claim.ask_id] = claim
        self._of_principal[claim.principal] += 1
        self._of_user[claim.whose] += 1
        if claim.conversation is not None:
            self._talking.add(claim.talk)

    def _check_capacity(self) -> None:
        most = self._bounds().running
        if len(self._running) >= most:
            raise BusyError(
                f"{most} asks are running, the most that runtime.max_concurrent_asks allows",
                code="busy.capacity",
            )

    def _check_queue(self, claim: Claim) -> None:
        """Keep room for others: one may let as many asks wait as there are places left to wait in.

        A principal does so among all of them, and a user among those of its principal.
        """
        bounds, queued = self._bounds(), self._queued[claim.principal]
        if queued >= bounds.waiting_in_all - self.waiting:
            raise BusyError(
                f"{self.waiting} asks wait for their turn, {queued} of them of {claim.principal!r};"
                f" {bounds.waiting_in_all} may in all (runtime.max_waiting_asks_in_all)",
                code="busy.waiting",
            )
        held = self._chars[claim.principal]
        if queued and held + claim.chars > MOST_WAITING_CHARS - self._chars.total():
            raise BusyError(
                f"{queued} asks of {claim.principal!r} wait for their turn, of {held} characters; all that"
                f" wait may have {MOST_WAITING_CHARS} together",
                code="busy.waiting",
            )
        own = len(self._waiting.get(claim.principal, {}).get(claim.user, ()))
        if own >= bounds.waiting - queued:
            raise BusyError(
                f"{queued} asks of {claim.principal!r} wait for their turn, {own} of them of this"
                f" user; {bounds.waiting} may in all (runtime.max_waiting_asks)",
                code="busy.queue",
            )

    def _let_in(self) -> None:
        while len(self._running) < self._bounds().running:
            chosen = next((each for each in self._each() if self._is_free(each.claim)), None)
            if chosen is None:
                return
            claim = chosen.claim
            self._drop(claim)
            self._go_last(claim)
            self._take(claim)
            chosen.go_on.set_result(None)

    def _asks_of(self, claim: Claim) -> dict[str, _Waiting]:
        """Those of the same user that wait, whose turn comes before that of users who have a place by now.

        So an ask that was let in at once counts in the round, and nobody who has no place is passed over.
        """
        users = self._waiting.setdefault(claim.principal, {})
        if claim.user in users:
            return users[claim.user]
        names = [*users]
        while names and self._of_user[claim.whose] == 0 < self._of_user[claim.principal, names[-1]]:
            names.pop()
        later = {name: users.pop(name) for name in [*users][len(names) :]}
        users |= {claim.user: {}, **later}
        return users[claim.user]

    def _go_last(self, claim: Claim) -> None:
        """Put the principal and the user who have just been served behind all others."""
        users = self._waiting.pop(claim.principal, None)
        if users is None:
            return
        if (asks := users.pop(claim.user, None)) is not None:
            users[claim.user] = asks
        self._waiting[claim.principal] = users

    def _each(self) -> Iterator[_Waiting]:
        """Those who wait, but for who was cancelled and does not know it yet."""
        for users in self._waiting.values():
            for asks in users.values():
                yield from (each for each in asks.values() if not each.go_on.done())

    def _drop(self, claim: Claim) -> None:
        users = self._waiting.get(claim.principal, {})
        asks = users.get(claim.user, {})
        if (dropped := asks.pop(claim.ask_id, None)) is not None:
            _count_down(self._queued, claim.principal)
            self._chars[claim.principal] -= dropped.chars
            if not self._chars[claim.principal]:
                del self._chars[claim.principal]
        if not asks:
            users.pop(claim.user, None)
        if not users:
            self._waiting.pop(claim.principal, None)


T = TypeVar("T")


def _count_down(counter: Counter[T], which: T) -> None:
    """Count one less, and keep nothing of who has none."""
    counter[which] -= 1
    if not counter[which]:
        del counter[which]


Serial = Literal["queue", "cancel_previous", "parallel"]


def claim_of(
    ask_id: str,
    request: AskRequest,
    mode: Serial,
    own: int | None,
    of_user: int | None,
    chars: int | None,
) -> Claim:
    """What a request claims; one with values of wrong types ends by itself as soon as it runs."""
    principal = principal_of(request)
    talk = None if mode == "parallel" else _text(request.conversation)
    most = own if principal.max_concurrent_asks is None else principal.max_concurrent_asks
    return Claim(ask_id, principal.name, user_of(request), talk, most, of_user, request, chars)


def principal_of(request: AskRequest) -> Principal:
    """Who asks; nobody in particular if that is no principal."""
    return request.principal if isinstance(request.principal, Principal) else _NOBODY


def user_of(request: AskRequest) -> str | None:
    """Whom an ask is for: the user that the request states, otherwise the principal's own."""
    stated = _text(request.identity.user) if isinstance(request.identity, Identity) else None
    if stated is not None or not isinstance(request.principal, Principal):
        return stated
    own = request.principal.identity
    return None if own is None else own.user


def deadline_of(request: AskRequest) -> float:
    """In how many seconds a request has to be done, as far as it says so."""
    value = request.deadline_s
    return value if isinstance(value, int | float) and value > 0 else float("inf")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
