"""Which ended asks make room for others, and what is remembered of those that did.

What an ask is, and for how long it is kept, is ``kept_asks``'.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

MOST_GONE: Final = 16_384
"""So many asks whose results are gone are remembered, which takes some megabytes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An ask that has ended: whose it is, how much of it is kept in characters, and until when."""

    principal: str
    chars: int
    expires: float


class Shelf:
    """The ended asks by id, the oldest first."""

    def __init__(self) -> None:
        self._ended: dict[str, Ended] = {}
        self._of: dict[str, dict[str, Ended]] = {}
        self._chars: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._ended)

    @property
    def chars(self) -> int:
        """How much is kept of all, in characters."""
        return self._chars.total()

    def put(self, ask_id: str, ended: Ended) -> None:
        """Add one that has just ended."""
        self._ended[ask_id] = ended
        self._of.setdefault(ended.principal, {})[ask_id] = ended
        self._chars[ended.principal] += ended.chars

    def drop(self, ask_id: str) -> Ended:
        """Take one away that is there."""
        ended = self._ended.pop(ask_id)
        own = self._of[ended.principal]
        del own[ask_id]
        self._chars[ended.principal] -= ended.chars
        if not own:
            del self._of[ended.principal], self._chars[ended.principal]
        return ended

    def expired(self, now: float) -> str | None:
        """The oldest one if its time is up."""
        for ask_id, ended in self._ended.items():
            return ask_id if ended.expires <= now else None
        return None

    def first_to_go(self, most: int, most_chars: int) -> str | None:
        """Who makes room next, None if there is enough.

        Of too many it is the oldest of the principal that has the most. Where characters are too many,
        the principal that holds the most of them makes room, by the oldest of its asks that frees some:
        one that is at least half as long as its asks are on average. So short ones stay while a long one
        goes, and asks of about one length go in the order in which they ended.
        """
        if len(self._ended) > most:
            most_of = max(self._of, key=lambda principal: len(self._of[principal]))
            return next(iter(self._of[most_of]))
        if self.chars <= most_chars:
            return None
        [(principal, chars)] = self._chars.most_common(1)
        own = self._of[principal]
        return next(ask_id for ask_id, each in own.items() if each.chars * 2 * len(own) >= chars)


@dataclass(frozen=True, slots=True)
class Gone:
    """An ask that ran and whose result made room: whose it is, and what its key stood for.

    ``ended`` is in seconds since 1970, ``expires`` on the clock of whoever asks.
    """

    ask_id: str
    principal: str
    key: str | None
    digest: bytes
    ended: float
    expires: float


class GoneAsks:
    """At most ``most`` asks whose results are gone; the oldest of the principal with the most make room."""

    def __init__(self, most: int = MOST_GONE) -> None:
        self._most = most
        self._asks: dict[str, Gone] = {}
        self._by_key: dict[tuple[str, str], Gone] = {}
        self._of: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._asks)

    def add(self, gone: Gone) -> str | None:
        """Remember one; gives the id of the one that made room for it."""
        self._asks[gone.ask_id] = gone
        self._of.setdefault(gone.principal, {})[gone.ask_id] = None
        if gone.key is not None:
            self._by_key[gone.principal, gone.key] = gone
        if len(self._asks) <= self._most:
            return None
        most_of = max(self._of, key=lambda principal: len(self._of[principal]))
        oldest = next(iter(self._of[most_of]))
        self.drop(oldest)
        return oldest

    def find(self, ask_id: str, now: float) -> Gone | None:
        """The one of that id, if its time is not up."""
        return _in_time(self._asks.get(ask_id), now)

    def of_key(self, principal: str, key: str, now: float) -> Gone | None:
        """The one that the principal asked with this key, if its time is not up."""
        return _in_time(self._by_key.get((principal, key)), now)

    def drop(self, ask_id: str) -> None:
        """Forget one that is there."""
        gone = self._asks.pop(ask_id)
        own = self._of[gone.principal]
        del own[ask_id]
        if not own:
            del self._of[gone.principal]
        if gone.key is not None and self._by_key.get((gone.principal, gone.key)) is gone:
            del self._by_key[gone.principal, gone.key]


def _in_time(gone: Gone | None, now: float) -> Gone | None:
    return gone if gone is not None and gone.expires > now else None
