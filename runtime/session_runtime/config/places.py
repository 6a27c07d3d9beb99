"""Whether there can be what the daemon writes, where the configuration puts it; nothing is made here."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from session_runtime.config.keys import KeyPath
from session_runtime.config.settings import Settings

STATE_DIR: KeyPath = ("runtime", "state_dir")
TRACE_FILE: KeyPath = ("trace", "path")


def place_faults(settings: Settings) -> Iterator[tuple[KeyPath, str]]:
    """Find keys whose folder or file cannot be made, with the reason; what is in the way is told once."""
    folder, trace = settings.runtime.state_dir, settings.trace
    fault = _told(_fault_of_folder, folder)
    if fault is not None:
        yield STATE_DIR, fault
    if trace.enabled and not (fault is not None and trace.path.is_relative_to(folder)):
        fault = _told(_fault_of_file, trace.path)
        if fault is not None:
            yield TRACE_FILE, fault


def _told(find_fault: Callable[[Path], str | None], path: Path) -> str | None:
    try:
        return find_fault(path)
    except OSError as error:
        return f"{path} cannot be used: {error.strerror}"
    except ValueError as error:
        return f"{str(path)!r} cannot be used: {error}"


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
