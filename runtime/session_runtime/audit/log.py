"""Takes records from the event loop and has a thread write them: no call waits for a disk (RTE-13).

What is told of a call is decided in ``registry/invoke/audited``.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, assert_never

from session_runtime.audit.entry import Entry, entry_to_json
from session_runtime.audit.head import Head
from session_runtime.audit.store import AuditStore
from session_runtime.config.audit import AuditSettings, OnError
from session_runtime.errors import StartError
from session_runtime.state_files import told_of
from session_runtime.threads import Worker
from session_runtime.types import JsonObject

MAX_WAITING: Final = 10_000
MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
MAX_BATCH: Final = 200
RETRY_S: Final = 1.0
TOGETHER_S: Final = 0.25
LAST_WRITE_S: Final = 5.0

_log: Final = logging.getLogger(__name__)

_Waiting = tuple[Entry, asyncio.Future[None] | None]


class AuditLog:
    """The log of one state directory, as the one event loop that uses it sees it.

    While the disk refuses, records wait and are tried again, as many as there is room for; those beyond
    are lost, and the log itself tells how many. A record that nobody waits for waits ``together_s`` seconds
    for others, to be written with them: one alone costs as much as many.
    """

    def __init__(
        self,
        store: AuditStore,
        head: Head | None = None,
        on_error: OnError = "refuse_destructive",
        *,
        max_waiting: int = MAX_WAITING,
        together_s: float = TOGETHER_S,
    ) -> None:
        self._store = store
        self._head = head
        self._on_error = on_error
        self._max_waiting = max_waiting
        self._together_s = together_s
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._worker: Worker | None = None
        self._writing: asyncio.Future[Head] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._trouble = ""
        self._altered_told = ""
        self._lost = 0
        self._lost_untold = 0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def lost(self) -> int:
        """Records that were not written and will not be."""
        return self._lost

    @property
    def trouble(self) -> str:
        """Why nothing can be written just now; empty while all is well."""
        return self._trouble

    @property
    def altered(self) -> str:
        """What was found last that somebody else did to the log; empty: nothing."""
        return self._store.altered

    @property
    def sequence(self) -> int:
        """The number of the last line."""
        return self._head.sequence if self._head is not None else 0

    def ahead(self, *, destructive: bool) -> bool:
        """Whether a call has to be recorded before it is made."""
        match self._on_error:
            case "go_on":
                return False
            case "refuse_destructive":
                return destructive
            case "refuse":
                return True
            case _:
                assert_never(self._on_error)

    def status(self) -> JsonObject:
        """The end of the log and how it is, for operators."""
        head = self._head.to_json() if self._head is not None else _NO_HEAD
        return {
            **head,
            "folder": str(self._store.folder),
            "waiting": len(self._waiting),
            "lost": self._lost,
            "trouble": self._trouble or None,
            "altered": self.altered or None,
        }

    def add(self, entry: Entry) -> None:
        """Have a record written; returns at once, and loses it if too many wait."""
        if self._closed or not self._has_room(entry):
            self._lose(1)
        else:
            self._put(entry, None)

    async def add_now(self, entry: Entry) -> None:
        """Have a record written and wait until it is on the disk; raises OSError if that fails."""
        if self._closed or not self._has_room(entry):
            raise OSError(self._trouble or "too many records wait for a slow disk")
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(entry, written)
        await written

    async def aclose(self) -> None:
        """Write what waits; gives up on a disk that refuses or hangs."""
        self._closed = True
        if self._writing is None:
            self._write_next()
        try:
            async with asyncio.timeout(LAST_WRITE_S):
                await self._idle.wait()
        except TimeoutError:
            _log.error("%d audit records are lost: the disk does not answer", len(self._waiting))
        if self._timer is not None:
            self._timer.cancel()
        if self._worker is not None:
            self._worker.end()
        if self._head is not None:
            _log.info("the audit log ends with record %d, %s", self._head.sequence, self._head.hash)

    def _has_room(self, entry: Entry) -> bool:
        if len(self._waiting) >= self._max_waiting:
            return False
        return self._waiting_bytes + entry.bytes <= MAX_WAITING_BYTES

    def _put(self, entry: Entry, written: asyncio.Future[None] | None) -> None:
        self._waiting.append((entry, written))
        self._waiting_bytes += entry.bytes
        self._idle.clear()
        self._go_on(hurry=written is not None)

    def _go_on(self, *, hurry: bool) -> None:
        """See to it that what waits is written: at once, or with what comes in the next moment."""
        if self._writing is not None:
            return
        enough = len(self._waiting) >= min(MAX_BATCH, self._max_waiting)
        if hurry or enough or self._closed or not (self._waiting and self._together_s):
            self._write_next()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._together_s, self._write_next)

    def _write_next(self) -> None:
        """Hand the thread what waits, up to a batch; what comes meanwhile is the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = self._take()
        if not batch:
            self._idle.set()
            return
        work = partial(_append, self._store, [entry for entry, _ in batch], self._lost_untold)
        try:
            if self._worker is None:
                self._worker = Worker()
            self._writing = self._worker.run("audit", work)
        except RuntimeError as error:  # the system gives no thread
            self._failed(batch, error)
            return
        self._writing.add_done_callback(partial(self._written, batch, self._lost_untold))

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        while self._waiting and len(batch) < MAX_BATCH:
            entry, written = self._waiting.popleft()
            self._waiting_bytes -= entry.bytes
            if written is None or not written.cancelled():
                batch.append((entry, written))
        return batch

    def _written(self, batch: Sequence[_Waiting], told: int, done: asyncio.Future[Head]) -> None:
        self._writing = None
        error = done.exception()
        if error is not None:
            self._failed(batch, error)
            return
        self._head = done.result()
        self._lost_untold -= told
        if self._trouble:
            _log.warning("the audit log is written again; %d records were lost so far", self._lost)
        self._trouble = ""
        self._tell_altered()
        for _, written in batch:
            if written is not None and not written.done():
                written.set_result(None)
        self._go_on(hurry=any(written is not None for _, written in self._waiting))

    def _tell_altered(self) -> None:
        if self.altered != self._altered_told:
            _log.error("the audit log was altered: %s", self.altered)
        self._altered_told = self.altered

    def _failed(self, batch: Sequence[_Waiting], error: BaseException) -> None:
        """Keep what nobody waits for, to try again; who waits is told at once."""
        why = told_of(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        is_first = not self._trouble
        self._trouble = why or type(error).__name__
        for entry, written in reversed(batch):
            if written is None:
                self._waiting.appendleft((entry, None))
                self._waiting_bytes += entry.bytes
            elif not written.done():
                written.set_exception(OSError(self._trouble))
        gives_up = self._closed or not self._waiting
        if is_first:
            lost = ", and records are lost" if gives_up and self._waiting else ""
            _log.error("the audit log cannot be written%s: %s", lost, why)
        if gives_up:
            self._lose(len(self._waiting), is_told=is_first)
            self._waiting.clear()
            self._waiting_bytes = 0
            self._idle.set()
            return
        self._timer = asyncio.get_running_loop().call_later(RETRY_S, self._write_next)

    def _lose(self, number: int, *, is_told: bool = False) -> None:
        if number and not self._lost and not is_told:
            _log.error("audit records are lost; more like this are counted, not told")
        self._lost += number
        self._lost_untold += number


_NO_HEAD: JsonObject = {"sequence": 0, "head": None, "file": None}


def _append(store: AuditStore, entries: Sequence[Entry], lost: int) -> Head:
    told: list[JsonObject] = [{"event": "lost", "records": lost}] if lost else []
    return store.append([*told, *map(_record, entries)])


def _record(entry: Entry) -> JsonObject:
    """One record; what cannot be written down may not keep all others from it."""
    try:
        return entry_to_json(entry)
    except Exception as error:  # noqa: BLE001 - an embedding program may give values of any type
        _log.error("a call is recorded without its particulars: %s", type(error).__name__)
        event = "begun" if entry.outcome is None else "call"
        return {"event": event, "tool": str(entry.subject.tool), "fault": type(error).__name__}


def open_audit(settings: AuditSettings, state_dir: Path) -> AuditLog | None:
    """Find the log and where it ends, making nothing; None if calls are not recorded. Blocks.

    Raises StartError (``start.audit``) if it cannot be gone on with.
    """
    if not settings.enabled:
        return None
    store = AuditStore(state_dir, settings.path, settings.max_bytes, settings.keep)
    try:
        head = store.head()
    except OSError as error:
        raise StartError(
            f"the audit log cannot be gone on with: {told_of(error)}", code="start.audit"
        ) from error
    return AuditLog(store, head, settings.on_error)
