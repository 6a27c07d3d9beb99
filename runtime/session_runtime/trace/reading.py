"""Reads traces back, for whoever looks at asks that ended: commands, replay, the console (OPS-1, OPS-2)."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from session_runtime.errors import RequestError
from session_runtime.spelling import nearest
from session_runtime.trace.decode import decode
from session_runtime.trace.earlier import ABSENT, with_counted
from session_runtime.trace.lines import (
    MAX_LINE_BYTES,
    Growing,
    Line,
    Opened,
    backwards,
    forwards,
    found_at,
    line_at,
    opened,
)
from session_runtime.trace.record import AskRecord
from session_runtime.types import JsonObject
from session_runtime.wire import to_bytes

MAX_NAMES: Final = 5_000
"""Of so many asks, the last ones, ids are compared with one that is unknown."""
MAX_TOLD: Final = 5
"""Of so many damaged lines it is told which they are."""
_SHOWN_CHARS: Final = 40
_ID: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"ask_id"\s*:\s*"([^"\\]{1,200})"')


@dataclass(frozen=True, slots=True)
class Traced:
    """One line of a trace: what it says, and its JSON as it was written, with fields unknown here."""

    record: AskRecord
    data: JsonObject


@dataclass(frozen=True, slots=True)
class Damaged:
    """A line that is no record, by its number from 1, and why."""

    path: Path
    line: int
    reason: str


def record_from_json(data: object) -> AskRecord:
    """The record that ``record_to_json`` wrote, by this version or another; raises ValueError.

    Unknown fields are left out. Of the principal the name alone was kept. What earlier versions did not write
    is inferred where it follows from the rest.
    """
    if isinstance(data, dict):
        data = {**ABSENT, **data}
        if isinstance(name := data.get("principal"), str):
            data["principal"] = {"name": name}
    record: AskRecord = decode(AskRecord, data)
    return with_counted(record)


class Traces:
    """The trace at ``path`` with all its rotated files; RequestError if one of them cannot be read.

    Lines that are no record are skipped: no JSON, another one, too long, or not finished, as somebody writes
    it just now or a crash cut it off. ``damaged`` counts them so far, ``told`` are the first ``MAX_TOLD``.
    No more than one line is in memory.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.damaged = 0
        self.told: list[Damaged] = []

    def exists(self) -> bool:
        """Whether there is any file to read."""
        with self._opened() as files:
            return bool(files)

    def oldest_first(self) -> Iterator[Traced]:
        """Every ask in the order in which they ended."""
        with self._opened() as files:
            for file in reversed(files):
                yield from filter(None, map(self.read_line, forwards(file)))

    def newest_first(self) -> Iterator[Traced]:
        """Every ask, the last one first."""
        with self._opened() as files:
            for file in files:
                yield from filter(None, map(self.read_line, backwards(file)))

    def last(self, count: int) -> list[Traced]:
        """The last ``count`` asks, the oldest of them first."""
        return [*islice(self.newest_first(), count)][::-1]

    def find(self, ask_id: str) -> Traced | Damaged | None:
        """The ask of that id, or what is wrong with its line; None if there is none.

        Reads no other line as JSON, unless none begins as this program writes it.
        """
        with self._opened() as files:
            beginning = to_bytes({"ask_id": ask_id})[:-1]
            begun = (line_at(file, at) for file in files for at in found_at(file, beginning))
            found = self._first_whole(ask_id, begun)
            if isinstance(found, Traced):
                return found
            mentioned = to_bytes(ask_id)
            others = (
                line
                for file in files
                for line in backwards(file)
                if line.text is not None and mentioned in line.text
            )
            return found or self._first_whole(ask_id, others)

    def _first_whole(self, ask_id: str, found: Iterable[Line]) -> Traced | Damaged | None:
        """The first line that is that ask; else what is wrong with the first that begins like it."""
        damaged: Damaged | None = None
        for line in found:
            read = self._read(line)
            if isinstance(read, Traced) and read.record.ask_id == ask_id:
                return read
            if isinstance(read, Damaged) and _id_of(line) == ask_id:
                damaged = damaged or read
        return damaged

    def near(self, ask_id: str, count: int = 3) -> list[str]:
        """Ids of late asks that begin with ``ask_id`` or are much like it."""
        known = [*dict.fromkeys(islice(self._ids(), MAX_NAMES))]
        begun = [each for each in known if ask_id and each.startswith(ask_id)]
        return begun[:count] or nearest(ask_id, known, count)

    @contextmanager
    def growing(self) -> Iterator["GrowingTraces"]:
        """The asks that end from now on."""
        with _readable(self.path):
            growing = Growing(self.path)
        try:
            yield GrowingTraces(self, growing)
        finally:
            growing.close()

    def _ids(self) -> Iterator[str]:
        with self._opened() as files:
            for file in files:
                yield from filter(None, map(_id_of, backwards(file)))

    @contextmanager
    def _opened(self) -> Iterator[tuple[Opened, ...]]:
        with _readable(self.path), opened(self.path) as files:
            yield files

    def read_line(self, line: Line) -> Traced | None:
        """What a line says; None if it is damaged, which is counted."""
        read = self._read(line)
        return read if isinstance(read, Traced) else None

    def _read(self, line: Line) -> Traced | Damaged | None:
        """What a line says, or what is wrong with it; None for one of many that are damaged."""
        try:
            data = _json(line)
            return Traced(record_from_json(data), data)
        except (ValueError, RecursionError) as error:
            self.damaged += 1
            if len(self.told) >= MAX_TOLD:
                return None
            self.told.append(Damaged(line.source.path, line.number(), _reason(error)))
            return self.told[-1]


class GrowingTraces:
    """The asks of a trace that ended since it was opened, made by ``Traces.growing``."""

    def __init__(self, traces: Traces, growing: Growing) -> None:
        self._traces = traces
        self._growing = growing

    def new(self) -> Iterator[Traced]:
        """Those since the last time; does not wait for any."""
        with _readable(self._traces.path):
            yield from filter(None, map(self._traces.read_line, self._growing.lines()))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}") from error


def _id_of(line: Line) -> str:
    """The id that a line begins with, whoever wrote it and whatever follows; empty if it does not."""
    found = None if line.text is None else _ID.match(line.text)
    return "" if found is None else found[1].decode("utf-8", "replace")


def _json(line: Line) -> Any:
    if line.text is None:
        raise ValueError(f"it has more than {MAX_LINE_BYTES} bytes")
    return json.loads(line.text.decode("utf-8-sig"), parse_constant=_no_number, parse_float=_finite)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text[:_SHOWN_CHARS])


def _reason(error: ValueError | RecursionError) -> str:
    match error:
        case UnicodeDecodeError():
            return f"it is not UTF-8 at byte {error.start}"
        case json.JSONDecodeError():
            return f"it is no record of an ask: {error.msg} at character {error.pos + 1}"
        case RecursionError():
            return "it is no record of an ask: it is nested too deeply"
        case _:
            return f"it is no record of an ask: {error}"
