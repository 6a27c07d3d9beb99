"""The files of the audit log: appends lines, so that what a crash left over is told; blocks (RTE-13).

Several processes may append to the log of one state directory: each reads under a lock where it ends.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from session_runtime.audit.chain import LINE_BYTES, TORN_BYTES, Link, follow, is_torn, seal
from session_runtime.audit.files import file_names, is_own, lines_of, name_after
from session_runtime.audit.head import (
    KEY_FILE,
    Head,
    HeadError,
    Left,
    begin,
    read_head,
    read_key,
    write_head,
)
from session_runtime.config.durable import UnconfirmedError, own_folder
from session_runtime.state_files import make_state_folder, open_state_file
from session_runtime.types import JsonObject

MOST_LEFT: Final = 32
"""So many folders that the log was in are remembered; whoever comes back to another proves nothing of it."""

_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class _End:
    """Where the next line goes: into ``file``, of ``size`` bytes, after ``link``.

    ``rest`` is what stands there behind the last whole line; ``torn`` says that crashes left it.
    """

    link: Link
    file: str
    size: int
    rest: bytes = b""
    torn: bool = False


class AuditStore:
    """The log of one state directory; used by one thread at a time.

    A file of ``max_bytes`` or more is full; ``keep`` full ones are kept, all for 0.
    """

    def __init__(self, state_dir: Path, folder: Path | None, max_bytes: int, keep: int) -> None:
        self._state_dir = state_dir
        self._folder = (folder or state_dir / "audit").absolute()
        self._max_bytes = max_bytes
        self._keep = keep
        self._last: Head | None = None
        self._own: dict[str, bool] = {}
        self._altered = ""

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    @property
    def altered(self) -> str:
        """What was found last that somebody else did to the log; empty: nothing."""
        return self._altered

    def head(self) -> Head | None:
        """Where the log ends, None if it was never begun; makes nothing.

        Raises HeadError if it could not be gone on with, or another OSError.
        """
        head = self._read_head()
        self._last = self._last or head
        return head

    def _read_head(self) -> Head | None:
        key = read_key(self._state_dir)
        if key is None:
            if file_names(self._folder):
                raise HeadError(
                    f"{self._folder} holds an audit log, but its key {self._state_dir / KEY_FILE} is "
                    "gone: put it back, or move the folder away to begin a new log"
                )
            return None
        head = read_head(self._state_dir, key)
        if head is None:
            raise HeadError(
                f"the end of the audit log, audit.head in {self._state_dir}, is gone: put it back, or "
                f"move {KEY_FILE} and {self._folder} away to begin a new log"
            )
        return head

    def append(self, records: Sequence[JsonObject]) -> Head:
        """Add a line for each record; all of them are on the disk when it returns.

        Raises OSError with nothing added.
        """
        make_state_folder(self._state_dir, self._state_dir)
        with own_folder(self._state_dir) as handle:
            key, head = self._key_and_head(handle)
            make_state_folder(self._folder, self._state_dir)
            before, end = self._find_ends(key, head)
            told = [*self._prologue(head, end), *self._alterations(head, end)]
            with self._adding(end.file) as descriptor:
                data, link = _lines(key, end, [*told, *records])
                _write_all(descriptor, data)
                os.fsync(descriptor)
                if not end.size:
                    _sync_folder(self._folder)
                self._own[end.file] = True
                size = os.fstat(descriptor).st_size
                added = self._head_at(key, _left(head, before), link, end.file, size)
                with suppress(UnconfirmedError):  # the lines are on the disk: they are found again
                    write_head(handle, key, added)
        self._remove_older(key, added)
        self._last = added
        return added

    def _key_and_head(self, handle: int) -> tuple[bytes, Head]:
        head = self._read_head()
        key = read_key(self._state_dir)
        if head is None or key is None:
            self._own.clear()
            return begin(handle, self._folder)
        return key, head

    def _find_ends(self, key: bytes, head: Head) -> tuple[_End, _End]:
        """Where the log ends in the folder it was in, and where it goes on: in the same place, or another."""
        known = _End(head.link, head.file, head.size)
        before = self._follow(key, Path(head.folder), known)
        if head.folder == str(self._folder):
            return before, before
        return before, self._follow(key, self._folder, _End(before.link, "", 0))

    def _follow(self, key: bytes, folder: Path, end: _End) -> _End:
        """Follow the chain from here on: a process that was killed may have written more."""
        if not _has(folder, end.file, end.size):
            end = replace(end, file=name_after(end.link), size=0)
        while True:
            end = _read_on(key, folder, end)
            following = name_after(end.link)
            if end.rest or following == end.file:
                return end
            if not _has(folder, following, 0):
                full = end.size >= self._max_bytes
                return replace(end, file=following, size=0) if full else end
            end = replace(end, file=following, size=0)

    def _prologue(self, head: Head, end: _End) -> Iterator[JsonObject]:
        """What the log says of itself: that a file begins, and what a crash left behind."""
        if end.torn:
            rest = end.rest + b"\n"
            yield {
                "event": "recovered",
                "torn_bytes": len(rest),
                "torn_hash": hashlib.sha256(rest).hexdigest(),
                "previous": end.link.hash,
            }
        elif not end.size:
            moved = _moved(head, self._folder) if head.file else {}
            yield {"event": "opened", "previous": end.link.hash, **moved}

    def _alterations(self, head: Head, end: _End) -> Iterator[JsonObject]:
        """Take note of what somebody else did; the log tells of what no line of it would show."""
        if end.rest and not end.torn:
            self._altered = f"{end.file} holds lines that were not written by this log"
        last = self._last
        if last is None or not last.file or _holds(last):
            return
        if head.file and head.folder == last.folder and last.file < head.first:
            return  # another process did not keep it
        self._altered = (
            f"record {last.sequence}:{last.hash} is not there any more: an earlier copy was put back, "
            "or the log was cut or taken away"
        )
        yield {"event": "altered", "known": {"sequence": last.sequence, "hash": last.hash}}

    @contextmanager
    def _adding(self, name: str) -> Iterator[int]:
        """Open a file to append to it; what was added by a block that fails is taken back."""
        descriptor = open_state_file(self._folder / name, _APPEND, self._state_dir)
        try:
            size = os.fstat(descriptor).st_size
            try:
                yield descriptor
            except BaseException:
                with suppress(OSError):  # a file that may only be appended to keeps it, as torn
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)

    def _head_at(self, key: bytes, left: dict[str, Left], link: Link, file: str, size: int) -> Head:
        """The new end of the log; ``left`` are the folders that it was in, this one too."""
        here = left.pop(str(self._folder), None)
        first = self._oldest(key, here.first if here is not None else "", file)
        others = tuple(left.values())[-MOST_LEFT:]
        return Head(link.sequence, link.hash, str(self._folder), first, file, size, others)

    def _oldest(self, key: bytes, first: str, file: str) -> str:
        """The oldest file that is to stay; ``first`` counts as a file although it may be gone."""
        if first and not self._keep:
            return first
        names = (name for name in file_names(self._folder) if name < file)
        own = {name for name in names if self._is_own(key, name)}
        kept = sorted(own | ({first, file} - {""}))
        return kept[-self._keep - 1 :][0] if self._keep else kept[0]

    def _is_own(self, key: bytes, name: str) -> bool:
        if name not in self._own:
            self._own[name] = is_own(key, self._folder / name)
        return self._own[name]

    def _remove_older(self, key: bytes, head: Head) -> None:
        for name in file_names(self._folder):
            if name < head.first and self._is_own(key, name):
                with suppress(OSError):  # it is tried again with the next line
                    (self._folder / name).unlink()
                    del self._own[name]


def _has(folder: Path, name: str, size: int) -> bool:
    """Whether there is such a file, of that size at least; one that was cut is not gone on with."""
    path = folder / name
    try:
        return bool(name) and path.is_file() and path.stat().st_size >= size
    except FileNotFoundError:
        return False


def _holds(head: Head) -> bool:
    """Whether the line that was the last one is still where it was."""
    told = b'"hash":"%b"}\n' % head.hash.encode()
    try:
        with (Path(head.folder) / head.file).open("rb") as file:
            file.seek(head.size - len(told))
            return file.read(len(told)) == told
    except FileNotFoundError:
        return False


def _read_on(key: bytes, folder: Path, end: _End) -> _End:
    """Go on behind all lines that follow the chain, and look at what stands there."""
    if not _has(folder, end.file, end.size):
        return end
    link, size = end.link, end.size
    with (folder / end.file).open("rb") as file:
        file.seek(size)
        for line in lines_of(file):
            following = follow(key, link, line)
            if following is None:
                break
            link, size = following, size + len(line)
        file.seek(size)
        rest = file.read(TORN_BYTES + 1)
        torn = bool(rest) and is_torn(rest, link.sequence + 1)
        while more := file.read(LINE_BYTES):
            rest = more  # only how it ends is of interest
    return _End(link, end.file, size, rest, torn)


def _left(head: Head, end: _End) -> dict[str, Left]:
    """All folders that the log was in, and how it left them; ``end`` is that of the last one."""
    left = {each.folder: each for each in head.left}
    if head.file:
        torn = end.rest if end.torn else b""
        digest = hashlib.sha256(torn).hexdigest()
        link = end.link
        left.pop(head.folder, None)
        left[head.folder] = Left(
            head.folder, head.first, link.sequence, link.hash, len(torn), digest
        )
    return left


def _moved(head: Head, folder: Path) -> JsonObject:
    """Where the log was before, if that is another folder, and what of it is in this one already."""
    if head.folder == str(folder):
        return {}
    known = next((each for each in head.left if each.folder == str(folder)), None)
    if known is None:
        return {"moved_from": head.folder}
    after = {
        "sequence": known.sequence,
        "hash": known.hash,
        "torn_bytes": known.torn_bytes,
        "torn_hash": known.torn_hash,
    }
    return {"moved_from": head.folder, "after": after}


def _lines(key: bytes, end: _End, records: Sequence[JsonObject]) -> tuple[bytes, Link]:
    link, lines = end.link, [b"\n" if end.rest and not end.rest.endswith(b"\n") else b""]
    for record in records:
        line, following = seal(key, link, record)
        if len(line) > LINE_BYTES:
            line, following = seal(key, link, {"event": "lost", "records": 1})
        lines.append(line)
        link = following
    return b"".join(lines), link


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
