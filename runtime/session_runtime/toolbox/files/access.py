"""The folders that are open to tools, bound to one owner: what ``context.files`` is.

How files are reached and written safely is decided in ``walk`` and ``contents``.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from session_runtime.config.files import FilesSettings
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ToolError
from session_runtime.services import FileEntry, Listing
from session_runtime.toolbox.files import contents
from session_runtime.toolbox.files.listing import list_folder
from session_runtime.toolbox.files.names import own_folders, parts_of, shown
from session_runtime.toolbox.files.roots import (
    Inode,
    Place,
    Root,
    inode,
    open_roots,
    protected_places,
)
from session_runtime.toolbox.files.walk import NOT_FOUND, Target, open_folder
from session_runtime.toolbox.owner import Owner

_LOCKS: Final = 64


def _new_locks() -> tuple[threading.Lock, ...]:
    return tuple(threading.Lock() for _ in range(_LOCKS))


@dataclass(frozen=True, slots=True)
class FileRoots:
    """The open folders of one configuration; nothing in it needs to be closed.

    Who changes a file holds the one of ``locks`` that its path falls on.
    """

    settings: FilesSettings
    roots: Mapping[str, Root]
    protected: tuple[Place, ...]
    locks: tuple[threading.Lock, ...] = field(default_factory=_new_locks, repr=False)

    def of(self, owner: Owner) -> "UserFiles":
        """The folders as one owner has them."""
        return UserFiles(self, own_folders(owner))

    def hidden(self) -> frozenset[Inode]:
        """What belongs to the daemon, wherever it is at this moment."""
        found = (inode(place.path) for place in self.protected if place.whole)
        return frozenset(each for each in found if each is not None)

    def lock(self, target: Target) -> threading.Lock:
        """The lock of a file; files may share one."""
        return self.locks[hash((target.root.path, target.own, target.parts)) % len(self.locks)]


def open_files(snapshot: ConfigSnapshot, bundled: Path) -> FileRoots | None:
    """Open [files], None without a root; ConfigError for each root that is missing or overlaps (SEC-1)."""
    protected = protected_places(snapshot, bundled)
    roots = open_roots(snapshot, protected)
    return FileRoots(snapshot.settings.files, roots, protected) if roots else None


def idle_tools(opened: FileRoots | None) -> tuple[str, ...]:
    """Patterns of the bundled tools that have nothing to work on."""
    if opened is None:
        return ("files.*",)
    writable = any(root.writable for root in opened.roots.values())
    return () if writable else ("files.write", "files.edit")


@dataclass(frozen=True, slots=True)
class UserFiles:
    """``Files`` for one owner; it holds nothing open between calls.

    ``own`` leads to the owner's folder from each root that has one for everybody, None if no user was
    stated.
    """

    opened: FileRoots
    own: tuple[str, ...] | None

    def read(self, path: str) -> bytes:
        """Read a file, see ``Files``."""
        target, hidden = self._file(path), self.opened.hidden()
        with _told(target), open_folder(_folder_of(target), hidden) as folder:
            return contents.read(folder, target, hidden, self.opened.settings.max_read_bytes)

    def write(self, path: str, content: bytes, *, replace: bool) -> None:
        """Write a file, see ``Files``."""
        target, hidden = self._writable(path), self.opened.hidden()
        self._check_size(target, content)
        with (
            self.opened.lock(target),
            _told(target),
            open_folder(_folder_of(target), hidden, create=True) as folder,
        ):
            if replace and _exists(folder, target):
                contents.replace(folder, target, hidden, content)
            else:
                contents.create(folder, target, content)

    def change(self, path: str, edit: Callable[[bytes], bytes]) -> None:
        """Change a file, see ``Files``."""
        target, hidden = self._writable(path), self.opened.hidden()
        limit = self.opened.settings.max_read_bytes
        with (
            self.opened.lock(target),
            _told(target),
            open_folder(_folder_of(target), hidden) as folder,
        ):
            before = contents.read(folder, target, hidden, limit)
            after = edit(before)
            self._check_size(target, after)
            contents.replace(folder, target, hidden, after, expected=before)

    def list(self, path: str) -> Listing:
        """List a folder, see ``Files``."""
        parts = parts_of(path)
        if not parts:
            return Listing(tuple(self._roots()))
        target, hidden = self._target(parts), self.opened.hidden()
        try:
            with _told(target), open_folder(target, hidden) as folder:
                return list_folder(folder, target, hidden, self.opened.settings.max_entries)
        except ToolError as error:
            if error.code == NOT_FOUND and target.own and not target.parts:
                return Listing(())  # a user's folder comes into being with the first file
            raise

    def _roots(self) -> Iterator[FileEntry]:
        for root in self.opened.roots.values():
            if self.own is not None or not root.per_user:
                yield FileEntry(root.name, "folder", 0, None, root.writable)

    def _target(self, parts: Sequence[str]) -> Target:
        root = self.opened.roots.get(parts[0])
        if root is None:
            known = ", ".join(entry.path for entry in self._roots()) or "none"
            raise ToolError(
                f"There is no root {shown(parts[0])}. Paths begin with the name of a root: {known}.",
                code=NOT_FOUND,
            )
        if not root.per_user:
            return Target(root, (), tuple(parts[1:]))
        if self.own is None:
            raise ToolError(
                f"In {root.name} each user has an own folder, and this request states no user.",
                code="files.no_user",
            )
        return Target(root, self.own, tuple(parts[1:]))

    def _file(self, path: str) -> Target:
        parts = parts_of(path)
        if len(parts) > 1:
            return self._target(parts)
        if parts:
            self._target(parts)  # tells that there is no such root, or else
        raise ToolError(
            f"{shown(path)} is no path of a file: write root/name.", code="files.bad_path"
        )

    def _writable(self, path: str) -> Target:
        target = self._file(path)
        if not target.root.writable:
            raise ToolError(
                f"Files in {target.root.name} can be read, not changed.", code="files.read_only"
            )
        return target

    def _check_size(self, target: Target, content: bytes) -> None:
        limit = self.opened.settings.max_write_bytes
        if len(content) > limit:
            raise ToolError(
                f"{target} would have {len(content)} bytes; files of up to {limit} bytes are written.",
                code="files.too_large",
            )


def _folder_of(target: Target) -> Target:
    return replace(target, parts=target.parts[:-1])


def _exists(folder: int, target: Target) -> bool:
    try:
        os.stat(target.parts[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _told(target: Target) -> Iterator[None]:
    """Put what the system refuses into words that name nothing but the path that the tool gave."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(f"There is no file {target}.", code=NOT_FOUND) from error
    except FileExistsError as error:
        raise ToolError(
            f"{target} exists already, and replacing it was not asked for.", code="files.exists"
        ) from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ToolError(f"{target} cannot be used: {why}.", code="files.io_error") from error
