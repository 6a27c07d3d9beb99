"""The asks of a while, so that the same one is run once and answered again (NET-6)."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from session_runtime.types import ErrorInfo

MOST_AT_ONCE: Final = 1_000
"""So many are forgotten in one go: there may be tens of thousands, and other asks go on."""

Who = tuple[str, str, bytes]
"""Whose ask it is and what it is called: the principal, the response topic, the correlation data."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The last message of an ask: its body, and the user properties that say what it is.

    ``seq`` is None for what ended no ask of its own. ``repeated``: the request was sent before, and may have
    run before where nobody remembers it.
    """

    kind: str
    body: bytes
    seq: int | None
    repeated: bool = False


@dataclass(slots=True)
class Entry:
    """One ask: what was sent, and its answer; None before there is one, or once it is no longer kept.

    ``ran`` says that there was one, ``refusal`` why there is none. It is ``settled`` when the answer was
    published, or could not be. ``at`` is when that was, or when it began as long as it is not.
    """

    digest: bytes
    at: float
    answer: Answer | None = None
    refusal: ErrorInfo | None = None
    ran: bool = False
    settled: bool = False
    waiting: "asyncio.Future[ErrorInfo | None] | None" = None

    async def settlement(self) -> ErrorInfo | None:
        """Wait until it is settled, or another copy waits: only the newest one does.

        Gives the refusal, if it is settled by one.
        """
        self._release(None)
        self.waiting = asyncio.get_running_loop().create_future()
        return await self.waiting

    def settle(self) -> None:
        """Its message is answered as far as it can be."""
        self.settled = True
        self._release(self.refusal)

    def _release(self, refusal: ErrorInfo | None) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(refusal)


class Window(Protocol):
    """Remembers asks; all methods are called on the event loop."""

    def find(self, who: Who) -> Entry | None:
        """The ask of that name, if it is remembered."""

    def begin(self, who: Who, digest: bytes) -> Entry | None:
        """Remember a new ask; None if there is no room before others are old enough to be forgotten."""

    def finish(self, entry: Entry, answer: Answer) -> None:
        """Keep its answer, instead of the one that was kept before."""

    def end(self, who: Who) -> None:
        """Its message is answered as far as it can be: remember it from now on, unless it did not run."""


class MemoryWindow:
    """Remembers ``most`` asks for ``keep_s`` seconds from their end on, and the newest answers.

    Those have ``most_bytes`` together. An ask is remembered longer than its answer if need be: a signed one
    that could be forgotten could be sent again.
    """

    def __init__(
        self,
        keep_s: float,
        clock: Callable[[], float],
        *,
        most: int,
        most_bytes: int,
    ) -> None:
        self._keep_s = keep_s
        self._clock = clock
        self._most = most
        self._most_bytes = most_bytes
        self._entries: OrderedDict[Who, Entry] = OrderedDict()
        self._answered: OrderedDict[int, Entry] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, who: Who) -> Entry | None:
        """See ``Window``; one that is too old is not found."""
        self._forget_old()
        return self._entries.get(who)

    def begin(self, who: Who, digest: bytes) -> Entry | None:
        """See ``Window``."""
        self._forget_old()
        if len(self._entries) >= self._most:
            return None
        entry = self._entries[who] = Entry(digest, self._clock())
        return entry

    def finish(self, entry: Entry, answer: Answer) -> None:
        """See ``Window``."""
        self._drop_answer(entry)
        entry.answer, entry.ran = answer, True
        self._answered[id(entry)] = entry
        self._bytes += len(answer.body)
        while self._bytes > self._most_bytes:
            _, oldest = self._answered.popitem(last=False)
            self._drop_answer(oldest)

    def end(self, who: Who) -> None:
        """See ``Window``."""
        entry = self._entries[who]
        if entry.ran:
            entry.at = self._clock()
            self._entries.move_to_end(who)
        else:
            del self._entries[who]
        entry.settle()

    def _forget_old(self) -> None:
        """Asks are in the order of ``at``; one that still runs is never forgotten."""
        before = self._clock() - self._keep_s
        for who, entry in list(islice(self._settled(before), MOST_AT_ONCE)):
            del self._entries[who]
            if self._answered.pop(id(entry), None) is not None:
                self._drop_answer(entry)

    def _settled(self, before: float) -> Iterator[tuple[Who, Entry]]:
        for who, entry in self._entries.items():
            if entry.at >= before:
                return
            if entry.settled:
                yield who, entry

    def _drop_answer(self, entry: Entry) -> None:
        if entry.answer is not None:
            self._bytes -= len(entry.answer.body)
            entry.answer = None
