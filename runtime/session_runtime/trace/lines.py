"""The files of a trace as lines: current and rotated ones, forwards, backwards and as they grow.

What a line says is decided in ``reading``. Whatever a file holds, no more than one line and a block of it
are in memory.
"""

import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
BLOCK_BYTES: Final = 256 * 1024
MOST_FOUND: Final = 16


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that is open, and the name that it had then."""

    path: Path
    file: BinaryIO


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank, without its end; ``text`` is None if it has more than MAX_LINE_BYTES.

    ``at`` is the byte of its file where it begins.
    """

    source: Opened
    at: int
    text: bytes | None

    def number(self) -> int:
        """Which line of its file it is, from 1; reads all of the file before it."""
        ends = position = 0
        while block := os.pread(
            self.source.file.fileno(), min(BLOCK_BYTES, self.at - position), position
        ):
            ends += block.count(b"\n")
            position += len(block)
        return ends + 1


@contextmanager
def opened(path: Path) -> Iterator[tuple[Opened, ...]]:
    """Open the current file and those that were rotated, the newest first; none that is no plain file.

    A rotation meanwhile loses nothing and shows nothing twice.
    """
    with ExitStack() as stack:
        found: dict[tuple[int, int], Opened] = {}
        for each in (path, *_rotated(path)):
            source = _open(each)
            if source is not None:
                stack.enter_context(source.file)
                found.setdefault(_identity(source), source)
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


def _open(path: Path) -> Opened | None:
    """Open a plain file; None if there is none, or something else, which could block. Raises OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    return Opened(path, os.fdopen(fd, "rb"))


def _identity(source: Opened) -> tuple[int, int]:
    found = os.fstat(source.file.fileno())
    return found.st_dev, found.st_ino


def forwards(source: Opened) -> Iterator[Line]:
    """Every line from here on, the last one also if it has no end."""
    yield from finished(source)
    at = source.file.tell()
    yield from _line(source, at, source.file.readline(MAX_LINE_BYTES + 1))


def finished(source: Opened) -> Iterator[Line]:
    """Every line from here on that has an end; what has none is left to be read again."""
    file = source.file
    at = file.tell()
    while text := file.readline(MAX_LINE_BYTES + 1):
        if text.endswith(b"\n"):
            text = text[:-1]
        elif len(text) <= MAX_LINE_BYTES:
            file.seek(at)
            return
        else:
            _skip_line(file)
        yield from _line(source, at, text)
        at = file.tell()


def _skip_line(file: BinaryIO) -> None:
    """Go on behind the end of this line, or of the file."""
    while (piece := file.readline(BLOCK_BYTES)) and not piece.endswith(b"\n"):
        pass


def _line(source: Opened, at: int, text: bytes, *, is_long: bool = False) -> Iterator[Line]:
    """The line, none if it is blank."""
    if is_long or len(text) > MAX_LINE_BYTES:
        yield Line(source, at, None)
    elif text and not text.isspace():
        yield Line(source, at, text)


def backwards(source: Opened) -> Iterator[Line]:
    """Every line, the last one first, also if it has no end."""
    file = source.file
    position = file.seek(0, os.SEEK_END)
    rest, is_long = b"", False
    while position:
        end = position
        position -= min(BLOCK_BYTES, position)
        file.seek(position)
        first, *pieces = file.read(end - position).split(b"\n")
        for piece in reversed(pieces):
            end -= len(piece)
            yield from _line(source, end, piece + rest, is_long=is_long)
            rest, is_long = b"", False
            end -= 1
        rest = first + rest
        if len(rest) > MAX_LINE_BYTES:
            rest, is_long = b"", True
    yield from _line(source, 0, rest, is_long=is_long)


def line_at(source: Opened, at: int) -> Line:
    """The line that begins there."""
    source.file.seek(at)
    text = source.file.readline(MAX_LINE_BYTES + 1).removesuffix(b"\n")
    return Line(source, at, text if len(text) <= MAX_LINE_BYTES else None)


def found_at(source: Opened, beginning: bytes) -> Sequence[int]:
    """Where the lines begin that have this beginning, the last one first; of many the last MOST_FOUND."""
    file, wanted = source.file, b"\n" + beginning
    found: deque[int] = deque(maxlen=MOST_FOUND)
    file.seek(0)
    rest, position = b"\n", -1
    while block := file.read(BLOCK_BYTES):
        text, at = rest + block, -1
        while (at := text.find(wanted, at + 1)) >= 0:
            found.append(position + at + 1)
        position += len(text) - (keep := min(len(wanted) - 1, len(text)))
        rest = text[len(text) - keep :]
    return [*reversed(found)]


class Growing:
    """The lines that are finished from now on, also after a rotation; ``close`` it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source = _open(path)
        if self._source is not None:
            self._source.file.seek(_end_of_finished(self._source))

    def lines(self) -> Iterator[Line]:
        """All that were finished since the last time; does not wait for any."""
        if self._source is not None:
            self._begin_again_if_cut(self._source.file)
            yield from finished(self._source)
        newer_files = self._newer()
        if newer_files and self._source is not None:
            yield from finished(self._source)  # what was written until it was rotated
        for newer in newer_files:
            self.close()
            self._source = newer
            yield from finished(newer)

    def close(self) -> None:
        """Let go of the file."""
        if self._source is not None:
            self._source.file.close()

    def _begin_again_if_cut(self, file: BinaryIO) -> None:
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)

    def _newer(self) -> Sequence[Opened]:
        """The files that took the place of the one that is read, the oldest first."""
        own = None if self._source is None else _identity(self._source)
        newer: dict[tuple[int, int], Opened] = {}
        for path in (self._path, *_rotated(self._path)):
            source = _open(path)
            if source is None:
                continue
            identity = _identity(source)
            if identity == own or identity in newer:  # it may be rotated meanwhile
                source.file.close()
            if identity == own:
                return [*newer.values()][::-1]
            newer.setdefault(identity, source)
        return self._only_current([*newer.values()])

    def _only_current(self, newer: Sequence[Opened]) -> Sequence[Opened]:
        """What was read is gone from the folder: nobody knows which of the rotated files were seen."""
        for source in newer[1:]:
            source.file.close()
        return newer[:1]


def _end_of_finished(source: Opened) -> int:
    """Where the line begins that is being written, the end of the file if none is."""
    end = source.file.seek(0, os.SEEK_END)
    if not end or os.pread(source.file.fileno(), 1, end - 1) == b"\n":
        return end
    return next((line.at for line in backwards(source)), end)
