"""Reads traces back, for whoever looks at asks that ended: commands, replay, the console (OPS-1, OPS-2)."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from session_runtime.spelling import nearest
from session_runtime.trace.decode import decode
from session_runtime.trace.lines import (
    MAX_LINE_BYTES,
    TOO_LONG,
    Growing,
    backwards,
    forwards,
    found_at,
    opened,
)
from session_runtime.trace.record import AskRecord
from session_runtime.types import JsonObject
from session_runtime.wire import to_bytes

MAX_NAMES: Final = 5_000
"""Of so many asks, the last ones, ids are compared with one that is unknown."""
_ID: Final = re.compile(rb'\{"ask_id":"([^"\\]{1,200})"')


@dataclass(frozen=True, slots=True)
class Traced:
    """One line of a trace: what it says, and its JSON as it was written, with fields unknown here."""

    record: AskRecord
    data: JsonObject


def record_from_json(data: object) -> AskRecord:
    """The record that ``record_to_json`` wrote, by this version or another; raises ValueError.

    Unknown fields are left out. Of the principal the name alone was kept.
    """
    if isinstance(data, dict) and isinstance(data.get("principal"), str):
        data = {**data, "principal": {"name": data["principal"]}}
    record: AskRecord = decode(AskRecord, data)
    return record


class Traces:
    """The trace at ``path`` with all its rotated files; everything reads the disk and may raise OSError.

    ``damaged`` counts lines that were skipped so far: no JSON, no record, or too long. A line that is still
    being written is none.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.damaged = 0

    def exists(self) -> bool:
        """Whether there is any file to read."""
        with opened(self.path) as files:
            return bool(files)

    def oldest_first(self) -> Iterator[Traced]:
        """Every ask in the order in which they ended."""
        with opened(self.path) as files:
            for file in reversed(files):
                yield from filter(None, map(self.read_line, forwards(file)))

    def newest_first(self) -> Iterator[Traced]:
        """Every ask, the last one first."""
        with opened(self.path) as files:
            for file in files:
                yield from filter(None, map(self.read_line, backwards(file)))

    def last(self, count: int) -> list[Traced]:
        """The last ``count`` asks, the oldest of them first."""
        return [*islice(self.newest_first(), count)][::-1]

    def find(self, ask_id: str) -> Traced | None:
        """The ask of that id; None if there is none that can be read. Reads no other line as JSON."""
        beginning = to_bytes({"ask_id": ask_id})[:-1]
        with opened(self.path) as files:
            for file in files:
                at = found_at(file, beginning)
                if at is not None and (found := self.read_line(_line_at(file, at))) is not None:
                    return found
        return None

    def near(self, ask_id: str, count: int = 3) -> list[str]:
        """Ids of late asks that begin with ``ask_id`` or are much like it."""
        known = [*islice(self._ids(), MAX_NAMES)]
        begun = [each for each in known if ask_id and each.startswith(ask_id)]
        return begun[:count] or nearest(ask_id, known, count)

    @contextmanager
    def growing(self) -> Iterator["GrowingTraces"]:
        """The asks that end from now on."""
        growing = Growing(self.path)
        try:
            yield GrowingTraces(self, growing)
        finally:
            growing.close()

    def _ids(self) -> Iterator[str]:
        with opened(self.path) as files:
            for file in files:
                for line in backwards(file):
                    if found := _ID.match(line):
                        yield found[1].decode("utf-8", "replace")

    def read_line(self, line: bytes) -> Traced | None:
        """What a line says; None if it is damaged, which is counted."""
        try:
            data = _json(line)
            return Traced(record_from_json(data), data)
        except (ValueError, RecursionError):
            self.damaged += 1
            return None


class GrowingTraces:
    """The asks of a trace that ended since it was opened, made by ``Traces.growing``."""

    def __init__(self, traces: Traces, growing: Growing) -> None:
        self._traces = traces
        self._growing = growing

    def new(self) -> Iterator[Traced]:
        """Those since the last time; does not wait for any."""
        yield from filter(None, map(self._traces.read_line, self._growing.lines()))


def _line_at(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    line = file.readline(MAX_LINE_BYTES + 1)
    return line[:-1] if line.endswith(b"\n") else TOO_LONG


def _json(line: bytes) -> Any:
    if line == TOO_LONG:
        raise ValueError("it is too long")
    return json.loads(line, parse_constant=_no_number)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
