"""Files that are replaced as a whole."""

import fcntl
import os
from pathlib import Path

import pytest

from session_runtime.config.durable import own_folder, replace_file


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
