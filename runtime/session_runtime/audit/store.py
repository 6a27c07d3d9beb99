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

from session_runtime.audit.chain import Link, follow, seal
from session_runtime.audit.head import (
    KEY_FILE,
    Head,
    HeadError,
    begin,
    read_head,
    read_key,
    write_head,
)
from session_runtime.config.durable import own_folder
from session_runtime.types import JsonObject

SUFFIX: Final = ".jsonl"
_DIGITS: Final = 12
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _End:
    """Where the next line goes: into ``file``, of ``size`` bytes, after ``link``.

    ``torn`` is what stands there behind the last whole line.
    """

    link: Link
    file: str
    size: int
    torn: bytes = b""


class AuditStore:
    """The log of one state directory; used by one thread at a time.

    A file of ``max_bytes`` or more is full; ``keep`` full ones are kept, all for 0.
    """

    def __init__(self, state_dir: Path, folder: Path | None, max_bytes: int, keep: int) -> None:
        self._state_dir = state_dir
        self._folder = (folder or state_dir / "audit").absolute()
        self._max_bytes = max_bytes
        self._keep = keep

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self._folder

    def head(self) -> Head | None:
        """Where the log ends, None if it was never begun; makes nothing.

        Raises HeadError if it could not be gone on with, or another OSError.
        """
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
        self._state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with own_folder(self._state_dir) as handle:
            key, head = self._key_and_head(handle)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            end = self._find_end(key, head)
            with self._adding(end.file) as descriptor:
                data, link = _lines(key, end, [*_prologue(end, head, self._folder), *records])
                _write_all(descriptor, data)
                os.fsync(descriptor)
                if not end.size:
                    _sync_folder(self._folder)
                size = os.fstat(descriptor).st_size
                names = self._kept(head, end.file)
                added = Head(link.sequence, link.hash, str(self._folder), names[0], end.file, size)
                write_head(handle, key, added)
        self._remove_older(added)
        return added

    def _key_and_head(self, handle: int) -> tuple[bytes, Head]:
        head = self.head()
        key = read_key(self._state_dir)
        if head is None or key is None:
            return begin(handle, self._folder)
        return key, head

    def _find_end(self, key: bytes, head: Head) -> _End:
        """Follow the chain from the head on: a process that was killed may have written more."""
        end = _End(head.link, head.file, head.size)
        if head.folder != str(self._folder) or not self._has(head.file, head.size):
            end = replace(end, file=_name(end.link), size=0)
        while True:
            end = self._read_on(key, end)
            following = _name(end.link)
            if end.torn or following == end.file:
                return end
            if not self._has(following, 0):
                full = end.size >= self._max_bytes
                return replace(end, file=following, size=0) if full else end
            end = replace(end, file=following, size=0)

    def _has(self, name: str, size: int) -> bool:
        """Whether there is such a file, of that size at least; one that was cut is not gone on with."""
        try:
            return bool(name) and (self._folder / name).stat().st_size >= size
        except FileNotFoundError:
            return False

    def _read_on(self, key: bytes, end: _End) -> _End:
        path = self._folder / end.file
        if not self._has(end.file, end.size):
            return end
        with path.open("rb") as file:
            file.seek(end.size)
            rest = file.read()
        link, size = end.link, 0
        for line in rest.splitlines(keepends=True):
            following = follow(key, link, line)
            if following is None:
                break
            link, size = following, size + len(line)
        return _End(link, end.file, end.size + size, rest[size:])

    @contextmanager
    def _adding(self, name: str) -> Iterator[int]:
        """Open a file to append to it; what was added by a block that fails is taken back."""
        descriptor = os.open(self._folder / name, _APPEND, 0o600)
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

    def _kept(self, head: Head, file: str) -> tuple[str, ...]:
        """The files that are to stay, the newest last; one that should be there and is not counts."""
        moved = head.folder != str(self._folder)
        known = {*file_names(self._folder), file} | ({head.first} - {""} if not moved else set())
        names = sorted(known)
        return tuple(names[-self._keep - 1 :] if self._keep else names)

    def _remove_older(self, head: Head) -> None:
        for name in file_names(self._folder):
            if name < head.first:
                with suppress(OSError):  # it is tried again with the next line
                    (self._folder / name).unlink()


def file_names(folder: Path) -> tuple[str, ...]:
    """The names of all files of a log, the oldest first; none if there is no folder."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return ()
    return tuple(sorted(name for name in names if is_file_name(name)))


def is_file_name(name: str) -> bool:
    """Whether it is what this module calls a file: twelve digits, the number of its first line."""
    digits = name.removesuffix(SUFFIX)
    return digits != name and len(digits) == _DIGITS and digits.isascii() and digits.isdigit()


def _name(last: Link) -> str:
    return f"{last.sequence + 1:0{_DIGITS}}{SUFFIX}"


def _prologue(end: _End, head: Head, folder: Path) -> Iterator[JsonObject]:
    """What the log says of itself: that a file begins, and what a crash left behind."""
    if end.torn:
        torn = _closed(end.torn)
        yield {
            "event": "recovered",
            "torn_bytes": len(torn),
            "torn_hash": hashlib.sha256(torn).hexdigest(),
            "previous": end.link.hash,
        }
    elif not end.size:
        moved = bool(head.file) and head.folder != str(folder)
        came_from = {"moved_from": head.folder} if moved else {}
        yield {"event": "opened", "previous": end.link.hash, **came_from}


def _lines(key: bytes, end: _End, records: Sequence[JsonObject]) -> tuple[bytes, Link]:
    link, lines = end.link, [b"\n" if end.torn and end.torn[-1:] != b"\n" else b""]
    for record in records:
        line, link = seal(key, link, record)
        lines.append(line)
    return b"".join(lines), link


def _closed(torn: bytes) -> bytes:
    return torn if torn.endswith(b"\n") else torn + b"\n"


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
