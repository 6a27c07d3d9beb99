"""Files that are replaced as a whole."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from session_runtime.config.durable import (
    UnconfirmedError,
    make_folder,
    own_folder,
    replace_file,
)


def test_one_writer_at_a_time_owns_a_folder(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        with own_folder(tmp_path), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(other)


def test_only_what_was_left_by_a_write_is_cleaned_up(tmp_path: Path) -> None:
    names = ["config.toml", ".config.toml.new", ".config.toml.0123456789abcdeg.new", "x.new"]
    for name in (*names, ".config.toml.0123456789abcdef.new"):
        (tmp_path / name).write_text("x")
    with own_folder(tmp_path):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_large_file_is_written_whole(tmp_path: Path) -> None:
    content = os.urandom(20_000)
    with own_folder(tmp_path) as folder:
        replace_file(folder, "large", content)
    assert (tmp_path / "large").read_bytes() == content


def failing(call: Callable[[int], None], *, for_folders: bool) -> Callable[[int], None]:
    """As ``call``, but what it is asked of folders, or of files, fails as on a broken disk."""

    def called(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) is for_folders:
            raise OSError(errno.EIO, "Input/output error")
        call(descriptor)

    return called


def test_content_that_is_not_on_the_disk_takes_no_files_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "fsync", failing(os.fsync, for_folders=False))
    with own_folder(tmp_path) as folder, pytest.raises(OSError, match="Input/output") as failed:
        replace_file(folder, "file", b"new")
    assert not isinstance(failed.value, UnconfirmedError)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "old")]


def test_a_file_that_was_replaced_without_a_confirmation_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "fsync", failing(os.fsync, for_folders=True))
    with own_folder(tmp_path) as folder, pytest.raises(UnconfirmedError):
        replace_file(folder, "file", b"new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "new")]


def refusing(number: int) -> Callable[[int], None]:
    """As on a file system that does not confirm folders, but files."""
    works = os.fsync

    def called(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        works(descriptor)

    return called


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_where_folders_cannot_be_confirmed_files_are_replaced_and_folders_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "fsync", refusing(number))
    make_folder(tmp_path / "a" / "b")
    with own_folder(tmp_path / "a" / "b") as folder:
        replace_file(folder, "file", b"new")
    assert (tmp_path / "a" / "b" / "file").read_text() == "new"


def test_a_folder_below_one_that_cannot_be_read_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = os.open

    def closed(path: Path, flags: int, mode: int = 0o777, dir_fd: int | None = None) -> int:
        if path == tmp_path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return works(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", closed)
    make_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


def test_a_folder_that_a_broken_disk_does_not_confirm_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(os.fsync, for_folders=True))
    with pytest.raises(OSError, match="Input/output"):
        make_folder(tmp_path / "a")


def test_a_folder_that_somebody_keeps_is_waited_for_no_longer_than_told(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="another process keeps this folder locked"):
            own_folder(tmp_path, wait_s=0.02).__enter__()
    finally:
        os.close(other)
    with own_folder(tmp_path, wait_s=0.0):
        pass


def test_where_there_are_no_extended_attributes_a_file_is_replaced_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(path: Path) -> list[str]:
        raise OSError(errno.ENOTSUP, "Operation not supported", str(path))

    monkeypatch.setattr(os, "listxattr", unsupported)
    (tmp_path / "file").write_text("old")
    with own_folder(tmp_path) as folder:
        replace_file(folder, "file", b"new", like=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "new"


def test_folders_that_are_made_are_on_the_disk_in_the_ones_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    make_folder(folder)
    assert synced == [tmp_path.stat().st_ino, folder.parent.stat().st_ino]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
