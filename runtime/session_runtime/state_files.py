"""Makes files and folders of the state directory so that they belong to whom it belongs (REL-5).

An operator's command may run as root beside a daemon that does not: what it leaves has to stay the
daemon's. What stands in the files is decided by those who write them.
"""

import errno
import os
from pathlib import Path
from typing import Final

from session_runtime.wire.control import LOCK

_ROOT: Final = 0
_REFUSED: Final = frozenset({errno.EACCES, errno.EPERM})


class ForeignStateError(PermissionError):
    """The state belongs to another user, and what is written would be of no use to that one."""

    def __init__(self, owner: int) -> None:
        super().__init__(
            errno.EPERM,
            f"the state folder belongs to uid {owner}: run the command as the user of the daemon",
        )

    def __str__(self) -> str:
        """What is wrong and the way out, without a number."""
        return str(self.strerror)


def keep_owner(made: int, folder: Path | int) -> None:
    """Give what was just made, a descriptor, to whom the state in ``folder`` belongs.

    Nothing is given to root, who needs nothing, nor where there is no such folder. Raises
    ForeignStateError where only root could give it.
    """
    owner = _owner(folder)
    if owner is None or owner.st_uid in (_ROOT, os.fstat(made).st_uid):
        return
    try:
        os.fchown(made, owner.st_uid, owner.st_gid)
    except PermissionError:
        raise ForeignStateError(owner.st_uid) from None


def _owner(folder: Path | int) -> os.stat_result | None:
    """Whose the state is: the owner of the daemon's lock, of the folder if there is none or it is root's."""
    try:
        found = os.stat(folder)  # noqa: PTH116 - it may be a descriptor
    except FileNotFoundError:
        return None
    lock = _lock_in(folder)
    return found if lock is None or lock.st_uid == _ROOT else lock


def _lock_in(folder: Path | int) -> os.stat_result | None:
    try:
        if isinstance(folder, int):
            return os.stat(LOCK, dir_fd=folder, follow_symlinks=False)
        return (folder / LOCK).lstat()
    except OSError:
        return None


def make_state_folder(folder: Path, state_dir: Path) -> None:
    """Make a folder of the state, with those above it, that only its owner may enter; raises OSError.

    One that is there stays as it is.
    """
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(new):
        try:
            each.mkdir(mode=0o700)
        except FileExistsError:
            continue  # another process was faster
        made = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            keep_owner(made, state_dir)
        except ForeignStateError:
            each.rmdir()
            raise
        finally:
            os.close(made)
    folder.mkdir(exist_ok=True)  # raises where it is no folder


def open_state_file(path: Path, flags: int, state_dir: Path) -> int:
    """Open a file of the state by a descriptor; one that is not there is made, for its owner alone.

    A link is followed only outside ``state_dir``, where an operator named the file: within, it may be of
    somebody who may write there, but not where it leads. Raises OSError, ELOOP for such a link, and
    ForeignStateError with no file made. The lock of a daemon that may write
    into another user's folder is its own: it says whose the state is from then on.
    """
    if _is_within(path, state_dir):
        flags |= os.O_NOFOLLOW
    while True:
        try:
            return _open_known(path, flags & ~os.O_CREAT)
        except FileNotFoundError:
            pass
        try:
            made = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if path.is_symlink():
                raise
            continue  # another process was faster
        try:
            keep_owner(made, state_dir)
        except ForeignStateError:
            if path.name == LOCK:
                return made
            os.close(made)
            path.unlink(missing_ok=True)
            raise
        return made


def _is_within(path: Path, state_dir: Path) -> bool:
    """Whether a path leads into the folder, as it is written or as its folder is found."""
    found = path.parent.resolve().is_relative_to(state_dir.resolve())
    return found or path.is_relative_to(state_dir)


def _open_known(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags)
    except OSError as error:
        if error.errno != errno.ELOOP or not path.is_symlink():
            raise
        told = f"{path.name} is a symbolic link, which is not followed in the state folder"
        raise OSError(errno.ELOOP, told, str(path)) from None


def way_out(error: BaseException, path: Path, otherwise: str) -> str:
    """What to do about a file or folder of the state: ``otherwise``, unless its rights are what is wrong.

    Whoever lacks rights must not be told to delete what he cannot read.
    """
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "remove it, or put what it leads to in its place"
    if not isinstance(error, OSError) or error.errno not in _REFUSED:
        return otherwise
    if isinstance(error, ForeignStateError):
        return "it says how"
    seen, owner = _seen(path)
    return (
        f"{seen} belongs to uid {owner} and this process is uid {os.geteuid()}: run the command as the"
        " user of the daemon, or chown it to that user"
    )


def fault_of(error: OSError | ValueError, path: Path, otherwise: str) -> str:
    """What is wrong with this file of the state, and what to do about it: see ``way_out``."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return f"{path}: {why}; {way_out(error, path, otherwise)}"


def told_of(error: OSError) -> str:
    """What is wrong with a file of the state, and the way out where its rights are what is wrong."""
    if isinstance(error, ForeignStateError) or error.errno not in _REFUSED or not error.filename:
        return str(error)
    return f"{error.filename}: {error.strerror}; {way_out(error, Path(error.filename), '')}"


def _seen(path: Path) -> tuple[Path, int]:
    """The path itself, or what is nearest above it and can be looked at, and whose it is."""
    for each in (path, *path.parents):
        try:
            return each, each.stat().st_uid
        except OSError:
            continue
    return path, _ROOT
