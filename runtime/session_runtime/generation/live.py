"""Which generations are in use, and the resources that they share; who uses one is not looked at."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from session_runtime.generation.state import Generation

_log = logging.getLogger(__name__)


class Closable(Protocol):
    """A resource that the pool closes when its last holder lets go."""

    async def aclose(self) -> None:
        """Release it."""


R = TypeVar("R", bound=Closable)


@dataclass(slots=True, eq=False)
class _Shared(Generic[R]):
    """A resource that is opened or open, and how many hold it or wait for it."""

    opening: asyncio.Future[R]
    holders: int = 0

    @property
    def failed(self) -> bool:
        """Whether opening it ended without a resource."""
        if not self.opening.done():
            return False
        return self.opening.cancelled() or self.opening.exception() is not None


class UsagePool(Generic[R]):
    """Resources shared between generations by key, opened once and closed by the last holder."""

    def __init__(self) -> None:
        self._held: dict[str, _Shared[R]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def acquire(self, key: str, open_it: Callable[[], Awaitable[R]]) -> R:
        """The resource of ``key``, opened if nobody holds it yet; a failure is not kept."""
        shared = self._held.get(key)
        if shared is None:
            shared = self._held[key] = _Shared(asyncio.ensure_future(open_it()))
        shared.holders += 1
        try:
            return await asyncio.shield(shared.opening)
        except BaseException:
            await self._leave(key, shared)
            raise

    async def release(self, key: str) -> None:
        """Let go once; closes the resource when nobody is left, to the end even if that is cancelled."""
        await self._leave(key, self._held[key])

    async def _leave(self, key: str, shared: _Shared[R]) -> None:
        shared.holders -= 1
        if (shared.failed or not shared.holders) and self._held.get(key) is shared:
            del self._held[key]
        if shared.holders:
            return
        closing = asyncio.create_task(_close(shared), name="close a shared resource")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)


async def _close(shared: _Shared[R]) -> None:
    await asyncio.wait({shared.opening})
    if not shared.failed:
        await shared.opening.result().aclose()


@dataclass(slots=True)
class _Live:
    """A generation that still matters: in force, or pinned by ``asks`` running asks."""

    generation: Generation
    since: float
    asks: int = 0


class Generations:
    """Which generation is in force and which older ones still have asks; the one writer of both."""

    def __init__(self, let_go: Callable[[Generation], Awaitable[None]]) -> None:
        self._let_go = let_go
        self._live: dict[int, _Live] = {}
        self._current: _Live | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._published = asyncio.Event()
        self._after: list[Callable[[], None]] = []

    def after_publish(self, call: Callable[[], None]) -> None:
        """Call this each time another generation came into force; it must not raise."""
        self._after.append(call)

    @property
    def current(self) -> Generation:
        """The generation that the next ask gets."""
        if self._current is None:
            raise RuntimeError("no generation is in force")
        return self._current.generation

    @property
    def next_number(self) -> int:
        """The number that the next committed generation has."""
        return self._current.generation.number + 1 if self._current is not None else 1

    def publish(self, prepared: Generation) -> int:
        """Number and swap: new asks get ``prepared``; the old one lives until its last ask ends."""
        old, generation = self._current, replace(prepared, number=self.next_number)
        now = asyncio.get_running_loop().time()
        self._current = self._live[generation.number] = _Live(generation, now)
        if old is not None:
            self._retire_if_idle(old)
        self._published.set()
        self._published = asyncio.Event()
        for call in self._after:
            call()
        return generation.number

    async def newer_than(self, number: int) -> Generation:
        """Wait until a generation after the one of this number is in force, and give it."""
        while self.current.number <= number:
            await self._published.wait()
        return self.current

    @contextmanager
    def pin(self) -> Iterator[Generation]:
        """Hold the generation in force for one ask, whatever is published meanwhile (REL-1)."""
        live = self._current
        if live is None:
            raise RuntimeError("no generation is in force")
        live.asks += 1
        try:
            yield live.generation
        finally:
            live.asks -= 1
            self._retire_if_idle(live)

    def report(self) -> list[dict[str, object]]:
        """Live generations, newest first, with their running asks and age in seconds."""
        now = asyncio.get_running_loop().time()
        return [
            {
                "generation": number,
                "digest": live.generation.digest,
                "asks": live.asks,
                "age_s": round(now - live.since, 3),
                "in_force": live is self._current,
            }
            for number, live in sorted(self._live.items(), reverse=True)
        ]

    async def aclose(self) -> None:
        """Let go of every generation; no ask may be running."""
        self._current = None
        for live in list(self._live.values()):
            self._retire_if_idle(live)
        while self._closing:
            await asyncio.wait(self._closing)

    def _retire_if_idle(self, live: _Live) -> None:
        if live is self._current or live.asks:
            return
        del self._live[live.generation.number]
        task = asyncio.create_task(
            self._close(live.generation), name=f"close generation {live.generation.number}"
        )
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, generation: Generation) -> None:
        await self._let_go(generation)
        _log.info("generation %d retired", generation.number)
