"""Room for results: how many are waited for, how long they are together, how many are sent at once.

Everybody has a share of it: a receiver that is slow, or a principal that asks much, leaves room for others.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakValueDictionary

from session_runtime.errors import BusyError

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Most:
    """How many results may be waited for, how many bytes on their way, and how many sent at once.

    ``*_of_one`` are the shares of a callback, and of results also that of a principal.
    """

    results: int = 2_048
    results_of_one: int = 512
    bytes: int = 64 * 1024 * 1024
    bytes_of_one: int = 16 * 1024 * 1024
    at_once: int = 64
    at_once_of_one: int = 8


class Shares:
    """Counts what is under way; the event loop's alone."""

    def __init__(self, most: Most) -> None:
        self._most = most
        self._results: Counter[tuple[str, str]] = Counter()
        self._bytes: Counter[str] = Counter()
        self._at_once = asyncio.Semaphore(most.at_once)
        self._at_one: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def check(self, name: str, principal: str, wait_s: float) -> None:
        """Raise BusyError (``busy.callbacks``), which names ``wait_s``, if there is no room for another."""
        most = self._most
        why = ""
        if self._results["callback", name] >= most.results_of_one:
            why = f"{most.results_of_one} results are waited for or on their way to {name!r}"
        elif self._results["principal", principal] >= most.results_of_one:
            why = f"{most.results_of_one} results of {principal!r} are waited for or on their way"
        elif self._results["all", ""] >= most.results:
            why = f"{most.results} results are waited for or on their way"
        elif self._bytes[name] >= most.bytes_of_one:
            why = f"results of {most.bytes_of_one} bytes are on their way to {name!r}"
        elif self._bytes.total() >= most.bytes:
            why = f"results of {most.bytes} bytes are on their way"
        if why:
            raise BusyError(
                f"{why}, the most there may be", code="busy.callbacks", retry_after_s=wait_s
            )

    @contextmanager
    def expecting(self, name: str, principal: str) -> Iterator[None]:
        """Count a result as one that is waited for."""
        counted = (("callback", name), ("principal", principal), ("all", ""))
        self._results.update(counted)
        try:
            yield
        finally:
            _take_off(self._results, dict.fromkeys(counted, 1))

    @contextmanager
    def carrying(self, name: str, size: int) -> Iterator[str]:
        """Count bytes that are on their way; gives why there is no room for them, empty if there is."""
        mine, all_ = self._bytes[name], self._bytes.total()
        if mine and mine + size > self._most.bytes_of_one:
            yield f"results of {self._most.bytes_of_one} bytes are on their way there already"
        elif all_ and all_ + size > self._most.bytes:
            yield f"results of {self._most.bytes} bytes are on their way already"
        else:
            self._bytes[name] += size
            try:
                yield ""
            finally:
                _take_off(self._bytes, {name: size})

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait until one more may be sent to the callback, which holds up no other."""
        own = self._at_one.get(name)
        if own is None:
            own = self._at_one[name] = asyncio.Semaphore(self._most.at_once_of_one)
        async with own, self._at_once:
            yield


def _take_off(counts: Counter[Key], less: dict[Key, int]) -> None:
    """Subtract, and keep no zeros: names come and go."""
    for key, number in less.items():
        counts[key] -= number
        if not counts[key]:
            del counts[key]
