"""Remembers of each tool of a server the form in which it may be used (RTE-4).

That is the form in which it was first seen, in which a harmless one was seen last, or which was approved.

What becomes of a tool that waits for an approval is decided where tools are named, in ``mcp/naming``; what a
listing or an approval changes, in ``approval_file``.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from session_runtime.config.durable import UnconfirmedError
from session_runtime.errors import StartError, TransientError
from session_runtime.registry.approval_file import (
    FILE,
    Approval,
    ApprovalFile,
    Change,
    Entries,
    Key,
    Observation,
    Removal,
    Seen,
    has_to_wait,
    observed,
    without_needless_form,
)
from session_runtime.state_files import fault_of
from session_runtime.threads import Worker

MOST_OF_A_SERVER: Final = 20_000
"""Tools of one server that are known: twice as many as a list may hold."""

LAST_WRITE_S: Final = 5.0
RETRY_S: Final = 30.0
"""So long after a failed write it is tried again."""

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class New:
    """It was never seen: it is trusted as it is, and remembered."""


@dataclass(frozen=True, slots=True)
class Approved:
    """It is as it was first seen, or as it was approved."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Its schemas are others now; it ``waits`` for an approval if it is destructive, or was."""

    waits: bool


Verdict = New | Approved | Changed


class Approvals:
    """What is known of the tools of servers, over all generations; without a file, until the process ends.

    All processes of a state directory share the file. What holds over all of them: a tool that was listed as
    destructive once counts as that, and only in the form that it had, until an operator approves something
    else. So nobody writes down what he remembers: each change is made to what the file holds then, and what
    it holds wins over what is remembered, but for what could not be written yet. That is tried again
    until it is written, RETRY_S after each failure and once more at the end.

    ``judge`` may be called in any thread, all else belongs to the event loop.
    """

    def __init__(
        self,
        file: ApprovalFile | None = None,
        known: Entries | None = None,
        retry_s: float = RETRY_S,
    ) -> None:
        self._file = file
        self._known: dict[str, dict[str, Seen]] = {}
        self._unkept: dict[Key, Change] = {}
        self._under_way: list[Mapping[Key, Change]] = []
        self._drifted = 0
        self._revision = 0
        self._full: set[str] = set()
        self._trouble = ""
        self._unread = ""
        self._retry_s = retry_s
        self._retry: asyncio.TimerHandle | None = None
        self._closing = False
        self._worker: Worker | None = None
        self._last: asyncio.Future[Sequence[Seen]] | None = None
        self._looking: asyncio.Future[Sequence[Seen]] | None = None
        self._replace((known or {}).values(), ())

    @property
    def drifted(self) -> int:
        """How often a tool that may change by itself was seen with other schemas."""
        return self._drifted

    @property
    def revision(self) -> int:
        """A number that differs once another process changed what tools may be used, or are destructive."""
        return self._revision

    @property
    def unkept(self) -> int:
        """Of how many tools a restart would forget something."""
        return len(self._unkept)

    @property
    def trouble(self) -> str:
        """Why nothing can be written now; empty: it can."""
        return self._trouble

    def known(self, server: str, tool: str) -> Seen | None:
        """In which form a tool may be used; None if it was never seen."""
        return self._known.get(server, {}).get(tool)

    def judge(self, server: str, tool: str, schema: str, destructive: bool) -> Verdict:
        """Compare a tool with how it is known; pure."""
        known = self.known(server, tool)
        if known is None:
            return New()
        if known.schema == schema:
            return Approved()
        return Changed(has_to_wait(known, Seen(server, tool, schema, destructive)))

    def saw(self, tools: Iterable[Seen]) -> None:
        """Remember what servers list in a generation that came into force; raises nothing.

        ``tools`` are all of each server that is named. Of those that wait for an approval only is remembered
        that they are destructive.
        """
        listed: dict[str, dict[str, Seen]] = {}
        for tool in tools:
            listed.setdefault(tool.server, {})[tool.tool] = tool
        news: list[Seen] = []
        gone: list[Key] = []
        for server, of_server in listed.items():
            left, out = self._fit(server, self._news(of_server.values()), of_server)
            news += left
            gone += out
        if news:
            self._replace(news, gone)
            self._to_keep({key: Removal() for key in gone})
            self._to_keep({seen.key: Observation(seen) for seen in news})
            if self._last is None or self._last.done():
                self._write()

    async def approve(self, tools: Iterable[Seen]) -> None:
        """Take tools in exactly these forms.

        Raises TransientError (``approvals.not_kept``) if that acts, but a restart would forget it.
        """
        approved = [Approval(without_needless_form(seen), self.known(*seen.key)) for seen in tools]
        self._replace([each.entry for each in approved], ())
        self._to_keep({each.entry.key: each for each in approved})
        try:
            await asyncio.shield(self._write())
        except OSError as error:
            raise TransientError(
                f"approved as long as this process runs, but no longer: {error}; writing it is tried again",
                code="approvals.not_kept",
            ) from error

    async def look(self) -> None:
        """Take over what other processes wrote since; raises nothing, and gives up after LAST_WRITE_S.

        What comes later is taken over then; until it does, nobody looks again.
        """
        if self._file is None:
            return
        if self._looking is None or self._looking.done():
            self._looking = self._aside("read approvals", partial(self._read, self._file))
            self._looking.add_done_callback(self._looked)
        await asyncio.wait([self._looking], timeout=LAST_WRITE_S)

    async def aclose(self) -> None:
        """Write what is not written yet, and wait for that, a few seconds at most."""
        self._closing = True
        if self._retry is not None:
            self._retry.cancel()
        if self._unkept and self._last is not None and self._last.done():
            self._write()
        try:
            async with asyncio.timeout(LAST_WRITE_S):
                while self._last is not None and not self._last.done():
                    await asyncio.wait([self._last])
        except TimeoutError:
            self._trouble = self._trouble or "it takes too long"
        if self._unkept:
            _log.warning(
                "the forms of %d tools are not kept and are new after a restart: %s",
                len(self._unkept),
                self._trouble,
            )
        if self._worker is not None:
            self._worker.end()

    def _news(self, listed: Iterable[Seen]) -> list[Seen]:
        """What becomes known of tools that are listed so; counts those that changed by themselves."""
        news: list[Seen] = []
        for tool in listed:
            known = self.known(*tool.key)
            entry = observed(known, tool)
            if entry is not known:
                self._drifted += known is not None and known.schema != entry.schema
                news.append(entry)
        return news

    def _fit(
        self, server: str, changed: Sequence[Seen], listed: Collection[str]
    ) -> tuple[list[Seen], list[Key]]:
        """What of ``changed`` there is room for, destructive ones first, and what goes for that.

        Only harmless tools that are not listed any more go: whoever forgot a destructive one would trust it
        anew in any form.
        """
        known = self._known.get(server, {})
        new = [tool for tool in changed if tool.tool not in known]
        room = MOST_OF_A_SERVER - len(known)
        gone: list[str] = []
        if len(new) > room:
            idle = (name for name, of in known.items() if name not in listed and not of.destructive)
            gone = [*islice(idle, len(new) - room)]
            room = max(0, room + len(gone))
        if len(new) > room and server not in self._full:
            self._full.add(server)
            _log.warning(
                "server %s has listed more than %d tools: changes of further ones are not noticed",
                server,
                MOST_OF_A_SERVER,
            )
        fitting = sorted(new, key=_harmless)[:room]
        others = [tool for tool in changed if tool.tool in known]
        return [*others, *fitting], [(server, name) for name in gone]

    def _replace(self, news: Collection[Seen], gone: Collection[Key]) -> None:
        """Replace what is known; another thread may be reading the old one."""
        touched = {seen.server for seen in news} | {server for server, _ in gone}
        known = {server: dict(self._known.get(server, {})) for server in touched}
        for server, tool in gone:
            del known[server][tool]
        for seen in news:
            known[seen.server][seen.tool] = seen
        self._known = {**self._known, **known}

    def _to_keep(self, changes: Mapping[Key, Change]) -> None:
        """Have changes written with the next write; what servers list does not undo an approval."""
        if self._file is None:
            return
        for key, change in changes.items():
            before = self._unkept.get(key)
            match before, change:
                case Approval(was=was), Observation(entry=entry) | Approval(entry=entry):
                    self._unkept[key] = Approval(entry, was)
                case _:
                    self._unkept[key] = change

    def _due(self) -> dict[Key, Change]:
        """What is to be written; what is being written is not, as no approval may be made twice."""
        return {
            key: change
            for key, change in self._unkept.items()
            if all(other.get(key) is not change for other in self._under_way)
        }

    def _write(self) -> "asyncio.Future[Sequence[Seen]]":
        """Write what is due; the future has an OSError if that fails."""
        if self._file is None:
            nothing: asyncio.Future[Sequence[Seen]] = asyncio.get_running_loop().create_future()
            nothing.set_result(())
            return nothing
        changes = self._due()
        self._under_way.append(changes)
        work = partial(self._exchange, self._file, changes)
        self._last = self._aside("keep approvals", work)
        self._last.add_done_callback(partial(self._written, changes))
        return self._last

    def _exchange(self, file: ApprovalFile, changes: Mapping[Key, Change]) -> Sequence[Seen]:
        return self._differing(file.change(changes))

    def _read(self, file: ApprovalFile) -> Sequence[Seen]:
        return self._differing(file.newer())

    def _differing(self, kept: Entries) -> Sequence[Seen]:
        """What in the file is to be taken over; of two harmless forms the one that was seen here stays."""
        return [entry for entry in kept.values() if self._is_other(entry)]

    def _is_other(self, entry: Seen) -> bool:
        known = self.known(*entry.key)
        return known is None or (known != entry and (known.destructive or entry.destructive))

    def _take(self, kept: Sequence[Seen]) -> None:
        """Take over what the file holds, with what is not written yet on top."""
        entries = [
            entry if (change := self._unkept.get(entry.key)) is None else change.on(entry)
            for entry in kept
        ]
        others = [entry for entry in entries if entry is not None and self._is_other(entry)]
        if others:
            self._revision += any(self._matters(entry) for entry in others)
            self._replace(others, ())

    def _matters(self, entry: Seen) -> bool:
        return entry.destructive or self.known(*entry.key) is not None

    def _looked(self, looking: "asyncio.Future[Sequence[Seen]]") -> None:
        if looking.cancelled():
            return
        error = looking.exception()
        unread = "" if error is None else str(error)
        if error is None:
            self._take(looking.result())
        elif unread != self._unread:
            _log.warning("what other processes approved cannot be read: %s", unread)
        self._unread = unread

    def _written(
        self, changes: Mapping[Key, Change], written: "asyncio.Future[Sequence[Seen]]"
    ) -> None:
        self._under_way = [each for each in self._under_way if each is not changes]
        if written.cancelled():
            return
        if (error := written.exception()) is not None:
            self._failed(changes, error)
            return
        for key, change in changes.items():
            if self._unkept.get(key) is change:
                del self._unkept[key]
        if self._trouble:
            _log.info("the forms of tools are kept again")
        self._trouble = ""
        self._take(written.result())
        if self._due():
            self._write()

    def _failed(self, changes: Mapping[Key, Change], error: BaseException) -> None:
        if isinstance(error, UnconfirmedError):  # made already: only to be seen on the disk
            for key, change in changes.items():
                if isinstance(change, Approval) and self._unkept.get(key) is change:
                    self._unkept[key] = Observation(change.entry)
        if not self._trouble:
            _log.warning(
                "the forms of %d tools could not be kept, which is tried again; until then a restart would"
                " forget them: %s",
                len(self._unkept),
                error,
            )
        self._trouble = str(error) or type(error).__name__
        if self._retry is not None:
            self._retry.cancel()
        if not self._closing:
            self._retry = asyncio.get_running_loop().call_later(self._retry_s, self._again)

    def _again(self) -> None:
        if self._due():
            self._write()

    def _aside(
        self, name: str, work: "partial[Sequence[Seen]]"
    ) -> "asyncio.Future[Sequence[Seen]]":
        """One after the other in a thread; the future has an OSError if the system gives none."""
        try:
            if self._worker is None:
                self._worker = Worker()
        except RuntimeError as error:
            failed: asyncio.Future[Sequence[Seen]] = asyncio.get_running_loop().create_future()
            failed.set_exception(OSError(str(error)))
            return failed
        return self._worker.run(name, work)


def open_approvals(state_dir: Path) -> Approvals:
    """Read what is known in a state directory; blocks.

    Raises StartError (``start.approvals``) if that cannot be known: a tool that changed would be trusted.
    """
    file = ApprovalFile(state_dir)
    mend = "mend the file, or delete it to trust what the servers list now"
    try:
        return Approvals(file, file.read())
    except (OSError, ValueError) as error:
        told = fault_of(error, state_dir / FILE, mend)
        why = f"it cannot be known which tools of servers were approved: {told}"
        raise StartError(why, code="start.approvals") from error


def _harmless(seen: Seen) -> bool:
    return not seen.destructive
