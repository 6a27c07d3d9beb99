"""Editing the configuration file: checked before it is written, written as a whole, or refused."""

import fcntl
import os
import stat
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from session_runtime.config import edit, fingerprint
from session_runtime.config.durable import own_folder
from session_runtime.config.edit import create, keys, open_file, plan, write
from session_runtime.config.written import REMOVED, Difference
from session_runtime.errors import (
    ConfigError,
    PermanentError,
    RequestError,
    SessionRuntimeError,
    TransientError,
)
from tests.config.editing import Editor, in_mounts, set_values, swept

TEXT = "# mine\n[ask]\nmax_steps = 1 # few\n"
NEW = "# mine\n[ask]\nmax_steps = 2 # few\n"
WRITES = """
from session_runtime.config import edit
from session_runtime.config.load import load

def prepare(folder):
    (folder / "config.toml").write_text("# mine\\n[ask]\\nmax_steps = 1 # few\\n")
    (folder / "config.toml").chmod(0o640)

def write(folder, step):
    path = folder / "config.toml"
    check = lambda text: load(path, named=True, env={}, text=text)
    wanted = edit.keys({"ask.max_steps": 2})
    edit.write(edit.plan(edit.open_file(path), wanted, check), step)

sweep(prepare, write)
"""
SETS = """
$PYTHON -c '
import sys, pathlib
from session_runtime.config import edit
from session_runtime.config.load import load
path = pathlib.Path(sys.argv[1])
check = lambda text: load(path, named=True, env={}, text=text)
edit.write(edit.plan(edit.open_file(path), edit.keys({"ask.max_steps": 2}), check))
' "$2"
"""


def nested(depth: int) -> list[Any]:
    """A list with a list inside, and so on."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    editor = Editor(tmp_path / "config.toml")
    editor.write(TEXT)
    return editor


def refused(editor: Editor, code: str, **values: object) -> str:
    """An edit that is refused with this code and changes nothing; gives the message."""
    before = editor.path.read_bytes()
    with pytest.raises(SessionRuntimeError) as caught:
        editor.set(**values)
    assert caught.value.code == code
    assert editor.path.read_bytes() == before
    assert [path for path in editor.path.parent.iterdir() if path.name.endswith(".new")] == []
    return str(caught.value)


@pytest.mark.requirement("REL-6")
def test_a_value_is_set_and_told_with_the_moment_it_acts(editor: Editor) -> None:
    edit = editor.set(ask__max_steps=2)
    assert editor.read() == NEW
    assert edit.differences == (Difference("ask.max_steps", 1, 2, "next ask"),)


def test_nothing_is_written_if_nothing_changes(editor: Editor) -> None:
    before = editor.path.stat()
    assert editor.set(ask__max_steps=1, http__port=REMOVED).changes_nothing
    assert editor.path.stat() == before


def test_a_plan_writes_nothing(editor: Editor) -> None:
    edit = plan(open_file(editor.path), keys({"ask.max_steps": 2}), editor.check)
    assert (edit.content.decode(), edit.changes_nothing) == (NEW, False)
    assert editor.read() == TEXT


@pytest.mark.requirement("REL-6")
def test_byte_order_mark_line_ends_rights_and_owner_stay(editor: Editor) -> None:
    editor.write("\ufeff[ask]\r\nmax_steps = 1\r\n")
    editor.path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(editor.path, 12345, 54321)
    before = editor.path.stat()
    editor.set(ask__max_steps=2)
    after = editor.path.stat()
    assert editor.read() == "\ufeff[ask]\r\nmax_steps = 2\r\n"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_extended_attributes_stay(editor: Editor) -> None:
    try:
        os.setxattr(editor.path, "user.note", b"mine")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    editor.set(ask__max_steps=2)
    assert os.getxattr(editor.path, "user.note") == b"mine"


def test_a_link_stays_a_link_and_the_file_behind_it_changes(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = editor.path.rename(tmp_path / "real" / "base.toml")
    editor.path.symlink_to("real/base.toml")
    editor.set(ask__max_steps=2)
    assert editor.path.is_symlink()
    assert real.read_text() == NEW


@pytest.mark.requirement("REL-6")
def test_what_would_be_a_bad_configuration_is_not_written(editor: Editor) -> None:
    assert refused(editor, "config.invalid", ask__max_steps=0) == (
        "ask.max_steps: must be at least 1 (given: 0)"
    )


@pytest.mark.requirement("REL-2")
@pytest.mark.parametrize("content", ["", " \n", "\ufeff"])
def test_a_file_that_was_emptied_is_not_made_good_by_an_edit(editor: Editor, content: str) -> None:
    editor.write(content)
    message = refused(editor, "config.invalid", ask__max_steps=2)
    assert message.startswith("config.toml: is empty, as a save that failed leaves it")
    assert "config rollback NUMBER" in message


@pytest.mark.requirement("NET-3")
def test_a_key_in_two_spellings_is_refused(editor: Editor) -> None:
    with pytest.raises(RequestError, match=r"ask\.max_steps is given twice, in two spellings"):
        set_values(editor.path, {"ask.max_steps": 5, '"ask".max_steps': 6}, editor.check)


def test_a_file_with_a_fault_may_be_mended(editor: Editor) -> None:
    editor.write("[ask]\nmax_stepz = 1\nmax_steps = 0\n")
    assert "max_stepz" in refused(editor, "config.invalid", ask__max_steps=2)
    editor.set(ask__max_stepz=REMOVED, ask__max_steps=2)
    assert editor.read() == "[ask]\nmax_steps = 2\n"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("http.prt", 1, "http.prt: unknown key (given: 1); did you mean port?"),
        ("http.prt", REMOVED, "no such key: http.prt; did you mean http.port?"),
        ("modles.a.model", "m", "modles: unknown section (given: a table); did you mean models?"),
        (
            "models.gpt-4.1.model",
            "m",
            'models.gpt-4.1: a name with dots is written in quotes: models."gpt-4.1"',
        ),
        ("ask.max steps", 1, "'ask.max steps' is not one dotted key; write it like"),
    ],
)
def test_a_key_that_does_not_exist_is_refused(
    editor: Editor, key: str, value: object, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        set_values(editor.path, {key: value}, editor.check)
    assert caught.value.code == "config.unknown_key"
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("models.m.extra_body.x", None, "models.m.extra_body.x: TOML has no null: leave it out"),
        ("models.m.extra_body.x", {"a": [None]}, "models.m.extra_body.x: TOML has no null"),
        ("runtime.name", "\udcff", "'runtime.name' is given what is not UTF-8"),
        ("models.m.extra_body.x", {"\udcff": 1}, "'models.m.extra_body.x' is given what is not"),
        ('features."\udcff"', True, "'features.\"\\udcff\"' is given what is not UTF-8"),
        ("models.m.extra_body.x", nested(33), "models.m.extra_body.x: is nested more than 32"),
        ("models.m.extra_body.x", nested(5_000), "models.m.extra_body.x: is nested more than 32"),
    ],
    ids=["null", "null inside", "text", "name", "key", "deep", "very deep"],
)
def test_what_no_file_can_say_is_refused(
    editor: Editor, key: str, value: object, message: str
) -> None:
    with pytest.raises(RequestError) as caught:
        set_values(editor.path, {key: value}, editor.check)
    assert str(caught.value).startswith(message)
    assert editor.read() == TEXT


@pytest.mark.parametrize("mode", [0o444, 0o400])
def test_a_write_protected_file_is_refused(editor: Editor, mode: int) -> None:
    editor.path.chmod(mode)
    message = refused(editor, "config.read_only", ask__max_steps=2)
    assert message == (
        f"{editor.path} is read-only: change it where it is made (an image, a ConfigMap, a management"
        " tool), or permit writing"
    )


def test_a_file_on_a_read_only_file_system_is_refused(editor: Editor) -> None:
    mounts = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && '
    done = in_mounts(mounts + SETS, str(editor.path.parent), str(editor.path))
    assert f"PermanentError: {editor.path} is read-only: change it where it is made" in done.stderr
    assert editor.read() == TEXT


def test_a_folder_that_is_read_only_is_refused(editor: Editor, tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text(TEXT)
    mounts = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && mount --bind "$3" "$2" && '
    folder = tmp_path / "folder"
    folder.mkdir()
    inside = editor.path.rename(folder / "config.toml")
    done = in_mounts(mounts + SETS, str(folder), str(inside), str(outside))
    assert f"PermanentError: {folder} is read-only, and an edit is a new file in it" in done.stderr


def test_a_file_that_is_a_mount_point_is_refused(editor: Editor, tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text(TEXT)
    done = in_mounts(f'mount --bind "$1" "$2" && {SETS}', str(outside), str(editor.path))
    assert f"PermanentError: {editor.path} is itself a mount point, so no other" in done.stderr
    assert outside.read_text() == TEXT


def test_a_mount_point_is_known_from_the_table_of_mounts(
    editor: Editor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"63 43 254:0 /a {editor.path} rw,relatime - ext4 /dev/vda rw\n")
    monkeypatch.setattr(fingerprint, "MOUNTS", mounts)
    assert "mount its folder instead" in refused(editor, "config.in_place", ask__max_steps=2)


def test_a_file_with_another_name_is_refused(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "other.toml").hardlink_to(editor.path)
    message = refused(editor, "config.in_place", ask__max_steps=2)
    assert message.startswith(f"{editor.path} has another name, a hard link, so no other file can")


@pytest.mark.requirement("REL-6")
def test_what_somebody_else_wrote_meanwhile_is_left_alone(editor: Editor, tmp_path: Path) -> None:
    edit = plan(open_file(editor.path), keys({"ask.max_steps": 2}), editor.check)
    editor.write("[ask]\nmax_steps = 9\n")
    with pytest.raises(TransientError) as caught:
        write(edit)
    assert caught.value.code == "config.changed"
    assert editor.read() == "[ask]\nmax_steps = 9\n"


@pytest.mark.parametrize(
    ("fails", "code", "text"),
    [("write", "config.not_written", TEXT), ("folder", "config.not_confirmed", NEW)],
)
def test_what_the_disk_does_not_take_is_told_with_what_the_file_says_now(
    editor: Editor, monkeypatch: pytest.MonkeyPatch, fails: str, code: str, text: str
) -> None:
    works = os.fsync

    def full(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        if is_folder is (fails == "folder"):
            raise OSError(28, "No space left on device")
        works(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TransientError, match="No space left on device") as caught:
        editor.set(ask__max_steps=2)
    assert (caught.value.code, editor.read()) == (code, text)


def test_a_folder_that_somebody_keeps_locked_is_told(
    editor: Editor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit, "own_folder", partial(own_folder, wait_s=0.01))
    other = os.open(editor.path.parent, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_SH)
        with pytest.raises(TransientError, match="is locked by another process") as caught:
            editor.set(ask__max_steps=2)
    finally:
        os.close(other)
    assert (caught.value.code, editor.read()) == ("config.locked", TEXT)


def test_a_link_that_leads_elsewhere_meanwhile_is_noticed(editor: Editor, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(TEXT)
    editor.path.unlink()
    editor.path.symlink_to("one")
    edit = plan(open_file(editor.path), keys({"ask.max_steps": 2}), editor.check)
    editor.path.unlink()
    editor.path.symlink_to("two")
    with pytest.raises(TransientError, match="was changed meanwhile"):
        write(edit)
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == [TEXT, TEXT]


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to(path.name)])
def test_what_is_no_file_is_told(tmp_path: Path, make: object) -> None:
    path = tmp_path / "config.toml"
    make(path)  # type: ignore[operator]
    with pytest.raises(ConfigError, match="cannot be read: "):
        open_file(path)


def test_a_file_that_is_absent_is_told_with_the_way_to_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="session-runtime config init writes one"):
        open_file(tmp_path / "config.toml")


def test_a_new_file_is_for_its_owner_and_takes_no_place(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert create(path, TEXT) == path
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (TEXT, 0o600)
    with pytest.raises(RequestError) as caught:
        create(path, NEW)
    assert caught.value.code == "config.exists"
    assert path.read_text() == TEXT


def test_a_failure_while_writing_leaves_the_file_and_nothing_else(editor: Editor) -> None:
    def full(name: str) -> None:
        if name == "block written":
            raise OSError(28, "No space left on device")

    edit = plan(open_file(editor.path), keys({"ask.max_steps": 2}), editor.check)
    with pytest.raises(TransientError, match="No space left"):
        write(edit, full)
    assert [path.name for path in editor.path.parent.iterdir()] == ["config.toml"]
    assert editor.read() == TEXT


def test_a_place_that_cannot_be_taken_is_refused(editor: Editor) -> None:
    def busy(name: str) -> None:
        if name == "on disk":
            raise OSError(16, "Device or resource busy")

    edit = plan(open_file(editor.path), keys({"ask.max_steps": 2}), editor.check)
    with pytest.raises(PermanentError, match="is itself a mount point"):
        write(edit, busy)


@pytest.mark.requirement("REL-6")
def test_a_kill_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    assert swept(tmp_path, WRITES) == 8
    seen = set()
    for case in tmp_path.iterdir():
        editor = Editor(case / "config.toml")
        seen.add(editor.read())
        assert stat.S_IMODE(editor.path.stat().st_mode) == 0o640
        editor.set(ask__max_steps=3)
        assert [path.name for path in case.iterdir()] == ["config.toml"]
    assert seen == {TEXT, NEW}
