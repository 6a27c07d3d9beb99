"""Reads and writes regular files in a folder that is open; how it was reached is decided in ``walk``.

``folder`` is its descriptor; the name in it is the last part of ``target``. All raise ToolError, and
OSError for what the system refuses.
"""

import os
import secrets
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from stat import S_IMODE
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.toolbox.files.names import TEMPORARY
from session_runtime.toolbox.files.roots import Inode
from session_runtime.toolbox.files.walk import Target, refuse_no_file

# A pipe that took the file's place must not be waited for, a terminal not become that of the daemon.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_RIGHTS: Final = 0o777
_WRITE: Final = 0o222
_NEW_RIGHTS: Final = 0o666  # less what the umask of the process takes away


def status(folder: int, target: Target, hidden: Set[Inode]) -> os.stat_result:
    """Look at a file without opening it; ToolError if it is no regular one, with one name."""
    found = os.stat(target.parts[-1], dir_fd=folder, follow_symlinks=False)
    refuse_no_file(found, hidden, target)
    return found


def read(folder: int, target: Target, hidden: Set[Inode], limit: int) -> bytes:
    """Read a whole file; ToolError ``files.too_large`` above ``limit`` bytes."""
    content, size = _beginning(folder, target, hidden, limit + 1)
    if len(content) > limit:
        raise ToolError(
            f"{target} has {size} bytes; files of up to {limit} bytes are read.",
            code="files.too_large",
        )
    return content


def _beginning(folder: int, target: Target, hidden: Set[Inode], length: int) -> tuple[bytes, int]:
    """Read up to ``length`` bytes; the second value is the size of the file.

    It is looked at before it is opened, because opening a device can have effects, and again afterwards,
    because it may have been swapped in between.
    """
    status(folder, target, hidden)
    with os.fdopen(os.open(target.parts[-1], _READ, dir_fd=folder), "rb") as file:
        found = os.fstat(file.fileno())
        refuse_no_file(found, hidden, target)
        return file.read(length), found.st_size


def create(folder: int, target: Target, content: bytes) -> None:
    """Write a new file; FileExistsError if there is something of this name.

    The name is taken first, by an empty file, so that nothing can be overwritten. A kill between these
    two steps leaves the empty file.
    """
    name = target.parts[-1]
    with _temporary(folder, content, None) as temporary:
        os.close(os.open(name, _NEW, dir_fd=folder))
        try:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(name, dir_fd=folder)
            raise


def replace(
    folder: int, target: Target, hidden: Set[Inode], content: bytes, expected: bytes | None = None
) -> None:
    """Put new content in the place of a file, which keeps its rights and, where possible, its owner.

    With ``expected`` only if that is what the file holds when nothing but the last step is left to do:
    otherwise ToolError ``files.changed``.
    """
    old = status(folder, target, hidden)
    if not old.st_mode & _WRITE:
        raise ToolError(f"{target} is write-protected.", code="files.read_only")
    with _temporary(folder, content, old) as temporary:
        if expected is not None and not _holds(folder, target, hidden, expected):
            raise ToolError(
                f"{target} was changed by somebody else meanwhile and is left as it is. Read it again.",
                code="files.changed",
            )
        os.rename(temporary, target.parts[-1], src_dir_fd=folder, dst_dir_fd=folder)


def _holds(folder: int, target: Target, hidden: Set[Inode], expected: bytes) -> bool:
    return _beginning(folder, target, hidden, len(expected) + 1)[0] == expected


@contextmanager
def _temporary(folder: int, content: bytes, like: os.stat_result | None) -> Iterator[str]:
    """Write and flush a file under a passing name, and remove it unless it is renamed."""
    name = f"{TEMPORARY}{secrets.token_hex(8)}"
    rights = _NEW_RIGHTS if like is None else S_IMODE(like.st_mode) & _RIGHTS
    try:
        with os.fdopen(os.open(name, _NEW, rights, dir_fd=folder), "wb") as file:
            if like is not None:
                _take_after(file.fileno(), like, rights)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _take_after(descriptor: int, like: os.stat_result, rights: int) -> None:
    with suppress(PermissionError):  # only a privileged daemon can give files away
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, rights)
