"""Reaches a folder below a root step by step, so that no link, mount or swap leads elsewhere (SEC-1).

Which folders are roots is decided in ``roots``; what is done with the files in ``contents``.
"""

import os
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.toolbox.files.names import shown
from session_runtime.toolbox.files.roots import Inode, Root

NOT_FOUND: Final = "files.not_found"

# On Linux, a descriptor for going on only, which needs no permission to list the folder.
_STEP: Final = (os.O_PATH if sys.platform == "linux" else os.O_RDONLY) | os.O_DIRECTORY


@dataclass(frozen=True, slots=True)
class Target:
    """A path that a tool gave, taken apart; as text, it is what may be shown of it.

    ``own`` is the folder of the user, if the root has one for each: on disk it stands before ``parts``.
    """

    root: Root
    own: tuple[str, ...]
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return shown("/".join((self.root.name, *self.parts)))


@contextmanager
def open_folder(target: Target, hidden: Set[Inode], *, create: bool = False) -> Iterator[int]:
    """Hold a descriptor of a folder, for opening what is in it.

    Every folder on the way, from ``/`` on, is opened in the one before and has to be a real one: a link
    is refused even if it was put there a moment ago. So are the folders of ``hidden``, and those on
    another file system than the root. ``create`` makes what is missing below the root. Raises ToolError,
    and OSError for what the system refuses.
    """
    descent = _Descent(target.root, hidden)
    try:
        descent.enter_root()
        for name in target.own:
            descent.enter(name, replace(target, parts=()), create)
        for end, name in enumerate(target.parts, 1):
            descent.enter(name, replace(target, parts=target.parts[:end]), create)
        yield descent.descriptor
    finally:
        os.close(descent.descriptor)


class _Descent:
    """A descriptor that goes down, folder by folder; whoever made it closes it."""

    def __init__(self, root: Root, hidden: Set[Inode]) -> None:
        self._root = root
        self._hidden = hidden
        self._device: int | None = None
        self.descriptor = os.open("/", _STEP)

    def enter_root(self) -> None:
        """Go to the root; its path was without links, so a link on it is somebody's swap."""
        for name in self._root.path.parts[1:]:
            try:
                self._go(name)
            except OSError:
                raise ToolError(
                    f"The root {shown(self._root.name)} is out of order: its folder is missing or was "
                    "replaced by a link. Only an operator can repair that.",
                    code="files.root_lost",
                ) from None
            refuse_hidden(os.fstat(self.descriptor), self._hidden, shown(self._root.name))
        self._device = os.fstat(self.descriptor).st_dev

    def enter(self, name: str, folder: Target, create: bool) -> None:
        """Go to ``name``; ``folder`` is what it is called in messages."""
        try:
            status = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            if not create:
                raise ToolError(f"There is no folder {folder}.", code=NOT_FOUND) from None
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.descriptor)
        else:
            _refuse_no_folder(status, folder)
        self._go(name)
        status = os.fstat(self.descriptor)
        refuse_hidden(status, self._hidden, folder)
        if status.st_dev != self._device:
            raise forbidden(folder, "is on another file system than its root")

    def _go(self, name: str) -> None:
        inner = os.open(name, _STEP | os.O_NOFOLLOW, dir_fd=self.descriptor)
        os.close(self.descriptor)
        self.descriptor = inner


def forbidden(path: object, why: str) -> ToolError:
    """The error for what exists and is not opened."""
    return ToolError(f"{path} {why}. File tools do not open it.", code="files.forbidden")


def refuse_hidden(status: os.stat_result, hidden: Set[Inode], path: object) -> None:
    """Refuse what belongs to the daemon, whatever name or mount led to it."""
    if (status.st_dev, status.st_ino) in hidden:
        raise forbidden(path, "belongs to the runtime itself")


def _refuse_no_folder(status: os.stat_result, path: object) -> None:
    if S_ISLNK(status.st_mode):
        raise forbidden(path, "is a link")
    if not S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a file, not a folder.", code="files.wrong_kind")


def file_fault(status: os.stat_result) -> str | None:
    """Say why something that is no folder is not opened as a file, or None."""
    if S_ISLNK(status.st_mode):
        return "is a link"
    if not S_ISREG(status.st_mode):
        return "is no regular file"
    if status.st_nlink > 1:
        return "has further names (hard links)"
    return None


def refuse_no_file(status: os.stat_result, hidden: Set[Inode], path: object) -> None:
    """Refuse links, pipes, sockets, devices, files with several names, and what is hidden."""
    if S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a folder, not a file.", code="files.wrong_kind")
    fault = file_fault(status)
    if fault is not None:
        raise forbidden(path, fault)
    refuse_hidden(status, hidden, path)
