"""What operators have taken away by pattern, in whichever process, until they lift it again (REL-9).

Who may see a revoked tool is decided in ``policy``, that it is not run in ``invoke/pipeline``.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from session_runtime.config.durable import UnconfirmedError
from session_runtime.errors import RequestError, TransientError
from session_runtime.normal_form import normal
from session_runtime.registry.names import canonical_name
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.revocation_file import (
    NOTHING_REVOKED,
    Revocation,
    RevocationFile,
    Revoked,
)
from session_runtime.registry.shared_file import Accesses
from session_runtime.wire import well_formed

MAX_REVOCATIONS: Final = 1_000
MAX_PATTERN_CHARS: Final = 256
MAX_REASON_CHARS: Final = 500

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Watch:
    """A call under way: the tool's name, and what is called once if the tool is revoked."""

    name: str
    tell: Callable[[], None]


class Revocations:
    """Patterns of canonical names that are revoked; changed by the event loop, read by any thread.

    Revoking acts before it is written to ``file``, lifting after: what fails in between leaves tools
    revoked. Without a file they are revoked as long as this object lives.

    Several processes may share the file: ``look`` takes over what others revoked and lifted, and so does each
    change before it is written. What could not be written yet stays revoked on top of that.
    """

    def __init__(
        self,
        file: RevocationFile | None = None,
        revoked: Revoked = NOTHING_REVOKED,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._accesses = Accesses()
        self._clock = clock
        self._revoked = revoked
        self._kept: Revoked | None = revoked
        self._on_disk = revoked
        self._unread = ""
        self._patterns = tuple((Patterns([each.pattern]), each) for each in revoked.revocations)
        self._revision = 0
        self._watches: set[_Watch] = set()
        self._changing = asyncio.Lock()
        self._lifting: set[int] = set()
        self._changes: set[asyncio.Task[None]] = set()

    @property
    def revision(self) -> int:
        """A number that differs after every change."""
        return self._revision

    def list(self) -> tuple[Revocation, ...]:
        """Give all that is revoked, oldest first."""
        return self._revoked.revocations

    def blocks(self, name: str) -> Revocation | None:
        """Give the oldest revocation of a tool's canonical name; None if it may be called."""
        return next((revocation for names, revocation in self._patterns if name in names), None)

    @contextmanager
    def watching(self, name: str, tell: Callable[[], None]) -> Iterator[None]:
        """Call ``tell`` once if a tool that was not revoked before becomes revoked meanwhile."""
        watch = _Watch(name, tell)
        self._watches.add(watch)
        try:
            yield
        finally:
            self._watches.discard(watch)

    async def revoke(self, pattern: str, reason: str = "", by: str = "") -> Revocation:
        """Take away all tools that ``pattern`` matches, at once; a pattern that is revoked stays so.

        Returns when that is kept. Raises RequestError for a pattern or reason that cannot be used, and
        TransientError (``revocations.not_kept``) if only this process knows of it.
        """
        revocation = self._tighten(_checked_pattern(pattern), checked_reason(reason), by)
        await self._to_the_end(self._keep_all(revocation))
        same = (each for each in reversed(self.list()) if each.pattern == revocation.pattern)
        return next(same, revocation)  # another process may have taken its number

    async def lift(self, which: int | str) -> Revocation:
        """Give back what the revocation with that number or pattern has taken.

        Raises RequestError (``request.unknown_revocation``) if there is none, and TransientError
        (``revocations.not_kept``) if it could not be kept; then it is still revoked, or may be again
        after a crash of the machine, as the message says.
        """
        revocation = self._find(which)
        self._lifting.add(revocation.number)
        await self._to_the_end(self._loosen(revocation))
        return revocation

    async def look(self) -> None:
        """Take over what other processes changed since, write what could not be; raises nothing.

        It takes some seconds at most, as each change does: what a disk answers later is taken over then.
        """
        await self._to_the_end(self._look())

    async def _look(self) -> None:
        async with self._changing:
            await self._take_over()
            with suppress(OSError):  # whoever revoked it was told, and it is tried again
                await self._write(self._revoked)

    def _tighten(self, pattern: str, reason: str, by: str) -> Revocation:
        for revocation in self.list():
            if revocation.pattern == pattern and revocation.number not in self._lifting:
                return revocation
        if len(self.list()) >= MAX_REVOCATIONS:
            raise RequestError(
                f"{MAX_REVOCATIONS} patterns are revoked, no more are kept: lift some, or revoke a "
                "pattern that covers several",
                code="request.too_many_revocations",
            )
        number = self._revoked.last + 1
        revocation = Revocation(number, pattern, reason, by, self._clock())
        names = Patterns([pattern])
        self._revoked = Revoked((*self.list(), revocation), number)
        self._patterns = (*self._patterns, (names, revocation))
        self._revision += 1
        self._tell(names)
        why = reason or "no reason given"
        _log.warning("revocation %d by %s takes away %s: %s", number, by, pattern, why)
        return revocation

    async def _keep_all(self, revocation: Revocation) -> None:
        async with self._changing:
            await self._take_over()
            try:
                await self._write(self._revoked)
            except OSError as error:
                lasting = "but no longer"
                if isinstance(error, UnconfirmedError):
                    lasting = "and longer unless the machine crashes"
                raise TransientError(
                    f"{revocation.pattern!r} is revoked as long as this process runs, {lasting}: {error}",
                    code="revocations.not_kept",
                ) from error

    async def _loosen(self, revocation: Revocation) -> None:
        async with self._changing:
            await self._take_over()
            if all(each is not revocation for each in self.list()):
                self._lifting.discard(revocation.number)
                self._check_gone(revocation)
                return
            try:
                await self._write(_without(self._revoked, revocation))
            except UnconfirmedError as error:
                self._give_back(revocation)
                raise TransientError(
                    f"{revocation.pattern!r} is lifted, but may be revoked again after a crash of the"
                    f" machine, as its disk did not confirm it: {error}",
                    code="revocations.not_kept",
                ) from error
            except OSError as error:
                raise TransientError(
                    f"{revocation.pattern!r} is still revoked, as that could not be kept: {error}",
                    code="revocations.not_kept",
                ) from error
            finally:
                self._lifting.discard(revocation.number)
            self._give_back(revocation)

    def _give_back(self, revocation: Revocation) -> None:
        _log.warning("revocation %d of %s is lifted", revocation.number, revocation.pattern)
        self._revoked = _without(self._revoked, revocation)
        self._patterns = tuple(each for each in self._patterns if each[1] is not revocation)
        self._revision += 1

    async def _write(self, revoked: Revoked) -> None:
        if self._file is None or revoked == self._kept:
            return
        self._kept = None  # whatever fails in between, the next change is written again
        write = partial(self._file.write, revoked)
        try:
            await self._accesses.run("keep revocations", write, lambda _: self._written(revoked))
        except UnconfirmedError:
            self._on_disk = revoked
            raise

    def _written(self, revoked: Revoked) -> None:
        self._kept = self._on_disk = revoked

    async def _take_over(self) -> None:
        """Bring what another process wrote into force; what cannot be read changes nothing."""
        if self._file is None:
            return
        try:
            await self._accesses.run("read revocations", self._file.newer, self._replace)
        except (OSError, ValueError) as error:
            if str(error) != self._unread:
                self._unread = str(error)
                _log.warning(
                    "it cannot be known what other processes revoke or lift, so that nothing changes: %s",
                    error,
                )
            return
        self._unread = ""

    def _replace(self, on_disk: Revoked | None) -> None:
        """Have in force what the file holds now, and what is revoked here and not in it yet.

        Without a newer file all stays as it is.
        """
        if on_disk is None:
            return
        before = {each: each for each in self.list()}
        own = [each for each in before if each not in self._on_disk.revocations]
        revoked = _with(on_disk, own, self._lifting)
        revoked = replace(
            revoked, revocations=tuple(before.get(each, each) for each in revoked.revocations)
        )
        self._on_disk = on_disk
        self._kept = on_disk if revoked == on_disk else None
        self._revoked = revoked
        self._patterns = tuple((Patterns([each.pattern]), each) for each in revoked.revocations)
        self._revision += 1
        for names, each in self._patterns:
            if each not in before:
                _log.warning(
                    "revocation %d by %s takes away %s", each.number, each.by, each.pattern
                )
                self._tell(names)
        patterns = {each.pattern for each in revoked.revocations}
        for each in before:
            if each.pattern not in patterns:
                _log.warning("revocation %d of %s is lifted", each.number, each.pattern)

    def _check_gone(self, revocation: Revocation) -> None:
        """Raise TransientError if what another process lifted is revoked under another number."""
        if any(each.pattern == revocation.pattern for each in self.list()):
            raise TransientError(
                f"{revocation.pattern!r} is still revoked, under another number: lift it again",
                code="revocations.not_kept",
            )

    async def _to_the_end(self, change: Coroutine[object, object, None]) -> None:
        """Wait for a change, which is finished even if whoever waits is cancelled."""
        task = asyncio.create_task(change, name="keep revocations")
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        await asyncio.shield(task)

    def _tell(self, names: Patterns) -> None:
        for watch in [watch for watch in self._watches if watch.name in names]:
            self._watches.discard(watch)
            watch.tell()

    def _find(self, which: int | str) -> Revocation:
        for revocation in self.list():
            if which in (revocation.number, revocation.pattern):
                return revocation
        kind = "the number" if isinstance(which, int) else "the pattern"
        known = ", ".join(f"{each.number} ({each.pattern})" for each in self.list()[:10])
        raise RequestError(
            f"no revocation has {kind} {str(which)[:MAX_PATTERN_CHARS]!r}; there is {known or 'none'}",
            code="request.unknown_revocation",
        )


def open_revocations(state_dir: Path) -> Revocations:
    """Read what is revoked in a state directory; blocks, and raises StartError if it cannot be known."""
    file = RevocationFile(state_dir)
    revoked = file.read()
    for each in revoked.revocations:
        _log.warning("revocation %d still takes away %s", each.number, each.pattern)
    return Revocations(file, revoked)


def _without(revoked: Revoked, lifted: Revocation) -> Revoked:
    left = tuple(each for each in revoked.revocations if each is not lifted)
    return replace(revoked, revocations=left)


def _with(on_disk: Revoked, own: Sequence[Revocation], lifting: Collection[int]) -> Revoked:
    """What is on the disk, and behind it what is not: with numbers of its own, and no pattern twice.

    One that is being lifted does not count: it is revoked anew.
    """
    revocations, last = list(on_disk.revocations), on_disk.last
    patterns = {each.pattern for each in revocations if each.number not in lifting}
    for each in own:
        if each.pattern not in patterns:
            last = max(last + 1, each.number)
            revocations.append(replace(each, number=last))
    return Revoked(tuple(revocations), last)


def _checked_pattern(pattern: str) -> str:
    composed = normal("NFC", pattern)
    if not composed:
        raise RequestError("pattern: is empty; '*' stands for every tool")
    if len(composed) > MAX_PATTERN_CHARS:
        raise RequestError(
            f"pattern: has {len(composed)} characters, at most {MAX_PATTERN_CHARS} are allowed"
        )
    if canonical_name(composed) != composed:
        raise RequestError(
            f"pattern: {pattern!r} holds a character that no name of a tool has; revoke one pattern of"
            " canonical names at a time, such as files.*"
        )
    return composed


def checked_reason(reason: str) -> str:
    """The reason of an operator, as it is kept and told; raises RequestError for one that is too long."""
    if len(reason) > MAX_REASON_CHARS:
        raise RequestError(
            f"reason: has {len(reason)} characters, at most {MAX_REASON_CHARS} are allowed"
        )
    return well_formed(reason)
