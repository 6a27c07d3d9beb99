"""Reads a file with one JSON object per line, bounded in size; a fault is told with its line.

What an object means is decided by whoever reads it, in ``cases`` and ``catalogue``.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from session_runtime.errors import RequestError
from session_runtime.types import JsonObject
from session_runtime.wire import printable, strict_json

T = TypeVar("T")

MAX_BYTES: Final = 64 << 20
MAX_OBJECTS: Final = 100_000
_OTHERS_NAMED: Final = 8


def read_lines(path: Path, parse: Callable[[int, JsonObject], T]) -> tuple[T, ...]:
    """Read each line that is not blank with ``parse(line number, object)``, which may raise ValueError.

    Raises RequestError if the file cannot be read, is too large or has a wrong line: the first one with
    its reason, the others by number.
    """
    found: list[T] = []
    faults: list[tuple[int, str]] = []
    for number, line in enumerate(_content(path).split(b"\n"), 1):
        if not line.strip():
            continue
        if len(found) + len(faults) >= MAX_OBJECTS:
            raise RequestError(
                f"{path}:{number}: more than {MAX_OBJECTS:,} lines: split the file into several"
            )
        try:
            found.append(parse(number, _object(line)))
        except ValueError as error:
            faults.append((number, str(error)))
    if faults:
        raise RequestError(_told(path, faults))
    return tuple(found)


def text_of(data: JsonObject, key: str, most: int) -> str:
    """A text that must be there and not be blank; raises ValueError."""
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        what = "is missing" if key not in data else "must be a text that is not blank"
        raise ValueError(f"{key} {what}")
    if len(value) > most:
        raise ValueError(f"{key} has {len(value):,} characters, and {most:,} are the most")
    return value


def texts_of(data: JsonObject, key: str, most: int) -> tuple[str, ...]:
    """A list of texts, each once, in their order; an absent one is empty; raises ValueError."""
    value = data.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{key} must be a list of texts")
    if len(value) > most:
        raise ValueError(f"{key} has {len(value):,} entries, and {most:,} are the most")
    return tuple(dict.fromkeys(value))


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise RequestError(
            f"{path} is larger than {MAX_BYTES >> 20} MiB: split it into several files"
        )
    return content.removeprefix(b"\xef\xbb\xbf")


def _object(line: bytes) -> JsonObject:
    try:
        data = strict_json(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 at byte {error.start} of the line") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg} at column {error.colno}") from None
    if not isinstance(data, dict):
        raise ValueError("it must be a JSON object, in braces and on one line")
    return data


def _told(path: Path, faults: list[tuple[int, str]]) -> str:
    (number, reason), *others = faults
    told = printable(f"{path}:{number}: {reason}")
    if not others:
        return told
    named = ", ".join(str(other) for other, _ in others[:_OTHERS_NAMED])
    more = len(others) - _OTHERS_NAMED
    rest = f" and {more:,} others" if more > 0 else ""
    return f"{told}; wrong too: {'line' if len(others) == 1 else 'lines'} {named}{rest}"
