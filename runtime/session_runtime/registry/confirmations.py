"""The one writer of calls that wait for a person's consent, and of the tokens that give it (RTE-9).

What happens to a call that was confirmed is decided in ``ask``, that none runs without in ``invoke/consent``.
"""

import hashlib
import hmac
import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.types import Identity, ToolCall

MOST: Final = 4_096
MOST_OF_ONE: Final = 128
MOST_CHARS: Final = 64 * 1024 * 1024
MOST_CHARS_OF_ONE: Final = 8 * 1024 * 1024
REMEMBERED_S: Final = 600.0
"""How long after it expired it is still told of a token that it expired or was used."""

_PREFIX: Final = "confirm"
_NAME_BYTES: Final = 8
_SECRET_BYTES: Final = 32
_UNKNOWN: Final = (
    "is not known here: a token holds for the caller, identity and conversation that it was given to, and"
    " until the daemon is restarted. Ask again without it"
)
_EXPIRED: Final = "has expired: ask again without it, and the call can be confirmed anew"
_USED: Final = "was used before, and counts once: ask again without it"
_BOTH: Final = "is given under confirmations too: decide for one of them"

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked, and the only one who can confirm: principal, identity as stated, and conversation."""

    principal: str
    identity: Identity
    conversation: str | None = None

    @property
    def owner(self) -> tuple[str, str | None]:
        """Who shares the room for waiting calls: all asks of a user of one principal."""
        return self.principal, self.identity.user

    def digest(self) -> bytes:
        """A hash of everything that has to be the same."""
        who = self.identity
        roles = None if who.roles is None else sorted(who.roles)
        values = [self.principal, who.user, roles, who.channel, who.group, self.conversation]
        return hashlib.sha256(json.dumps(values).encode()).digest()


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call as it is to run, if a person agrees: of which ask, and of which ``form`` of the tool.

    ``call.arguments`` is JSON; ``digest`` is the same for calls of the same form of the same tool with the
    same arguments, ``chars`` what it all takes in memory.
    """

    ask_id: str
    call: ToolCall
    form: str
    digest: bytes
    chars: int


@dataclass(frozen=True, slots=True)
class Answered:
    """What a person said about a call; it holds until ``expires`` on the clock of ``Confirmations``."""

    waiting: WaitingCall
    agreed: bool
    expires: float


@dataclass(frozen=True, slots=True)
class _Entry:
    """A token that was given out; ``waiting`` is None once it was used."""

    secret_digest: bytes
    owner: tuple[str, str | None]
    asker_digest: bytes
    expires: float
    waiting: WaitingCall | None

    @property
    def chars(self) -> int:
        return 0 if self.waiting is None else self.waiting.chars


class Confirmations:
    """Waiting calls by token, in memory only; the event loop's alone.

    They outlive generations, not the process. A token is random and kept as a hash. Where there are too
    many, the oldest of the same owner goes first, then the oldest of the principal that has the most.
    ``clock`` decides when a token expires, ``today`` is what people are told, in seconds since 1970.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._today = today
        self._entries: dict[str, _Entry] = {}  # by the public part of the token, the oldest first

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, asker: Asker, waiting: WaitingCall, ttl_s: float) -> tuple[str, float]:
        """Let a call wait for ``ttl_s`` seconds; gives the token, and when it expires."""
        self._forget_old()
        self._make_room(asker.owner, waiting.chars)
        name, secret = secrets.token_hex(_NAME_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        expires = self._clock() + ttl_s
        self._entries[name] = _Entry(_digest(secret), asker.owner, asker.digest(), expires, waiting)
        _log.info("%s of %s waits for consent", waiting.call.name, waiting.ask_id)
        return f"{_PREFIX}_{name}_{secret}", self._today() + ttl_s

    def claim(
        self, asker: Asker, confirmed: Sequence[str], declined: Sequence[str] = ()
    ) -> tuple[Answered, ...]:
        """Use up tokens, all of them or none, and give what they stand for, in the order of asking.

        Raises RequestError (``confirmation.invalid``) that says of each what is wrong with it. One that
        somebody else was given is as unknown as one that never was.
        """
        self._forget_old()
        found: dict[str, Answered] = {}
        problems: list[str] = []
        for field, tokens in (("confirmations", confirmed), ("declined", declined)):
            for at, token in enumerate(tokens):
                if problem := self._find(asker, token, field == "confirmations", found):
                    problems.append(f"{field}[{at}] {problem}")
        if problems:
            raise RequestError(f"{'; '.join(problems)}.", code="confirmation.invalid")
        for name, answered in found.items():
            self._entries[name] = replace(self._entries[name], waiting=None)
            said = "confirmed" if answered.agreed else "declined"
            waiting = answered.waiting
            _log.info("%s of %s is %s", waiting.call.name, waiting.ask_id, said)
        return tuple(found[name] for name in self._entries if name in found)

    def holds(self, answered: Answered) -> bool:
        """Whether what a person said has not expired yet."""
        return self._clock() < answered.expires

    def _find(
        self, asker: Asker, token: str, agreed: bool, found: dict[str, Answered]
    ) -> str | None:
        """Add what a token stands for to ``found``, or say what is wrong with it."""
        name, entry = self._entry(token)
        if entry is None or not hmac.compare_digest(entry.asker_digest, asker.digest()):
            return _UNKNOWN
        if entry.waiting is None:
            return _USED
        if self._clock() >= entry.expires:
            return _EXPIRED
        answered = Answered(entry.waiting, agreed, entry.expires)
        return None if found.setdefault(name, answered).agreed is agreed else _BOTH

    def _entry(self, token: str) -> tuple[str, _Entry | None]:
        prefix, _, rest = token.partition("_")
        name, _, secret = rest.partition("_")
        entry = self._entries.get(name)
        if entry is None or prefix != _PREFIX:
            return name, None
        genuine = hmac.compare_digest(entry.secret_digest, _digest(secret))
        return name, entry if genuine else None

    def _forget_old(self) -> None:
        old = self._clock() - REMEMBERED_S
        for name in [name for name, entry in self._entries.items() if entry.expires <= old]:
            del self._entries[name]

    def _make_room(self, owner: tuple[str, str | None], chars: int) -> None:
        """Drop entries until one more of the owner, of so many characters, is not too much."""
        while not self._fits(owner, chars):
            del self._entries[self._first_to_go(owner)]

    def _fits(self, owner: tuple[str, str | None], chars: int) -> bool:
        everybodys = list(self._entries.values())
        own = [entry for entry in everybodys if entry.owner == owner]
        return (
            len(own) < MOST_OF_ONE
            and len(everybodys) < MOST
            and _chars(own) + chars <= MOST_CHARS_OF_ONE
            and _chars(everybodys) + chars <= MOST_CHARS
        )

    def _first_to_go(self, owner: tuple[str, str | None]) -> str:
        own = (name for name, entry in self._entries.items() if entry.owner == owner)
        if (oldest := next(own, None)) is not None:
            return oldest
        [(most, _)] = Counter(entry.owner[0] for entry in self._entries.values()).most_common(1)
        return next(name for name, entry in self._entries.items() if entry.owner[0] == most)


def _chars(entries: Iterable[_Entry]) -> int:
    return sum(entry.chars for entry in entries)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
