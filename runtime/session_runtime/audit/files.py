"""What the files of the log are called and how they are read, however odd their content; blocks (RTE-13)."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from session_runtime.audit.chain import LINE_BYTES, START, Link, follow

SUFFIX: Final = ".jsonl"
_DIGITS: Final = 12
_FIRST_LINES: Final = 8
_PREVIOUS: Final = re.compile(rb'"previous":"([0-9a-f]{64})"')


def file_names(folder: Path) -> tuple[str, ...]:
    """The names of all files of a log, the oldest first; none if there is no folder."""
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in entries if is_file_name(each.name) and each.is_file()]
    except FileNotFoundError:
        return ()
    return tuple(sorted(names))


def is_file_name(name: str) -> bool:
    """Whether it is what a file is called: twelve digits, the number of its first line."""
    digits = name.removesuffix(SUFFIX)
    return digits != name and len(digits) == _DIGITS and digits.isascii() and digits.isdigit()


def name_after(last: Link) -> str:
    """The name of the file that begins behind this line."""
    return f"{last.sequence + 1:0{_DIGITS}}{SUFFIX}"


def first_number(name: str) -> int:
    """The number of a file's first line."""
    return int(name.removesuffix(SUFFIX))


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is longer than any record, no more than its beginning."""
    while line := file.readline(LINE_BYTES + 1):
        yield line
        while is_too_long(line):
            line = file.readline(LINE_BYTES + 1)


def is_too_long(line: bytes) -> bool:
    """Whether it is the beginning of a line that is longer than any record."""
    return len(line) > LINE_BYTES and not line.endswith(b"\n")


def anchor(line: bytes, starts_at: int) -> Link:
    """What the first line of a file says it follows; its hash proves it."""
    found = _PREVIOUS.search(line)
    return Link(starts_at - 1, found[1].decode()) if found is not None else START


def is_own(key: bytes, path: Path) -> bool:
    """Whether a file begins with a line of this key and of the number that its name says."""
    starts_at = first_number(path.name)
    try:
        with path.open("rb") as file:
            lines = islice(lines_of(file), _FIRST_LINES)
            return any(follow(key, anchor(line, starts_at), line) for line in lines)
    except OSError:
        return False
