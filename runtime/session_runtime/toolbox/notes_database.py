"""The file that holds notes: how it is made and opened, its schema, and what is said if that fails.

A connection lives as long as one transaction. Opening one takes a tenth of a millisecond, and nothing has
to be shared between threads, closed at the end, or opened again when the file was replaced.
"""

import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Literal

from session_runtime.errors import ToolError
from session_runtime.state_files import keep_owner, make_state_folder, refuse_link, told_of

Begin = Literal["BEGIN", "BEGIN IMMEDIATE"]
Migration = Sequence[str]

MIGRATIONS: Final[Sequence[Migration]] = (
    (
        # user is JSON: null for somebody unnamed, which is nobody's name
        "CREATE TABLE owners (id INTEGER PRIMARY KEY, principal TEXT NOT NULL, user TEXT NOT NULL,"
        " last_note INTEGER NOT NULL DEFAULT 0, UNIQUE (principal, user))",
        "CREATE TABLE notes (owner INTEGER NOT NULL, id INTEGER NOT NULL, text TEXT NOT NULL,"
        " tags TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (owner, id))",
        "CREATE TABLE words (owner INTEGER NOT NULL, word TEXT NOT NULL, note INTEGER NOT NULL,"
        " PRIMARY KEY (owner, word, note)) WITHOUT ROWID",
    ),
)
"""What brings a file from each version (``user_version``, 0 when it is new) to the next."""

_HELD: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

_log = logging.getLogger(__name__)


@contextmanager
def transaction(path: Path, busy_s: float, begin: Begin) -> Iterator[sqlite3.Connection]:
    """One transaction, committed unless the body raises; a body that writes begins immediately.

    ToolError ``notes.locked`` tells that another process held the file for longer than ``busy_s``
    seconds, ``notes.unusable`` that the file is damaged or cannot be made, read or written.
    """
    try:
        _make(path)
        with closing(sqlite3.connect(path, timeout=busy_s, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            migrate(connection, MIGRATIONS)
            with connection:
                connection.execute(begin)
                yield connection
    except (sqlite3.DatabaseError, OSError) as error:
        raise _in_words(error, path) from error


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Bring a file to the newest version, whole or not at all.

    DatabaseError for a file that a newer program wrote.
    """
    if _version(connection) == len(migrations):
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        version = _version(connection)  # another process may have been faster
        if version > len(migrations):
            raise sqlite3.DatabaseError(f"a newer program wrote it (version {version})")
        for migration in migrations[version:]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _make(path: Path) -> None:
    """Make an empty file that nobody else may read.

    It gets its name only after it was closed here: to close a file drops all locks that this process has
    on it, and another thread may have some as soon as it can open it.
    """
    refuse_link(path)
    if path.exists():
        return
    make_state_folder(path.parent, path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        try:
            keep_owner(handle, path.parent)
        finally:
            os.close(handle)
        path.hardlink_to(name)
    except FileExistsError:
        pass  # another thread or process was faster
    finally:
        Path(name).unlink()


def _reason(error: Exception) -> str:
    return told_of(error) if isinstance(error, OSError) else str(error)


def _in_words(error: sqlite3.DatabaseError | OSError, path: Path) -> ToolError:
    """What the model is told; only the log names the file."""
    match error:
        case sqlite3.OperationalError(sqlite_errorcode=code) if code & 0xFF in _HELD:
            return ToolError(
                "Another program holds the notes just now. Trying again in a few seconds may help.",
                code="notes.locked",
            )
    _log.error("notes in %s cannot be used: %s", path, _reason(error))
    return ToolError(
        "The notes cannot be used: what holds them is damaged or cannot be read or written. Trying"
        " again will not help until the operator has repaired it; go on without notes.",
        code="notes.unusable",
    )
