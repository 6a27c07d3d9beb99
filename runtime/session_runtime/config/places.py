"""Whether a path can name anything, and be what the daemon writes there; nothing is made here."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from session_runtime.config.keys import KeyPath
from session_runtime.config.settings import Settings
from session_runtime.state_files import told_of

STATE_DIR: KeyPath = ("runtime", "state_dir")
TRACE_FILE: KeyPath = ("trace", "path")
AUDIT_FOLDER: KeyPath = ("audit", "path")

OWN: Final[frozenset[KeyPath]] = frozenset(
    {STATE_DIR, TRACE_FILE, AUDIT_FOLDER, ("http", "host"), ("http", "port"), ("mqtt", "client_id")}
)
"""What each replica of a fleet may have for itself: where it keeps its state, and how it is reached."""

_MAX_PATH_BYTES: Final = 4095
_MAX_NAME_BYTES: Final = 255
_SHOWN_CHARS: Final = 60


def path_fault(path: Path) -> str | None:
    """Say why no system call takes the path, whatever is on the disk; None if they do."""
    shown = f"{str(path)[:_SHOWN_CHARS]!r}{'…' if len(str(path)) > _SHOWN_CHARS else ''}"
    try:
        names = [os.fsencode(name) for name in path.parts]
    except UnicodeEncodeError:
        return f"{shown} is no usable path: it is not UTF-8"
    if any(b"\0" in name for name in names):
        return f"{shown} is no usable path: it holds a null character"
    if len(os.fsencode(path)) > _MAX_PATH_BYTES:
        return f"{shown} is no usable path: it is longer than {_MAX_PATH_BYTES} bytes"
    if any(len(name) > _MAX_NAME_BYTES for name in names):
        return f"{shown} is no usable path: a name in it is longer than {_MAX_NAME_BYTES} bytes"
    return None


def place_faults(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    """Find keys whose folder or file cannot be made, with the reason; what is in the way is told once."""
    folder, trace = settings.runtime.state_dir, settings.trace
    fault = _told(_fault_of_folder, folder)
    if fault is not None:
        yield STATE_DIR, fault
    if trace.enabled and not (fault is not None and trace.path.is_relative_to(folder)):
        fault = _told(_fault_of_file, trace.path)
        if fault is not None:
            yield STATE_DIR if _is_shut_in(trace.path, folder) else TRACE_FILE, fault
    audit = settings.audit
    if audit.enabled and audit.path is not None:
        fault = _told(_fault_of_folder, audit.path)
        if fault is not None:
            yield AUDIT_FOLDER, fault


def _told(find_fault: Callable[[Path], str | None], path: Path) -> str | None:
    if path_fault(path) is not None:
        return None  # told where the path was given
    try:
        return find_fault(path)
    except OSError as error:
        return told_of(error)


def _is_shut_in(path: Path, folder: Path) -> bool:
    """Whether a path is in a folder that this process may not enter."""
    return path.is_relative_to(folder) and not os.access(folder, os.X_OK, effective_ids=True)


def _fault_of_file(path: Path) -> str | None:
    mode = _mode(path)
    if mode is None:
        return _fault_of_folder(path.parent)
    return f"{path} is a folder: name a file in it" if stat.S_ISDIR(mode) else None


def _fault_of_folder(path: Path) -> str | None:
    for folder in (path, *path.parents):
        mode = _mode(folder)
        if mode is None:
            continue
        if stat.S_ISDIR(mode):
            return None
        if folder == path:
            return f"{path} is a file: name a folder"
        return f"{path} cannot be made: {folder} is a file"
    return None


def _mode(path: Path) -> int | None:
    """Give type and permissions of what is at ``path``; None if nothing is there."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
