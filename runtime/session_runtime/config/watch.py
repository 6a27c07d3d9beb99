"""Notices edits, however they are saved, and asks for a reload; what it comes to is ``live``'s (REL-5).

Events say only that something may have changed: what counts is whether the content did. Folders are
watched, never files, because most editors put a new file in the place of the old one. Where no events
come, everything is looked at again and again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from watchfiles import awatch

from session_runtime.config.fingerprint import concerned, counts_in_tree, watched_by
from session_runtime.config.look import Armed, Folder, Seen, cause, is_unknown, see, stirred
from session_runtime.config.receipt import Receipt, Trigger
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.threads import in_thread
from session_runtime.types import JsonObject

Mode = Literal["events", "polling", "off"]

QUIET_S: Final = 0.05
"""So long no event may come before an edit counts as finished."""
STORM_S: Final = 0.5
"""A storm of events is waited for no longer than this."""
UNFINISHED_S: Final = 1.0
"""A file that cannot be read at all may be half written: so long it is waited for."""
BEFORE_EVENTS_S: Final = 1.0
"""So long after events were asked for everything is looked at once more."""
STORM_MS: Final = 100
STEP_MS: Final = 10
ALIVE_MS: Final = 250
"""How events are gathered, and how often it is told that there are none, in milliseconds."""
LATE_S: Final = 30.0
"""So long one look may take before the watching counts as stuck."""
AGAIN_S: Final = (0.1, 1.0, 5.0)
"""Waits before the watching starts again after a failure; the last one holds for all further ones."""

_log: Final = logging.getLogger(__name__)


class Live(Protocol):
    """What the watcher needs of ``LiveConfig``."""

    @property
    def snapshot(self) -> ConfigSnapshot:
        """The configuration in force."""

    @property
    def rejected(self) -> Receipt | None:
        """The last attempt, whoever made it, if it was rejected."""

    async def reload(self, trigger: Trigger, touched: frozenset[str] | None) -> Receipt:
        """Read everything again, of tools what was touched; raises nothing for a bad edit."""

    async def validate(self) -> Receipt:
        """What a reload would come to."""


class Watcher:
    """Watches whatever the configuration in force was read from, and reloads when that changes.

    ``config`` is the configuration file, also if there is none yet; ``recheck_s`` is how often all is
    looked at even without an event. ``looks`` counts how often that was, ``hears`` tells that events
    come. After a rejected edit it is tried again each time, as what it lacks may be outside of what is
    watched.
    """

    def __init__(
        self, live: Live, config: Path, mode: Mode = "events", recheck_s: float = 5.0
    ) -> None:
        self._live = live
        self._config = config.absolute()
        self._wanted = mode
        self._recheck_s = recheck_s
        self._tasks: list[asyncio.Task[None]] = []
        self._hint = asyncio.Event()
        self._seen: Seen | None = None
        self._reloads = 0
        self._armed = Armed()
        self._rearm = asyncio.Event()
        self._touched: set[str] = set()
        self._missed = True
        self._stopping = False
        self._restarts = 0
        self._looked_at = 0.0
        self._is_mounted = False
        self.looks = 0
        self.hears = False
        self._failure: str | None = None

    @property
    def mode(self) -> Mode:
        """How edits are noticed at the moment."""
        return "polling" if self._wanted == "events" and self._failure else self._wanted

    @property
    def alive(self) -> bool:
        """Whether everything was looked at when it was due; false should never be seen."""
        if self._wanted == "off" or not self._tasks:
            return True
        late_s = asyncio.get_running_loop().time() - self._looked_at
        return late_s < LATE_S + 3 * self._recheck_s

    def status(self) -> JsonObject:
        """Tell operators what is watched, and how."""
        watched = watched_by(self._config, self._live.snapshot)
        return {
            "mode": self.mode,
            "recheck_s": self._recheck_s,
            "files": [str(file) for file in watched.files],
            "folders": [str(tree) for tree in watched.trees],
            "restarts": self._restarts,
            "failure": self._failure,
            "warnings": self.warnings(),
        }

    def warnings(self) -> list[str]:
        """What an operator should know about the place of the file."""
        if not self._is_mounted:
            return []
        return [
            f"{self._config} is itself a mount point: edits in place are noticed, but a file that"
            " outside is put in its place is not; mount its folder instead"
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch as long as the context is open."""
        if self._wanted == "off":
            yield
            return
        self._seen = await self._look(deep=False)
        for warning in self.warnings():
            _log.warning("%s", warning)
        work = {"follow edits": self._follow}
        if self._wanted == "events":
            work["events of files"] = self._listen
        self._tasks = [
            asyncio.create_task(self._forever(each), name=name) for name, each in work.items()
        ]
        try:
            yield
        finally:
            self._stopping = True
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    async def _forever(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start ``work`` again however it ends, so that the watching cannot die unnoticed (REL-5)."""
        failures = 0
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await work()
            except asyncio.CancelledError:
                if self._stopping:
                    raise
                self._tell(RuntimeError("it was cancelled"))
            except Exception as error:  # noqa: BLE001 - whatever it is, edits must go on being noticed
                self._tell(error)
            if asyncio.get_running_loop().time() - started > AGAIN_S[-1]:
                failures = 0
            await asyncio.sleep(AGAIN_S[min(failures, len(AGAIN_S) - 1)])
            failures += 1

    def _tell(self, failure: Exception) -> None:
        self._failure = "; ".join(f"{type(each).__name__}: {each}" for each in _causes(failure))
        self._restarts += 1
        _log.error("watching for edits failed and starts again: %s", self._failure)

    async def _look(self, deep: bool = True) -> Seen:
        """Look at everything; at the folders of tools only if ``deep``, as they may be many.

        Otherwise an event there counts as a change, and without one they are as before. Before the
        first look nothing is known of them.
        """
        watched, last = watched_by(self._config, self._live.snapshot), self._seen
        known = None
        if not deep and (last is None or self._touched):
            known = stirred(self.looks)
        elif not deep and last is not None and last.watched == watched:
            known = last.prints.trees
        seen = await in_thread("look at configuration", partial(see, watched, known))
        self.looks += 1
        self._looked_at = asyncio.get_running_loop().time()
        self._is_mounted = seen.is_mounted
        return seen

    async def _follow(self) -> None:
        """Reload for every change; one that is noticed during a reload hurries it on (REL-1)."""
        async with asyncio.TaskGroup() as reloads:
            while True:
                hinted = await _within(self._recheck_s, self._hint)
                if hinted:
                    await self._settle()
                deep, self._missed = self._missed or not hinted, False
                await self._reload_if_changed(deep, reloads)

    async def _settle(self) -> None:
        """Wait until no more events come."""
        end = asyncio.get_running_loop().time() + STORM_S
        while self._hint.is_set() and asyncio.get_running_loop().time() < end:
            self._hint.clear()
            await _within(QUIET_S, self._hint)
        self._hint.clear()

    async def _reload_if_changed(self, deep: bool, reloads: asyncio.TaskGroup) -> None:
        before, now = self._seen, await self._look(deep)
        if before is not None and not deep and before.armed.trees != now.armed.trees:
            deep, now = (
                True,
                await self._look(),
            )  # other folders, of which no event may have told yet
        if before is None or before.watched != now.watched:
            await self._reload_quietly(now, reloads)
        elif (trigger := cause(before, now)) is not None:
            if before.prints.config != now.prints.config and not now.readable:
                now = await self._finished(deep)
            self._reload(trigger, now, None if deep else self._told_of(), reloads)
        elif not self._reloads and (self._live.rejected is not None or is_unknown(before, now)):
            await self._reload_quietly(now, reloads)
        if now.armed != self._armed:
            self._rearm.set()

    async def _finished(self, deep: bool) -> Seen:
        """Wait a while for a file that may be half written, and look once more then."""
        end = asyncio.get_running_loop().time() + UNFINISHED_S
        while True:
            await _within(QUIET_S, self._hint)
            self._hint.clear()
            now = await self._look(deep=False)
            if now.readable or asyncio.get_running_loop().time() >= end:
                return await self._look() if deep else now

    def _reload(
        self,
        trigger: Trigger,
        now: Seen,
        touched: frozenset[str] | None,
        reloads: asyncio.TaskGroup,
    ) -> None:
        """Begin a reload for what was seen ``now``, and do not wait for it: it may wait for servers."""
        self._touched.clear()
        self._seen = now
        self._reloads += 1
        reloads.create_task(self._reload_from(now, trigger, touched), name="reload for an edit")

    async def _reload_from(
        self, now: Seen, trigger: Trigger, touched: frozenset[str] | None
    ) -> None:
        try:
            await self._live.reload(trigger, touched)
        except BaseException:
            self._seen = None  # whether it is in force has to be found out
            raise
        finally:
            self._reloads -= 1
        if watched_by(self._config, self._live.snapshot) != now.watched:
            self._missed = True  # what is watched from now on may have changed meanwhile
            self._hint.set()

    def _told_of(self) -> frozenset[str] | None:
        """What events told of since the last reload; None if some may have been missed."""
        is_sure = self.hears and self._failure is None and not self._missed
        return frozenset(self._touched) if is_sure else None

    async def _reload_quietly(self, now: Seen, reloads: asyncio.TaskGroup) -> None:
        """Reload where nothing that is watched changed, but only if that would tell something new.

        What a rejected edit lacks may be anywhere; and what a new configuration reads may have been
        saved after it was read and before it was watched.
        """
        rejected, tried = self._live.rejected, await self._live.validate()
        self._seen = now
        told = tried.verdict == "unchanged" if rejected is None else tried.errors == rejected.errors
        if not told:
            self._reload("watch", now, None, reloads)

    async def _listen(self) -> None:
        """Ask for events of all folders, and again whenever there are others."""
        while True:
            now = await self._look(deep=False)
            self._armed, self.hears = now.armed, False
            self._rearm.clear()
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                counts = now.armed.places.__contains__
                if now.armed.folders:
                    group.create_task(self._hear(now.armed.folders, False, counts, stop))
                if now.armed.trees:
                    inside = partial(counts_in_tree, trees=now.watched.trees)
                    group.create_task(self._hear(now.armed.trees, True, inside, stop))
                self._missed = True
                await _within(BEFORE_EVENTS_S, self._rearm)
                self._hint.set()  # what was saved before events came
                await self._rearm.wait()
                stop.set()

    async def _hear(
        self,
        folders: Iterable[Folder],
        deep: bool,
        counts: Callable[[str], bool],
        stop: asyncio.Event,
    ) -> None:
        paths = [path for path, *_ in folders]
        events = awatch(
            *paths,
            watch_filter=lambda _, path: counts(path),
            debounce=STORM_MS,
            step=STEP_MS,
            stop_event=stop,
            rust_timeout=ALIVE_MS,
            yield_on_timeout=True,
            recursive=deep,
        )
        async for changes in events:
            self._failure, self.hears = None, True
            if changes:
                self._touched.update(concerned(path) for _, path in changes if deep)
                self._hint.set()


def _causes(failure: Exception) -> Iterator[Exception]:
    """What really failed, however deep in groups."""
    if isinstance(failure, ExceptionGroup):
        for inner in failure.exceptions:
            yield from _causes(inner)
    else:
        yield failure


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for the event no longer than this; tells whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
