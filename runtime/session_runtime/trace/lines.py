"""The files of a trace as lines: current and rotated ones, forwards, backwards and as they grow.

What a line says is decided in ``reading``. Whatever a file holds, no more than one line and a block of it
are in memory.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
BLOCK_BYTES: Final = 256 * 1024
TOO_LONG: Final = b""
"""Stands for a line of more than MAX_LINE_BYTES, as no line is empty otherwise."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, ...]]:
    """Open the current file and those that were rotated, the newest first; none that is no plain file.

    A rotation meanwhile loses nothing and shows nothing twice.
    """
    with ExitStack() as stack:
        found: dict[tuple[int, int], BinaryIO] = {}
        for each in (path, *_rotated(path)):
            file = _open(each)
            if file is not None:
                stack.enter_context(file)
                found.setdefault(_identity(file), file)
        yield tuple(found.values())


def _rotated(path: Path) -> Iterator[Path]:
    """``path.1``, ``path.2`` and so on; some may be missing, and one more may be made just now."""
    number = re.compile(re.escape(path.name) + r"\.([1-9]\d{0,8})")
    try:
        names = os.listdir(path.parent)  # noqa: PTH208 - names alone are wanted
    except OSError:
        return
    numbers = sorted(int(match[1]) for name in names if (match := number.fullmatch(name)))
    for each in (*numbers, numbers[-1] + 1 if numbers else 1):
        yield path.with_name(f"{path.name}.{each}")


def _open(path: Path) -> BinaryIO | None:
    """Open a plain file; None if there is none, or something else, which could block. Raises OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    return os.fdopen(fd, "rb")


def _identity(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino


def forwards(file: BinaryIO) -> Iterator[bytes]:
    """Every finished line from here on, without its end; what is not finished is left to be read again."""
    while line := file.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n"):
            if text := line[:-1]:
                yield text
        elif len(line) < MAX_LINE_BYTES:
            file.seek(-len(line), os.SEEK_CUR)
            return
        elif _skip_line(file):
            yield TOO_LONG
        else:
            return


def _skip_line(file: BinaryIO) -> bool:
    """Go on behind the end of this line, and tell whether it has one."""
    while piece := file.readline(BLOCK_BYTES):
        if piece.endswith(b"\n"):
            return True
    return False


def backwards(file: BinaryIO) -> Iterator[bytes]:
    """Every finished line, the last one first, without its end."""
    position = file.seek(0, os.SEEK_END)
    rest, is_long, finished = b"", False, False
    while position:
        size = min(BLOCK_BYTES, position)
        position -= size
        file.seek(position)
        first, *lines = file.read(size).split(b"\n")
        for line in reversed(lines):
            whole, was_long = line + rest, is_long
            rest, is_long = b"", False
            if finished and (whole or was_long):
                yield TOO_LONG if was_long or len(whole) > MAX_LINE_BYTES else whole
            finished = True
        rest = first + rest
        if len(rest) > MAX_LINE_BYTES:
            rest, is_long = b"", True
    if finished and (rest or is_long):
        yield TOO_LONG if is_long else rest


def found_at(file: BinaryIO, beginning: bytes) -> int | None:
    """Where the last line begins that has this beginning; None if there is none."""
    wanted, found = b"\n" + beginning, None
    file.seek(0)
    rest, position = b"\n", -1
    while block := file.read(BLOCK_BYTES):
        text = rest + block
        if (at := text.rfind(wanted)) >= 0:
            found = position + at + 1
        position += len(text) - (keep := min(len(wanted) - 1, len(text)))
        rest = text[len(text) - keep :]
    return found


class Growing:
    """The lines that are written from now on, also after a rotation; ``close`` it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _open(path)
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def lines(self) -> Iterator[bytes]:
        """All that were finished since the last time; does not wait for any."""
        if self._file is not None:
            self._begin_again_if_cut(self._file)
            yield from forwards(self._file)
        for newer in self._newer():
            self.close()
            self._file = newer
            yield from forwards(newer)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _begin_again_if_cut(self, file: BinaryIO) -> None:
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)

    def _newer(self) -> Sequence[BinaryIO]:
        """The files that took the place of the one that is read, the oldest first."""
        own = None if self._file is None else _identity(self._file)
        newer: list[BinaryIO] = []
        for path in (self._path, *_rotated(self._path)):
            file = _open(path)
            if file is None:
                continue
            if _identity(file) == own:
                file.close()
                return newer[::-1]
            newer.append(file)
        return self._only_current(newer)

    def _only_current(self, newer: Sequence[BinaryIO]) -> Sequence[BinaryIO]:
        """What was read is gone from the folder: nobody knows which of the rotated files were seen."""
        for file in newer[1:]:
            file.close()
        return newer[:1]
