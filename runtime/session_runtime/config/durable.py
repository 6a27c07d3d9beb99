"""Replaces a file as a whole: whoever reads it finds the old content or the new, whatever happens.

What may be replaced, and by what, is decided in ``edit`` and ``history``.
"""

import fcntl
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

Step = Callable[[str], None]
"""Told of each step of a write before the next one; for tests that stop there."""

_LEFTOVER: Final = re.compile(r"\..+\.[0-9a-f]{16}\.new")
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES: Final = 4096
_RIGHTS: Final = 0o7777


def no_step(name: str) -> None:
    """Take note of nothing."""
    del name


@contextmanager
def own_folder(folder: Path) -> Iterator[int]:
    """Keep other writers of this module out of a folder, and give a handle of it.

    What writers left that were killed is removed. Raises OSError.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some network file systems lock no folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        for name in (path.name for path in folder.iterdir()):
            if _LEFTOVER.fullmatch(name):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=handle)
        yield handle
    finally:
        os.close(handle)


def replace_file(
    folder: int, name: str, content: bytes, *, like: Path | None = None, step: Step = no_step
) -> None:
    """Write ``content`` under a passing name and rename it to ``name`` once it is on the disk.

    The new file belongs to whom ``like`` belongs to, with the same rights; without one, nobody else
    may read it. Raises OSError with nothing changed; PermissionError if the owner cannot be kept.
    """
    passing = f".{name}.{secrets.token_hex(8)}.new"
    try:
        with os.fdopen(os.open(passing, _NEW, 0o600, dir_fd=folder), "wb") as file:
            step("made")
            if like is not None:
                _take_after(file.fileno(), like)
                step("given away")
            for start in range(0, len(content), _BLOCK_BYTES):
                file.write(content[start : start + _BLOCK_BYTES])
                file.flush()
                step("block written")
            os.fsync(file.fileno())
            step("on disk")
        os.replace(passing, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(passing, dir_fd=folder)
        raise
    step("renamed")
    os.fsync(folder)
    step("done")


def _take_after(descriptor: int, like: Path) -> None:
    status = like.stat()
    os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & _RIGHTS)
    if sys.platform == "linux":
        for name in os.listxattr(like):  # access lists among them
            with suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(like, name))
