"""Notes survive crashes and neighbours, and a file that cannot be used is told in words."""

import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from session_runtime.errors import ToolError
from session_runtime.toolbox import notes_database
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.notes_database import MIGRATIONS, migrate
from session_runtime.toolbox.owner import Owner
from tests.shape.tree import PACKAGE

ANN = Owner("local", "ann")
ADD_FOR_EVER = """
import sys
from pathlib import Path
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.owner import Owner

notes = NoteStore(Path(sys.argv[1]), 10_000, 1000).of(Owner("local", "ann"))
while True:
    print(notes.add("a note of some words " * 20).id, flush=True)
"""
DIE_INSIDE = """
import os, signal, sys
from pathlib import Path
from session_runtime.toolbox import notes
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.owner import Owner

def die(text):
    os.kill(os.getpid(), signal.SIGKILL)

mine = NoteStore(Path(sys.argv[1]), 10_000, 1000).of(Owner("local", "ann"))
mine.add("kept")
notes.words = die  # comes after the note itself was written
mine.add("lost")
"""
ADD_TWENTY = """
import sys
from pathlib import Path
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.owner import Owner

notes = NoteStore(Path(sys.argv[1]), 10_000, 1000, busy_s=60).of(Owner("local", "ann"))
print(*[notes.add("from a process").id for _ in range(20)])
"""


@pytest.fixture
def store(tmp_path: Path) -> NoteStore:
    return NoteStore(tmp_path / "notes.sqlite3", 10_000, 1000, busy_s=60)


def process(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


def is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        return bool(verdict == "ok")


def ids(store: NoteStore) -> list[int]:
    return sorted(note.id for note in store.of(ANN).list(1000))


def test_a_killed_process_loses_at_most_the_note_at_hand(store: NoteStore) -> None:
    with process(ADD_FOR_EVER, store.path) as adding:
        assert adding.stdout is not None
        told = [int(next(adding.stdout)) for _ in range(10)]
        adding.kill()
        told += map(int, adding.stdout)
    assert ids(store)[: len(told)] == told == list(range(1, len(told) + 1))
    assert len(ids(store)) <= len(told) + 1
    assert is_sound(store.path)
    assert store.of(ANN).add("after the crash").id == len(ids(store))


def test_a_note_that_was_half_written_is_not_there(store: NoteStore) -> None:
    with process(DIE_INSIDE, store.path) as dying:
        assert dying.wait() == -signal.SIGKILL
    assert [note.text for note in store.of(ANN).list(10)] == ["kept"]
    assert is_sound(store.path)
    assert store.of(ANN).add("next").id == 2


def test_processes_share_a_file(store: NoteStore) -> None:
    with process(ADD_TWENTY, store.path) as one, process(ADD_TWENTY, store.path) as other:
        outputs = [one.communicate()[0], other.communicate()[0]]
    told = [int(number) for output in outputs for number in output.split()]
    assert sorted(told) == ids(store) == list(range(1, 41))
    assert is_sound(store.path)


def test_threads_share_a_store_from_its_first_use_on(store: NoteStore) -> None:
    def add(number: int) -> int:
        owner = Owner("local", f"user {number % 2}")
        return store.of(owner).add(f"note {number}").id

    with ThreadPoolExecutor(32) as threads:
        given = sorted(threads.map(add, range(64)))
    assert given == sorted([*range(1, 33), *range(1, 33)])
    assert is_sound(store.path)


def test_a_file_that_another_program_holds_is_told_as_passing(tmp_path: Path) -> None:
    store = NoteStore(tmp_path / "notes.sqlite3", 10, 100, busy_s=0)
    notes = store.of(ANN)
    notes.add("before")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for use in (lambda: notes.add("x"), lambda: notes.list(1), lambda: notes.search("x", 1)):
            with pytest.raises(ToolError, match="Trying again in a few seconds may help") as caught:
                use()
            assert caught.value.code == "notes.locked"
    assert notes.add("afterwards").id == 2


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 100)


def _torn(path: Path) -> None:
    NoteStore(path, 10, 100).of(ANN).add("x")
    path.write_bytes(path.read_bytes()[:5000])


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (something TEXT)")


@pytest.mark.parametrize("spoil", [_garbage, _torn, _newer, _foreign, Path.mkdir])
def test_a_file_that_cannot_be_used_is_told_and_left_as_it_is(
    tmp_path: Path, spoil, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "notes.sqlite3"
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    notes = NoteStore(path, 10, 100).of(ANN)
    for use in (lambda: notes.add("x"), lambda: notes.search("x", 1), lambda: notes.delete(1)):
        with pytest.raises(ToolError, match="The notes cannot be used") as caught:
            use()
        assert caught.value.code == "notes.unusable"
        assert str(tmp_path) not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3
    assert str(path) in caplog.text


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="The notes cannot be used"):
        NoteStore(tmp_path / "file" / "notes.sqlite3", 10, 100).of(ANN).list(1)


def test_an_older_file_is_brought_to_the_newest_version_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = NoteStore(tmp_path / "notes.sqlite3", 10, 100)
    store.of(ANN).add("from before")
    newer: Sequence[Sequence[str]] = (*MIGRATIONS, ("ALTER TABLE notes ADD COLUMN colour TEXT",))
    monkeypatch.setattr(notes_database, "MIGRATIONS", newer)
    for _ in range(2):
        assert [note.text for note in store.of(ANN).list(10)] == ["from before"]
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(newer),)
        assert connection.execute("SELECT colour FROM notes").fetchall() == [(None,)]


def test_a_migration_that_fails_changes_nothing() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, MIGRATIONS)
        broken = (*MIGRATIONS, ("CREATE TABLE more (x)", "this is not SQL"))
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, broken)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'more'").fetchall()
        assert tables == []
