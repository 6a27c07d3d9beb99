"""Notes, each with one owner who alone can find, list and delete it (NET-2c).

How they are found is decided in ``notes_words``, how they are kept in ``notes_database``.
"""

import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.services import Note
from session_runtime.toolbox.notes_database import Begin, transaction
from session_runtime.toolbox.notes_words import Wanted, rank, wanted, words
from session_runtime.toolbox.owner import Owner
from session_runtime.wire import well_formed

FILE: Final = "notes.sqlite3"

_BUSY_S: Final = 5.0
_LARGEST_ID: Final = 2**63 - 1
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class NoteStore:
    """The notes of all owners in one file, which is made when it is first needed.

    Any number of threads and processes may use it at once; a call waits up to ``busy_s`` seconds for
    others. ``max_notes`` is per owner, ``max_chars`` per note; ``clock`` gives Unix time.
    """

    path: Path
    max_notes: int
    max_chars: int
    busy_s: float = _BUSY_S
    clock: Callable[[], float] = time.time

    def of(self, owner: Owner) -> "OwnNotes":
        """What one owner may see and change."""
        return OwnNotes(self, owner)


@dataclass(frozen=True, slots=True)
class OwnNotes:
    """The notes of one owner, as ``services.Notes``.

    Raises ToolError: ``notes.invalid`` for a text or query that is no use, ``notes.full``,
    ``notes.not_found``, and what ``notes_database.transaction`` raises.
    """

    store: NoteStore
    owner: Owner

    def add(self, text: str, tags: tuple[str, ...] = ()) -> Note:
        """Keep a note; what it is given as id is never used again."""
        text, tags = self._checked(text), _clean_all(tags)
        with self._transaction("BEGIN IMMEDIATE") as connection:
            owner, last = _enrol(connection, self.owner)
            count = _count(connection, owner)
            if count >= self.store.max_notes:
                raise ToolError(
                    f"The note was not kept: there are {count} notes, and no more than"
                    f" {self.store.max_notes} are kept. One must be deleted first.",
                    code="notes.full",
                )
            note = Note(last + 1, text, tags, self.store.clock())
            _insert(connection, owner, note)
        return note

    def search(self, query: str, limit: int) -> tuple[Note, ...]:
        """The notes that match the words of ``query``, in any order of words, best first."""
        terms = wanted(query)
        if not terms:
            raise ToolError(
                "The query has no word in it. Give words that the note may have.",
                code="notes.invalid",
            )
        with self._transaction("BEGIN") as connection:
            owner = _owner_id(connection, self.owner)
            if owner is None:
                return ()
            found = [_holders(connection, owner, term) for term in terms]
            best = rank(found, _count(connection, owner))[:limit]
            return tuple(_get(connection, owner, note) for note in best)

    def list(self, limit: int, before: int | None = None) -> tuple[Note, ...]:
        """Notes, newest first; ``before`` is the id to continue from."""
        below = _LARGEST_ID if before is None else min(before, _LARGEST_ID)
        with self._transaction("BEGIN") as connection:
            owner = _owner_id(connection, self.owner)
            rows = connection.execute(
                "SELECT id, text, tags, created FROM notes WHERE owner = ? AND id < ?"
                " ORDER BY id DESC LIMIT ?",
                (owner, max(below, 0), limit),
            )
            return tuple(map(_note, rows))

    def delete(self, note_id: int) -> Note:
        """Remove a note and return it."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            owner = _owner_id(connection, self.owner)
            if owner is None or not 0 < note_id < _LARGEST_ID:
                raise _not_found(note_id)
            note = _get(connection, owner, note_id)
            connection.execute("DELETE FROM notes WHERE owner = ? AND id = ?", (owner, note_id))
            connection.execute("DELETE FROM words WHERE owner = ? AND note = ?", (owner, note_id))
        return note

    def _transaction(self, begin: Begin) -> AbstractContextManager[sqlite3.Connection]:
        return transaction(self.store.path, self.store.busy_s, begin)

    def _checked(self, text: str) -> str:
        text = _clean(text)
        if not text:
            raise ToolError("The note is blank. Write what is to be kept.", code="notes.invalid")
        if len(text) > self.store.max_chars:
            raise ToolError(
                f"The note was not kept: it has {len(text)} characters, and a note may have"
                f" {self.store.max_chars}. Shorten it, or make several notes of it.",
                code="notes.invalid",
            )
        return text


def _clean(text: str) -> str:
    """Text as it is kept: line ends alike, no other controls, no halves of characters."""
    lines = well_formed(text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub(" ", lines).strip()


def _clean_all(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for tag in map(_clean, tags) if tag))


def _owner_id(connection: sqlite3.Connection, owner: Owner) -> int | None:
    row = connection.execute(
        "SELECT id FROM owners WHERE principal = ? AND user = ?", owner.key
    ).fetchone()
    return None if row is None else int(row[0])


def _enrol(connection: sqlite3.Connection, owner: Owner) -> tuple[int, int]:
    """The owner's number, given at the first note, and the id of the last note."""
    connection.execute("INSERT OR IGNORE INTO owners (principal, user) VALUES (?, ?)", owner.key)
    number, last = connection.execute(
        "SELECT id, last_note FROM owners WHERE principal = ? AND user = ?", owner.key
    ).fetchone()
    return int(number), int(last)


def _count(connection: sqlite3.Connection, owner: int) -> int:
    (count,) = connection.execute("SELECT count(*) FROM notes WHERE owner = ?", (owner,)).fetchone()
    return int(count)


def _insert(connection: sqlite3.Connection, owner: int, note: Note) -> None:
    tags = json.dumps(note.tags, ensure_ascii=False)
    connection.execute(
        "INSERT INTO notes (owner, id, text, tags, created) VALUES (?, ?, ?, ?, ?)",
        (owner, note.id, note.text, tags, note.created),
    )
    connection.executemany(
        "INSERT INTO words (owner, word, note) VALUES (?, ?, ?)",
        ((owner, word, note.id) for word in words(" ".join((note.text, *note.tags)))),
    )
    connection.execute("UPDATE owners SET last_note = ? WHERE id = ?", (note.id, owner))


def _holders(connection: sqlite3.Connection, owner: int, term: Wanted) -> dict[int, float]:
    """The notes that have a word of a query: 1 for the word itself, 0.5 for a longer one."""
    rows = connection.execute(
        "SELECT note, max(word IN (?, ?)) FROM words"
        " WHERE owner = ? AND word BETWEEN ? AND ? GROUP BY note",
        (*term.exact, owner, term.first, term.last),
    )
    return {int(note): 1.0 if exact else 0.5 for note, exact in rows}


def _get(connection: sqlite3.Connection, owner: int, note: int) -> Note:
    row = connection.execute(
        "SELECT id, text, tags, created FROM notes WHERE owner = ? AND id = ?", (owner, note)
    ).fetchone()
    if row is None:
        raise _not_found(note)
    return _note(row)


def _note(row: tuple[int, str, str, float]) -> Note:
    number, text, tags, created = row
    return Note(number, text, tuple(json.loads(tags)), created)


def _not_found(note_id: int) -> ToolError:
    return ToolError(
        f"There is no note {note_id}. Use an id that a list or search of notes gave.",
        code="notes.not_found",
    )
