"""Replaces a file as a whole: whoever reads it finds the old content or the new, whatever happens.

What may be replaced, and by what, is decided in ``edit`` and ``history``.
"""

import errno
import fcntl
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from session_runtime.state_files import keep_owner, make_state_folder, open_state_folder

Step = Callable[[str], None]
"""Told of each step of a write before the next one; for tests that stop there."""

_LEFTOVER: Final = re.compile(r"\..+\.[0-9a-f]{16}\.new")
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES: Final = 4096
_WAIT_S: Final = 2.0
_AGAIN_S: Final = 0.01
_LOCKED_BY_ANOTHER: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})
_CONFIRMS_NO_FOLDERS: Final = frozenset(
    {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
)
"""What some network and shared file systems answer: there is nothing that they could promise."""
_RIGHTS: Final = 0o7777


def no_step(name: str) -> None:
    """Take note of nothing."""
    del name


class UnconfirmedError(OSError):
    """The file was replaced, but not confirmed to be on the disk: a crash of the machine may undo it."""


def make_folder(folder: Path, state_dir: Path | None = None) -> None:
    """Make a folder that only its owner may enter, with those above it, and see them on the disk.

    One that is there stays as it is; a new one inside of ``state_dir`` belongs to whom that belongs. In a
    folder that may not be read, or where folders cannot be
    confirmed, it is made all the same. Raises OSError.
    """
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    make_state_folder(folder, state_dir or folder)
    for each in reversed(new):
        with suppress(PermissionError):
            _confirm_at(each.parent)


def _confirm_at(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _confirm(handle)
    finally:
        os.close(handle)


def _confirm(folder: int) -> None:
    """See on the disk what a folder lists, as far as its file system can tell; raises OSError."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _CONFIRMS_NO_FOLDERS:
            raise


@contextmanager
def own_folder(
    folder: Path, wait_s: float = _WAIT_S, *, state_dir: Path | None = None
) -> Iterator[int]:
    """Keep other writers of this module out of a folder, and give a handle of it.

    Below ``state_dir`` no link to it is followed.

    What writers left that were killed is removed. Raises OSError; TimeoutError if somebody else keeps
    the folder for longer than ``wait_s`` seconds, which everybody can who may read it.
    """
    handle = open_state_folder(folder, state_dir or folder)
    try:
        _lock(folder, handle, time.monotonic() + wait_s)
        for name in (path.name for path in folder.iterdir()):
            if _LEFTOVER.fullmatch(name):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=handle)
        yield handle
    except OSError as error:
        if isinstance(error.filename, str):  # a name in the folder
            error.filename = str(folder / error.filename)
        raise
    finally:
        os.close(handle)


def _lock(folder: Path, handle: int, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _LOCKED_BY_ANOTHER:
                return  # some network file systems lock no folders
            if time.monotonic() >= deadline:
                reason = "another process keeps this folder locked"
                raise TimeoutError(errno.ETIMEDOUT, reason, str(folder)) from None
            time.sleep(_AGAIN_S)
        else:
            return


def replace_file(
    folder: int,
    name: str,
    content: bytes,
    *,
    like: Path | None = None,
    of_state: bool = False,
    step: Step = no_step,
) -> None:
    """Write ``content`` under a passing name and rename it to ``name`` once it is on the disk.

    The new file belongs to whom ``like`` belongs to, with the same rights; without one, nobody else
    may read it, and one ``of_state`` belongs to whom the folder belongs. Raises OSError with nothing
    changed, PermissionError if the owner cannot be kept; but UnconfirmedError once the new file is in its
    place.
    """
    passing = f".{name}.{secrets.token_hex(8)}.new"
    try:
        with os.fdopen(os.open(passing, _NEW, 0o600, dir_fd=folder), "wb") as file:
            step("made")
            if like is not None:
                _take_after(file.fileno(), like)
                step("given away")
            elif of_state:
                keep_owner(file.fileno(), folder)
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
    try:
        _confirm(folder)
    except OSError as error:
        raise UnconfirmedError(error.errno, error.strerror, name) from error
    step("done")


def _take_after(descriptor: int, like: Path) -> None:
    status = like.stat()
    os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & _RIGHTS)
    if sys.platform == "linux":
        _take_attributes(descriptor, like)


def _take_attributes(descriptor: int, like: Path) -> None:
    """Copy extended attributes, access lists among them, where the file system has any."""
    try:
        names = os.listxattr(like)
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            os.setxattr(descriptor, name, os.getxattr(like, name))
