"""No link within the state folder is followed, as it may be of somebody who may write there alone."""

import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from session_runtime.audit.store import AuditStore
from session_runtime.config.history import History
from session_runtime.errors import ToolError
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.state_files import fault_of, make_state_folder, open_state_file
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.owner import Owner

APPEND = os.O_WRONLY | os.O_APPEND
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def append_file(state: Path) -> None:
    os.close(open_state_file(state / "sub" / "file", APPEND, state))


def add_audit(state: Path) -> None:
    AuditStore(state, state / "sub", 1_000, 1).append([{"event": "x"}])


def add_deep_audit(state: Path) -> None:
    AuditStore(state, state / "sub" / "deep", 1_000, 1).append([{"event": "x"}])


WRITERS: list[Callable[[Path], object]] = [
    append_file,
    add_audit,
    add_deep_audit,
    lambda state: make_state_folder(state / "sub", state),
    lambda state: make_state_folder(state / "sub" / "deep", state),
    lambda state: History(state / "sub").add({"a": 1}, "d", NOW),
]


def linked(folder: Path) -> tuple[Path, Path]:
    """A state folder in which ``sub`` leads to a folder of somebody else, and that one."""
    state, elsewhere = folder / "state", folder / "elsewhere"
    for each in (state, elsewhere):
        each.mkdir()
    (state / "sub").symlink_to(elsewhere)
    return state, elsewhere


@pytest.mark.parametrize("write", WRITERS)
def test_a_folder_that_is_a_link_within_the_state_folder_is_not_followed(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    state, elsewhere = linked(tmp_path)
    with pytest.raises(OSError, match="sub is a symbolic link") as refused:
        write(state)
    told = fault_of(refused.value, state / "sub", "")
    assert (refused.value.errno, refused.value.filename) == (errno.ELOOP, str(state / "sub"))
    assert told.endswith("; remove it, or put what it leads to in its place")
    assert [*elsewhere.iterdir()] == []


async def test_the_log_of_a_server_is_not_written_where_a_link_leads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state, elsewhere = linked(tmp_path)
    (elsewhere / "a.log").write_bytes(b"theirs\n")
    log = StderrLog(state / "sub" / "a.log", Shown())
    log.write(b"hello\n")
    await log.aclose()
    assert (elsewhere / "a.log").read_bytes() == b"theirs\n"
    assert "sub is a symbolic link" in caplog.text


def test_a_link_that_leads_into_the_state_folder_is_followed_no_further(tmp_path: Path) -> None:
    state, elsewhere = linked(tmp_path)
    (tmp_path / "alias").symlink_to(state)
    with pytest.raises(OSError, match="sub is a symbolic link"):
        open_state_file(tmp_path / "alias" / "sub" / "file", APPEND, state)
    os.close(open_state_file(tmp_path / "alias" / "file", APPEND, state))
    make_state_folder(tmp_path / "alias" / "own" / "deep", state)
    assert sorted(path.name for path in state.iterdir()) == ["file", "own", "sub"]
    assert [*elsewhere.iterdir()] == []


def test_links_outside_of_the_state_folder_are_the_operators_and_followed(tmp_path: Path) -> None:
    state, elsewhere = linked(tmp_path)
    (tmp_path / "disk").symlink_to(elsewhere)
    make_state_folder(tmp_path / "disk" / "logs", state)
    os.close(open_state_file(tmp_path / "disk" / "logs" / "file", APPEND, state))
    assert [*(elsewhere / "logs").iterdir()] == [elsewhere / "logs" / "file"]


def test_what_is_no_folder_is_told_by_its_whole_path(tmp_path: Path) -> None:
    state, _ = linked(tmp_path)
    (state / "file").touch()
    for make in (
        lambda: make_state_folder(state / "file", state),
        lambda: open_state_file(state / "file" / "a", APPEND, state),
    ):
        with pytest.raises(NotADirectoryError) as refused:
            make()
        assert refused.value.filename == str(state / "file")
    with pytest.raises(FileNotFoundError) as absent:
        open_state_file(state / "none" / "a", APPEND, state)
    assert absent.value.filename == str(state / "none")


def test_notes_are_not_kept_where_a_link_leads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state, elsewhere = linked(tmp_path)
    (state / "notes.sqlite3").symlink_to(elsewhere / "theirs")
    with pytest.raises(ToolError) as refused:
        NoteStore(state / "notes.sqlite3", 10, 100).of(Owner("bot", "u1")).add("buy milk")
    assert (refused.value.code, [*elsewhere.iterdir()]) == ("notes.unusable", [])
    assert "notes.sqlite3 is a symbolic link" in caplog.text
    assert "remove it, or put what it leads to in its place" in caplog.text


def test_rights_that_an_owner_lacks_himself_are_told_as_such(tmp_path: Path) -> None:
    refused = PermissionError(errno.EACCES, "Permission denied", str(tmp_path))
    told = fault_of(refused, tmp_path, "mend that")
    assert told.endswith(f"its rights do not allow that: chmod u+rwX {tmp_path}")
