"""Makes files and folders of the state directory so that they belong to whom it belongs (REL-5).

An operator's command may run as root beside a daemon that does not: what it leaves has to stay the
daemon's. What stands in the files is decided by those who write them.
"""

import errno
import os
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.wire.control import LOCK

_ROOT: Final = 0
_REFUSED: Final = frozenset({errno.EACCES, errno.EPERM})
_MAYBE_LINK: Final = frozenset({errno.ELOOP, errno.ENOTDIR})
"""What the system answers where a link is not followed: the second where a folder was wanted."""
_FOLDER: Final = os.O_DIRECTORY | os.O_CLOEXEC
_ENTER: Final = _FOLDER | (os.O_PATH if sys.platform == "linux" else os.O_RDONLY)
"""To go on from a folder, which need not be read for that."""


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

    One that is there stays as it is. A new state folder that root makes belongs to whom the folder belongs
    that it is in. Links are followed as ``open_state_file`` does.
    """
    place = _place(folder, state_dir)
    _make_followed(folder if place is None else place.top, state_dir)
    if place is not None:
        os.close(_entered(place, state_dir))


def open_state_folder(folder: Path, state_dir: Path) -> int:
    """Open a folder of the state by a descriptor, following links as ``open_state_file`` does."""
    place = _place(folder, state_dir)
    if place is None:
        return os.open(folder, os.O_RDONLY | _FOLDER)
    found = _entered(place)
    try:
        return os.open(".", os.O_RDONLY | _FOLDER, dir_fd=found)
    except OSError as error:
        error.filename = str(folder)
        raise
    finally:
        os.close(found)


def open_state_file(path: Path, flags: int, state_dir: Path) -> int:
    """Open a file of the state by a descriptor; one that is not there is made, for its owner alone.

    A link is followed only outside ``state_dir``, where an operator named the file: within, it may be of
    somebody who may write there, but not where it leads, be it the file or a folder above. Raises OSError,
    ELOOP for such a link, and ForeignStateError with no file made. The lock of a daemon that may write
    into another user's folder is its own: it says whose the state is from then on.
    """
    place = _place(path.parent, state_dir)
    if place is None:
        return _open_or_make(_At(None, path), flags, state_dir)
    folder = _entered(place)
    try:
        return _open_or_make(_At(folder, path), flags | os.O_NOFOLLOW, state_dir)
    finally:
        os.close(folder)


@dataclass(frozen=True, slots=True)
class _Place:
    """A folder in the state: ``top`` is the state folder, as it is named, ``names`` lead on from there."""

    top: Path
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class _At:
    """What stands at ``path``: in a folder that was opened, or where the path leads if that is None."""

    folder: int | None
    path: Path

    @property
    def name(self) -> str:
        """What the system is told."""
        return str(self.path) if self.folder is None else self.path.name

    def is_link(self) -> bool:
        """Whether it is a symbolic link now."""
        try:
            found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISLNK(found.st_mode)


def _place(folder: Path, state_dir: Path) -> _Place | None:
    """Where a folder is in the state, as it is written or as it is found; None if it is outside."""
    if folder.is_relative_to(state_dir):
        return _Place(state_dir, folder.relative_to(state_dir).parts)
    state = os.path.realpath(state_dir)
    for each in (*reversed(folder.parents), folder):
        if os.path.realpath(each) == state:
            return _Place(each, folder.relative_to(each).parts)
    found = Path(os.path.realpath(folder))
    if not found.is_relative_to(state):
        return None
    return _Place(Path(state), found.relative_to(state).parts)


def _make_followed(folder: Path, state_dir: Path) -> None:
    """Make a folder with those above it, wherever links lead."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    is_first = os.geteuid() == _ROOT and not state_dir.exists()
    for each in reversed(new):
        _make(_At(None, each), each.parent if is_first else state_dir)
    folder.mkdir(exist_ok=True)  # raises where it is no folder


def _make(at: _At, of: Path) -> None:
    """Make one folder, unless it is there; it belongs to whom the state in ``of`` belongs."""
    try:
        os.mkdir(at.name, 0o700, dir_fd=at.folder)
    except FileExistsError:
        return
    made = os.open(at.name, os.O_RDONLY | _FOLDER | os.O_NOFOLLOW, dir_fd=at.folder)
    try:
        keep_owner(made, of)
    except ForeignStateError:
        os.rmdir(at.name, dir_fd=at.folder)
        raise
    finally:
        os.close(made)


def _entered(place: _Place, make_for: Path | None = None) -> int:
    """Open a folder step by step, so that nobody can put a link in its way; makes it for that state."""
    path, folder = place.top, os.open(place.top, _ENTER)
    for name in place.names:
        path = path / name
        at = _At(folder, path)
        try:
            if make_for is not None and not _is_there(at):
                _make(at, make_for)
            there = _open(at, _ENTER | os.O_NOFOLLOW)
        finally:
            os.close(folder)
        folder = there
    return folder


def _is_there(at: _At) -> bool:
    try:
        os.stat(at.name, dir_fd=at.folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _open_or_make(at: _At, flags: int, state_dir: Path) -> int:
    while True:
        try:
            return _open(at, flags & ~os.O_CREAT)
        except FileNotFoundError:
            pass
        try:
            made = _open(at, flags | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            if at.is_link():
                raise
            continue  # another process was faster
        try:
            keep_owner(made, state_dir)
        except ForeignStateError:
            if at.path.name == LOCK:
                return made
            os.close(made)
            with suppress(FileNotFoundError):
                os.unlink(at.name, dir_fd=at.folder)
            raise
        return made


def _open(at: _At, flags: int) -> int:
    """Open what is there; an error names its whole path, and tells if it is a link."""
    try:
        return os.open(at.name, flags, 0o600, dir_fd=at.folder)
    except OSError as error:
        error.filename = str(at.path)
        if not flags & os.O_NOFOLLOW or error.errno not in _MAYBE_LINK or not at.is_link():
            raise
        raise _link_error(at.path) from None


def refuse_link(path: Path) -> None:
    """Raise OSError, ELOOP, if a file in the state is a link; for who opens it by a library."""
    if path.is_symlink():
        raise _link_error(path)


def _link_error(path: Path) -> OSError:
    told = f"{path.name} is a symbolic link, which is not followed in the state folder"
    return OSError(errno.ELOOP, told, str(path))


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
    if owner == os.geteuid():
        return f"{seen} is this user's own, but its rights do not allow that: chmod u+rwX {seen}"
    return (
        f"{seen} belongs to uid {owner} and this process is uid {os.geteuid()}: run the command as the"
        " user of the daemon, or chown it to that user"
    )


def fault_of(error: OSError | ValueError, path: Path, otherwise: str) -> str:
    """What is wrong with this file of the state, and what to do about it: see ``way_out``."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return f"{path}: {why}; {way_out(error, path, otherwise)}"


def told_of(error: OSError) -> str:
    """What is wrong with a file of the state, and the way out where that is its rights, or a link."""
    known = _REFUSED | {errno.ELOOP}
    if isinstance(error, ForeignStateError) or error.errno not in known or not error.filename:
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
