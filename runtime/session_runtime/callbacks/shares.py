"""Room for results: how many are waited for, how long they are together, how many are sent at once.

Everybody has a share of it: a receiver that is slow, or a principal that asks much, leaves room for others.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from session_runtime.errors import BusyError

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Most:
    """How many results may be waited for, how many bytes on their way, and how many sent at once.

    ``*_of_one`` are the shares of a callback, and of results also that of a principal. ``bytes_waiting`` is
    how much may wait until those on their way make room. Half of ``at_once`` is kept for callbacks that
    nothing is being sent to.
    """

    results: int = 2_048
    results_of_one: int = 512
    bytes: int = 64 * 1024 * 1024
    bytes_of_one: int = 16 * 1024 * 1024
    bytes_waiting: int = 64 * 1024 * 1024
    at_once: int = 64
    at_once_of_one: int = 8


class Shares:
    """Counts what is under way; the event loop's alone."""

    def __init__(self, most: Most) -> None:
        self._most = most
        self._results: Counter[tuple[str, str]] = Counter()
        self._bytes_waiting = 0
        self._room = _Line(self._has_room)
        self._turns = _Line(self._has_turn)

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
        elif self._room.amounts[name] >= most.bytes_of_one:
            why = f"results of {most.bytes_of_one} bytes are on their way to {name!r}"
        elif self._room.amounts.total() >= most.bytes:
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

    @asynccontextmanager
    async def carrying(self, name: str, size: int) -> AsyncIterator[str]:
        """Count bytes as on their way, as soon as there is room for them.

        Gives why they cannot wait for that, empty if they could.
        """
        most = self._most
        if not self._room.is_free(name, size) and self._bytes_waiting + size > most.bytes_waiting:
            yield f"results of {self._bytes_waiting} bytes wait for room, and {most.bytes_waiting} may"
            return
        self._bytes_waiting += size
        waits = True
        try:
            async with self._room.held(name, size):
                self._bytes_waiting, waits = self._bytes_waiting - size, False
                yield ""
        finally:
            self._bytes_waiting -= size if waits else 0

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait until one more may be sent to the callback, which holds up no other."""
        async with self._turns.held(name, 1):
            yield

    def _has_room(self, name: str, size: int, held: Counter[str]) -> bool:
        """Whether it fits; one that is alone always does."""
        mine, all_ = held[name], held.total()
        fits_mine = not mine or mine + size <= self._most.bytes_of_one
        return fits_mine and (not all_ or all_ + size <= self._most.bytes)

    def _has_turn(self, name: str, size: int, held: Counter[str]) -> bool:
        mine, all_ = held[name], held.total()
        if mine == 0:
            return all_ < self._most.at_once
        kept = self._most.at_once // 2
        return mine < self._most.at_once_of_one and all_ + size <= self._most.at_once - kept


class _Line:
    """Those who wait until they may hold so much: of one name in order, and no name holds up another.

    ``may`` tells from the name, how much it is and what is held by now.
    """

    def __init__(self, may: Callable[[str, int, Counter[str]], bool]) -> None:
        self._may = may
        self.amounts: Counter[str] = Counter()
        self._waiting: list[_Waiter] = []

    def is_free(self, name: str, size: int) -> bool:
        """Whether it could be held at once."""
        before = any(each.name == name for each in self._waiting)
        return not before and self._may(name, size, self.amounts)

    @asynccontextmanager
    async def held(self, name: str, size: int) -> AsyncIterator[None]:
        """Hold so much within the block, as soon as that may be."""
        waiter = _Waiter(name, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._let_in()
        try:
            await waiter.go_on
            yield
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:
                _take_off(self.amounts, {name: size})
            self._let_in()

    def _let_in(self) -> None:
        blocked: set[str] = set()
        for each in tuple(self._waiting):
            if each.name in blocked or not self._may(each.name, each.size, self.amounts):
                blocked.add(each.name)
                continue
            self._waiting.remove(each)
            self.amounts[each.name] += each.size
            if not each.go_on.done():
                each.go_on.set_result(None)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    name: str
    size: int
    go_on: asyncio.Future[None]


def _take_off(counts: Counter[Key], less: dict[Key, int]) -> None:
    """Subtract, and keep no zeros: names come and go."""
    for key, number in less.items():
        counts[key] -= number
        if not counts[key]:
            del counts[key]
