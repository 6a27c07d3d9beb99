"""What a folder holds, as far as file tools would open it; how it was reached is decided in ``walk``."""

import os
from collections.abc import Set
from itertools import islice
from stat import S_ISDIR

from session_runtime.services import FileEntry, Listing
from session_runtime.toolbox.files.names import TEMPORARY, name_fault
from session_runtime.toolbox.files.roots import Inode
from session_runtime.toolbox.files.walk import Target, file_fault


def list_folder(folder: int, target: Target, hidden: Set[Inode], limit: int) -> Listing:
    """List the folder with the descriptor ``folder``; OSError for what the system refuses.

    Of more than ``limit`` names, those that come first on disk are looked at.
    """
    # The descriptor at hand is for going on only; this one can be read.
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        with os.scandir(readable) as found:
            names = [each.name for each in islice(found, limit + 1)]
        seen = [name for name in sorted(names[:limit]) if not name.startswith(TEMPORARY)]
        device = os.fstat(readable).st_dev
        entries = [_entry(readable, name, target, hidden, device) for name in seen]
    finally:
        os.close(readable)
    usable = tuple(each for each in entries if each is not None)
    return Listing(usable, others=len(entries) - len(usable), truncated=len(names) > limit)


def _entry(
    folder: int, name: str, target: Target, hidden: Set[Inode], device: int
) -> FileEntry | None:
    """Describe what file tools would open; None for anything else, and for what has just gone."""
    if name_fault(name) is not None:
        return None
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    is_folder = S_ISDIR(status.st_mode)
    is_open = status.st_dev == device if is_folder else file_fault(status) is None
    if not is_open or (status.st_dev, status.st_ino) in hidden:
        return None
    path = "/".join((target.root.name, *target.parts, name))
    return FileEntry(
        path,
        "folder" if is_folder else "file",
        0 if is_folder else status.st_size,
        status.st_mtime,
        target.root.writable,
    )
