"""Reads a whole audit log and finds the first line that is not as it was written (RTE-13)."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NoReturn

from session_runtime.audit.chain import (
    START,
    TORN_BYTES,
    Link,
    follow,
    is_torn,
    sequence_of,
)
from session_runtime.audit.files import anchor, file_names, first_number, is_too_long, lines_of
from session_runtime.audit.head import Head, read_head, read_key
from session_runtime.types import JsonObject

Kind = Literal["edited", "removed", "reordered", "cut", "other"]

_TRIES: Final = 3
_UNPROVED: Final = (
    "that no record before them is missing here cannot be proved, as the log was in too many other folders"
    " since"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing that is wrong: in which file and line (from 1 on; 0: none), and what."""

    kind: Kind
    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was found: ``records`` good lines from number ``first`` to ``sequence``, whose hash is ``head``.

    ``notes`` tell what is no fault, and that an operator should know.
    """

    records: int
    first: int
    sequence: int
    head: str
    files: int
    fault: Fault | None
    notes: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """Give it as the command shows it."""
        fault = self.fault
        return {
            "ok": fault is None,
            "records": self.records,
            "first": self.first,
            "sequence": self.sequence,
            "head": self.head,
            "files": self.files,
            "fault": fault
            and {
                "kind": fault.kind,
                "file": fault.file,
                "line": fault.line,
                "message": fault.message,
            },
            "notes": self.notes,
        }


def verify(state_dir: Path, expected: Link | None = None) -> Report:
    """Verify the log of a state directory, which a daemon may be appending to; blocks.

    ``expected`` is a line that was known before, from somewhere else, and has to be there. Raises OSError
    if there is no log, or what it is verified with cannot be read.
    """
    head, report = _once(state_dir, expected)
    for _ in range(_TRIES):
        if report.fault is None:
            break
        before = head
        head, report = _once(state_dir, expected)
        if head == before:
            break
    return report


def _once(state_dir: Path, expected: Link | None) -> tuple[Head, Report]:
    key = read_key(state_dir)
    if key is None:
        raise FileNotFoundError(
            f"there is no key of an audit log in {state_dir}: nothing was recorded yet, or it is gone;"
            " if the daemon's runtime.state_dir is another, name that by --state-dir"
        )
    head = read_head(state_dir, key)
    if head is None:
        raise FileNotFoundError(f"the end of the audit log, audit.head in {state_dir}, is gone")
    return head, _Reading(key, head, expected).report()


class _FaultError(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(slots=True)
class _Strange:
    """Lines in a row that do not follow the chain."""

    file: str
    line: int
    first: bytes
    expected: int
    content: bytes = b""  # as much of it as crashes may leave, and a byte more
    size: int = 0
    hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)
    expected_later: bool = False  # one of them has the number that was expected first

    def add(self, line: bytes) -> None:
        self.expected_later |= bool(self.size) and sequence_of(line) == self.expected
        self.size += len(line)
        self.hash.update(line)
        self.content = (self.content + line)[: TORN_BYTES + 1]

    @property
    def torn(self) -> bool:
        """Whether crashes may have left them."""
        return is_torn(self.content, self.expected)

    def is_told(self, size: object, digest: object) -> bool:
        return (size, digest) == (self.size, self.hash.hexdigest())


class _Reading:
    """One pass over all files."""

    def __init__(self, key: bytes, head: Head, expected: Link | None) -> None:
        self._key = key
        self._head = head
        self._folder = Path(head.folder)
        self._known = [link for link in (expected, head.link) if link is not None]
        self._expected = expected
        self._link = START
        self._first = 0
        self._records = 0
        self._strange: _Strange | None = None
        self._notes: list[str] = []

    def report(self) -> Report:
        names = file_names(self._folder)
        fault = None
        try:
            self._check_names(names)
            for name in names:
                self._read(name, last=name == names[-1])
            self._check_end(names[-1] if names else "")
        except _FaultError as error:
            fault = error.fault
        return Report(
            self._records,
            self._first,
            self._link.sequence,
            self._link.hash,
            len(names),
            fault,
            tuple(self._notes),
        )

    def _check_names(self, names: tuple[str, ...]) -> None:
        first = self._head.first
        if first and (not names or names[0] > first):
            self._fail("removed", first, 0, f"the file is gone from {self._folder}")

    def _read(self, name: str, *, last: bool) -> None:
        starts_at = first_number(name)
        gap = bool(self._first) and starts_at > self._link.sequence + 1
        for number, line in self._lines(name):
            if is_too_long(line):
                self._fail("edited", name, number, "the line is longer than any record")
            if gap:
                self._come_back(name, line, starts_at)
                gap = False
            else:
                self._take(name, number, line, starts_at)
        if gap:
            self._fail_gap(name, starts_at)
        if self._strange is not None and not self._may_stand(self._strange, last=last):
            self._fail_strange(self._strange)

    def _lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        try:
            with (self._folder / name).open("rb") as file:
                yield from enumerate(lines_of(file), 1)
        except FileNotFoundError:
            self._fail("removed", name, 0, f"the file is gone from {self._folder}")

    def _take(self, name: str, number: int, line: bytes, starts_at: int) -> None:
        before = self._link if self._first else anchor(line, starts_at)
        link = follow(self._key, before, line)
        if link is None:
            expected = self._link.sequence + 1 if self._first else starts_at
            self._strange = self._strange or _Strange(name, number, line, expected)
            self._strange.add(line)
            return
        if self._strange is not None:
            self._check_recovered(self._strange, line)
        if not self._first:
            self._first = link.sequence
            self._check_known(before, name, number)
            self._note_move(link, line)
        self._go_on(link, name, number, line)

    def _go_on(self, link: Link, name: str, number: int, line: bytes) -> None:
        self._strange, self._link = None, link
        self._records += 1
        self._check_known(link, name, number)
        if b'"event":"altered"' in line:
            self._check_altered(json.loads(line), name, number)

    def _check_altered(self, record: JsonObject, name: str, number: int) -> None:
        """What the log itself found to be gone is not to be seen in any other way."""
        match record:
            case {"event": "altered", "known": {"sequence": int(known)}}:
                self._fail(
                    "cut",
                    name,
                    number,
                    f"record {known} was there once, and was not when record {self._link.sequence} was"
                    " written: an earlier copy was put back, or the log was cut or taken away",
                )
            case _:
                pass

    def _come_back(self, name: str, line: bytes, starts_at: int) -> None:
        """Take the first line of a file that says that the log was elsewhere in between, and prove it.

        It cannot be proved where the log did not know any more how it had left this folder.
        """
        before = anchor(line, starts_at)
        link = follow(self._key, before, line)
        record = json.loads(line) if link is not None else {}
        where = f"records {self._link.sequence + 1} to {starts_at - 1} are elsewhere, the last of them in"
        match record:
            case {
                "moved_from": str(came_from),
                "after": {
                    "sequence": self._link.sequence,
                    "hash": self._link.hash,
                    "torn_bytes": int(size),
                    "torn_hash": str(digest),
                },
            } if self._is_torn_by(size, digest):
                self._notes.append(f"{where} {came_from}")
            case {"moved_from": str(came_from), **others} if (
                "after" not in others and self._may_end()
            ):
                self._notes.append(f"{where} {came_from}; {_UNPROVED}")
            case _:
                self._fail_gap(name, starts_at)
        if link is not None:
            self._check_known(before, name, 1)
            self._go_on(link, name, 1, line)

    def _may_end(self) -> bool:
        """Whether no more than a crash may have left stands behind the last line."""
        strange = self._strange
        if strange is not None and strange.torn:
            self._note_torn(strange)
        return strange is None or strange.torn

    def _is_torn_by(self, size: int, digest: str) -> bool:
        """Whether just that stands behind the last line before the log went elsewhere."""
        strange = self._strange
        if strange is None:
            return size == 0
        if not strange.is_told(size, digest):
            return False
        self._note_torn(strange)
        return True

    def _check_known(self, link: Link, name: str, number: int) -> None:
        """Compare with all that is known of the same record from elsewhere."""
        if any(each.sequence == link.sequence and each != link for each in self._known):
            self._fail(
                "other", name, number, f"record {link.sequence} is another than is known of it"
            )

    def _check_recovered(self, strange: _Strange, line: bytes) -> None:
        """Lines that a crash left over are named by the line behind them."""
        match json.loads(line):
            case {"event": "recovered", "torn_bytes": size, "torn_hash": digest} if strange.is_told(
                size, digest
            ):
                self._note_torn(strange)
            case _:
                strange.expected_later = True
                self._fail_strange(strange)

    def _note_torn(self, strange: _Strange) -> None:
        where = f"{strange.file}:{strange.line}"
        self._notes.append(f"{where}: {strange.size} bytes that a crash left unfinished")

    def _note_move(self, link: Link, line: bytes) -> None:
        if b'"moved_from":' in line and (came_from := json.loads(line).get("moved_from")):
            self._notes.append(f"records before {link.sequence} are in {came_from}")

    def _may_stand(self, strange: _Strange, *, last: bool) -> bool:
        """Whether it may stand at the end of a file: in the last one, behind all that is known."""
        if not strange.torn:
            return False
        if not last:
            return True  # what follows has to tell of it
        if self._link.sequence < self._head.sequence:
            return False
        self._notes.append(
            f"{strange.file}:{strange.line}: the last line is unfinished, as after a crash or during a write"
        )
        return True

    def _check_end(self, name: str) -> None:
        if self._link.sequence < self._head.sequence:
            self._fail(
                "cut",
                name,
                0,
                f"the log ends after record {self._link.sequence}, and had {self._head.sequence}",
            )
        expected = self._expected
        if expected is not None and expected.sequence > self._link.sequence:
            self._fail(
                "cut",
                name,
                0,
                f"the log ends after record {self._link.sequence}, and record {expected.sequence} was known",
            )
        if expected is not None and expected.sequence < self._first:
            self._notes.append(f"record {expected.sequence} is in a file that is not kept any more")

    def _fail_strange(self, strange: _Strange) -> NoReturn:
        expected, found = strange.expected, sequence_of(strange.first)
        if found is None or found == expected:
            self._fail("edited", strange.file, strange.line, f"record {expected} was edited")
        if found < expected or strange.expected_later:
            self._fail(
                "reordered",
                strange.file,
                strange.line,
                f"record {found} stands where record {expected} belongs",
            )
        self._fail_missing(strange.file, strange.line, found)

    def _fail_gap(self, name: str, starts_at: int) -> NoReturn:
        """Fail for a file whose first number is too high."""
        if self._strange is not None:
            self._fail_strange(self._strange)
        if self._link.sequence >= self._head.sequence:
            self._fail(
                "edited", name, 0, f"the log ends with record {self._link.sequence}: no file of it"
            )
        self._fail_missing(name, 0, starts_at)

    def _fail_missing(self, name: str, line: int, found: int) -> NoReturn:
        gone = self._link.sequence + 1
        many = f"record {gone} is" if found - gone == 1 else f"records {gone} to {found - 1} are"
        self._fail("removed", name, line, f"{many} missing in front of record {found}")

    def _fail(self, kind: Kind, name: str, line: int, message: str) -> NoReturn:
        raise _FaultError(Fault(kind, name, line, message))
