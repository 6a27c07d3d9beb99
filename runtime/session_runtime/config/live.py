"""Puts configurations into force: read, prepare the whole next one, swap, or leave no trace (REL-1).

Every attempt leaves a receipt (REL-3). When to make one is decided by ``watch``, signals and doors.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal, Protocol, TypeVar

from session_runtime.config.attempt import Attempt, Touched, both, problems_of
from session_runtime.config.changes import Change, changes
from session_runtime.config.history import Kept
from session_runtime.config.load import ConfigSnapshot
from session_runtime.config.receipt import Receipt, Receipts, Trigger, Verdict
from session_runtime.config.restart import held_back
from session_runtime.errors import Problem
from session_runtime.threads import in_thread
from session_runtime.types import nothing

_log: Final = logging.getLogger(__name__)

Acted = Callable[[ConfigSnapshot, Receipt], asyncio.Future[Kept | None] | None]
Purpose = Literal["reload", "trial", "refresh"]
"""A ``trial`` is never committed: no command is started for it and no server connected to. A ``refresh``
is for what changes by itself: of the configuration and what it names nothing is read again."""


class Prepared(Protocol):
    """Everything the next generation needs, not in force yet; exactly one of the two is called."""

    def commit(self) -> int:
        """Put it into force and give its number; cannot fail and does not block."""

    async def abort(self) -> None:
        """Release what preparation opened."""

    @property
    def news(self) -> "News":
        """How it differs from what is in force."""


@dataclass(frozen=True, slots=True)
class News:
    """How a prepared generation differs from the one in force.

    ``same``: not at all, in anything that an ask could notice. ``digest`` covers configuration and
    tools. ``tools`` are canonical names by kind, as in ``Receipt``; ``warnings`` are for operators.
    """

    digest: str
    same: bool = False
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=nothing)
    warnings: tuple[Problem, ...] = ()


P = TypeVar("P", bound=Prepared, covariant=True)


Look = Callable[[Prepared], Awaitable[None]]


class Builder(Protocol[P]):
    """Builds from a snapshot; ``prepare`` raises ConfigError and leaves nothing open when it does."""

    async def prepare(
        self,
        snapshot: ConfigSnapshot,
        touched: Touched = None,
        purpose: Purpose = "reload",
        hurry: asyncio.Event | None = None,
    ) -> P:
        """Open and check everything that the snapshot asks for.

        Below the folders of tools only ``touched`` paths can differ from what is in force; None: any. Once
        ``hurry`` is set it waits no longer for what can join later.
        """


class Reader(Protocol):
    """Reads the configuration from all its sources; blocks, and raises ConfigError."""

    def __call__(self, text: bytes | None = None, *, must_exist: bool = False) -> ConfigSnapshot:
        """``text`` stands in for the file's content; a file that ``must_exist`` may not be absent."""


@dataclass(frozen=True, slots=True)
class _InForce:
    """What is in force, and what was edited but waits for a restart."""

    snapshot: ConfigSnapshot
    digest: str
    generation: int
    waiting: tuple[Change, ...] = ()


class LiveConfig:
    """The one that changes what is in force, one attempt after the other.

    ``acted`` is called with each snapshot that comes into force, for what acts at once, and its
    receipt, to keep what worked: it gives the number of the entry to come, if it is kept. ``told`` is
    called with every receipt. Neither may raise.
    """

    def __init__(
        self,
        read: Reader,
        builder: Builder[Prepared],
        acted: Acted = lambda *_: None,
        told: Callable[[Receipt], None] = lambda _: None,
    ) -> None:
        self._read = read
        self._builder = builder
        self._acted = acted
        self._tell = told
        self._in_turn = asyncio.Lock()
        self._next: asyncio.Task[Receipt] | None = None
        self._refresh: asyncio.Task[Receipt] | None = None
        self._under_way: set[asyncio.Task[Receipt]] = set()
        self._hurry = asyncio.Event()
        self._now_in_force: _InForce | None = None
        self._touched: Touched = frozenset()
        self._unread: Touched = frozenset()
        self._reads_unread = False
        self._settling = 0
        self._attempts = 0
        self._rejected: Receipt | None = None
        self._rejected_since: float | None = None
        self.receipts = Receipts()

    @property
    def snapshot(self) -> ConfigSnapshot:
        """The configuration in force."""
        return self._in_force.snapshot

    @property
    def waiting(self) -> tuple[Change, ...]:
        """Keys that were edited and act after a restart, with the value in force and the new one."""
        return self._in_force.waiting

    @property
    def rejected_since(self) -> float | None:
        """Since when the sources say what cannot be used, in seconds since 1970; None: they can."""
        return self._rejected_since

    @property
    def rejected(self) -> Receipt | None:
        """The last attempt that read the sources, if it was rejected."""
        return self._rejected

    async def start(self, snapshot: ConfigSnapshot) -> Receipt:
        """Put the first configuration into force; raises ConfigError with nothing left open."""
        attempt = self._begin("start")
        prepared = await self._builder.prepare(snapshot)
        return self._commit(attempt, snapshot, prepared, ())

    async def reload(self, trigger: Trigger, touched: Touched = None) -> Receipt:
        """Read everything again and put it into force if it is good and differs (REL-2).

        Whoever knows it tells the paths below folders of tools that were ``touched`` since the last
        call. All who call this while an attempt runs share the one that follows, so that what was
        written before the call is read.
        """
        self._touched = both(self._touched, touched)
        self._reads_unread = True
        return await self._reload_next(trigger)

    async def reload_file(self, trigger: Trigger) -> Receipt:
        """Reload without reading folders of tools, whatever happened there; else as ``reload`` (NET-3)."""
        return await self._reload_next(trigger)

    async def settle(self) -> None:
        """Wait for the attempts under way; they wait no longer for what can join later."""
        self._settling += 1
        self._hurry.set()
        try:
            if self._under_way:
                await asyncio.wait(tuple(self._under_way))
        finally:
            self._settling -= 1

    async def refresh(self, trigger: Trigger) -> Receipt:
        """Build anew from the configuration in force, without reading anything (RTE-4).

        It is for what changes by itself, such as the lists of servers, and goes on while the sources say
        what cannot be used. All who call this while an attempt runs share the one that follows.
        """
        if self._refresh is None:
            self._refresh = self._begin_task(self._refresh_in_its_turn(trigger), "refresh")
            self._hurry.set()
        return await asyncio.shield(self._refresh)

    async def aclose(self) -> None:
        """Give up the attempts under way; nothing of them stays open."""
        while self._under_way:
            for task in self._under_way:
                task.cancel()
            await asyncio.wait(self._under_way)

    async def validate(self, text: bytes | None = None, look: Look | None = None) -> Receipt:
        """Tell what a reload would come to, were ``text`` in the file; nothing changes or is kept.

        If it can be used, ``look`` is shown what was prepared before that is let go.
        """
        attempt = Attempt.now(0, "http")
        try:
            snapshot, waiting, prepared = await self._prepare(text, purpose="trial")
        except Exception as error:  # noqa: BLE001 - told like those of a reload
            return self._refusal(attempt, error)
        try:
            if look is not None:
                await look(prepared)
        finally:
            await prepared.abort()
        verdict = self._verdict(prepared.news, waiting)
        return self._receipt(attempt, verdict, snapshot, prepared.news, waiting)

    @property
    def _in_force(self) -> _InForce:
        if self._now_in_force is None:
            raise RuntimeError("no configuration is in force")
        return self._now_in_force

    async def _in_its_turn(self, trigger: Trigger) -> Receipt:
        async with self._in_turn:
            self._next = None
            self._take_time()
            touched = self._take_touched()
            attempt = self._begin(trigger)
            try:
                snapshot, waiting, prepared = await self._prepare(None, touched)
            except Exception as error:  # noqa: BLE001 - every attempt leaves a receipt (REL-3)
                self._unread = None  # nothing of it is in force
                return self._reject(attempt, error)
            if prepared.news.same:
                await prepared.abort()
                return self._keep_unchanged(attempt, snapshot, prepared.news, waiting)
            return self._commit(attempt, snapshot, prepared, waiting)

    async def _reload_next(self, trigger: Trigger) -> Receipt:
        if self._next is None:
            self._next = self._begin_task(self._in_its_turn(trigger), "reload")
            self._hurry.set()
        return await asyncio.shield(self._next)

    def _take_touched(self) -> Touched:
        """What is to be read below folders of tools, with what was left unread if somebody asked for that."""
        touched, self._touched = self._touched, frozenset()
        if self._reads_unread:
            touched = both(touched, self._unread)
            self._unread, self._reads_unread = frozenset(), False
        return touched

    async def _refresh_in_its_turn(self, trigger: Trigger) -> Receipt:
        async with self._in_turn:
            self._refresh = None
            self._take_time()
            attempt, now = self._begin(trigger), self._in_force
            try:
                prepared = await self._builder.prepare(
                    now.snapshot, frozenset(), "refresh", self._hurry
                )
            except Exception as error:  # noqa: BLE001 - every attempt leaves a receipt (REL-3)
                return self._note(self._refusal(attempt, error))
            if prepared.news.same:
                await prepared.abort()
                return self._note(
                    self._receipt(attempt, "unchanged", now.snapshot, prepared.news, now.waiting)
                )
            receipt = self._put_in_force(attempt, now.snapshot, prepared, now.waiting)
            return self._note(receipt)

    def _begin_task(self, work: Coroutine[None, None, Receipt], name: str) -> asyncio.Task[Receipt]:
        task = asyncio.create_task(work, name=name)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    def _take_time(self) -> None:
        """Let the attempt that begins wait for others until somebody waits for it."""
        self._hurry = asyncio.Event()
        if self._next is not None or self._refresh is not None or self._settling:
            self._hurry.set()

    def _begin(self, trigger: Trigger) -> Attempt:
        self._attempts += 1
        return Attempt.now(self._attempts, trigger)

    async def _prepare(
        self, text: bytes | None, touched: Touched = None, purpose: Purpose = "reload"
    ) -> tuple[ConfigSnapshot, tuple[Change, ...], Prepared]:
        """Read and prepare what would be in force, without what waits for a restart."""
        running = self._in_force.snapshot
        read = partial(self._read, text, must_exist=running.path is not None)
        snapshot, waiting = held_back(running, await in_thread("read configuration", read))
        prepared = await self._builder.prepare(snapshot, touched, purpose, self._hurry)
        return snapshot, waiting, prepared

    def _commit(
        self,
        attempt: Attempt,
        snapshot: ConfigSnapshot,
        prepared: Prepared,
        waiting: tuple[Change, ...],
    ) -> Receipt:
        receipt = self._put_in_force(attempt, snapshot, prepared, waiting)
        self._told(receipt)
        kept = self._acted(snapshot, receipt)
        if kept is not None:
            kept.add_done_callback(partial(self._kept_as, receipt.id))
        return receipt

    def _kept_as(self, number: int, kept: asyncio.Future[Kept | None]) -> None:
        if kept.cancelled() or kept.exception() is not None:
            return
        entry = kept.result()
        if entry is not None:
            self.receipts.kept_as(number, entry.number, entry.oldest)

    def _put_in_force(
        self,
        attempt: Attempt,
        snapshot: ConfigSnapshot,
        prepared: Prepared,
        waiting: tuple[Change, ...],
    ) -> Receipt:
        news = prepared.news
        receipt = self._receipt(attempt, self._verdict(news, waiting), snapshot, news, waiting)
        number = prepared.commit()
        self._now_in_force = _InForce(snapshot, news.digest, number, waiting)
        return replace(receipt, generation=number)

    def _keep_unchanged(
        self, attempt: Attempt, snapshot: ConfigSnapshot, news: News, waiting: tuple[Change, ...]
    ) -> Receipt:
        """Nothing that an ask could notice: only where values stand may have changed."""
        receipt = self._receipt(attempt, self._verdict(news, waiting), snapshot, news, waiting)
        self._now_in_force = replace(self._in_force, snapshot=snapshot, waiting=waiting)
        self._told(receipt)
        return receipt

    def _reject(self, attempt: Attempt, error: Exception) -> Receipt:
        self._told(receipt := self._refusal(attempt, error))
        return receipt

    def _verdict(self, news: News, waiting: tuple[Change, ...]) -> Verdict:
        if waiting and (self._now_in_force is None or waiting != self._now_in_force.waiting):
            return "applied-restart-needed"
        return "unchanged" if news.same else "applied"

    def _receipt(
        self,
        attempt: Attempt,
        verdict: Verdict,
        snapshot: ConfigSnapshot,
        news: News,
        waiting: tuple[Change, ...],
    ) -> Receipt:
        before = self._now_in_force
        return attempt.receipt(
            verdict,
            news.digest,
            before.generation if before is not None else 0,
            changes=changes(before.snapshot, snapshot) if before is not None else (),
            waiting=waiting,
            tools=news.tools,
            warnings=(*snapshot.warnings, *news.warnings),
        )

    def _refusal(self, attempt: Attempt, error: Exception) -> Receipt:
        before = self._in_force
        return attempt.receipt(
            "rejected",
            before.digest,
            before.generation,
            waiting=before.waiting,
            tools=nothing(),
            errors=problems_of(error),
        )

    def _told(self, receipt: Receipt) -> None:
        """Tell of an attempt that read the sources, whether they can be used or not."""
        if receipt.good:
            self._rejected, self._rejected_since = None, None
        else:
            self._rejected = receipt
            if self._rejected_since is None:
                self._rejected_since = receipt.at
        self._note(receipt)

    def _note(self, receipt: Receipt) -> Receipt:
        self.receipts.add(receipt)
        if receipt.good:
            _log.info("%s", receipt.summary())
        else:
            _log.error("%s; generation %d stays in force", receipt.summary(), receipt.generation)
        self._tell(receipt)
        return receipt
