"""Which folders are tools, and their files as bytes (REG-1); what they say is decided in ``scan``."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from session_runtime.errors import PermanentError
from session_runtime.registry.names import canonical_name, name_fault

MANIFEST: Final = "config.json"
CODE: Final = "handler.py"
MAX_FILE_BYTES: Final = 1_000_000

_AGENTS: Final = "agents"

Origin = Literal["handler", "bundled"]


@dataclass(frozen=True, slots=True)
class ToolFolder:
    """A folder that should be a tool; ``fault`` says why it cannot be one.

    ``name`` is canonical (``group.tool``), ``root`` the handlers folder that it was found in.
    """

    name: str
    path: Path
    root: Path
    origin: Origin
    fault: str | None = None

    @property
    def native_name(self) -> str:
        """The folder below the root, ``group/tool``."""
        return self.path.relative_to(self.root).as_posix()


def tool_folders(root: Path, origin: Origin) -> Iterator[ToolFolder]:
    """Find ``<tool>/`` and ``<group>/<tool>/`` below ``root``, sorted; OSError if it has no list.

    Names that begin with ``_`` or ``.`` are passed over, and so is ``agents/``, which is kept for
    sub-agents. A link that leads out of ``root`` is a fault: it is not followed.
    """
    for path in _subfolders(root):
        if path.name != _AGENTS:
            yield from _tools_at(path, root, origin)


def _tools_at(path: Path, root: Path, origin: Origin) -> Iterator[ToolFolder]:
    """Take ``path`` as a tool or as a group of tools."""
    try:
        inside = [path] if _is_candidate(path, root) else _subfolders(path)
        found = [each for each in inside if _is_candidate(each, root)]
    except OSError as error:
        yield ToolFolder(_name(path, root), path, root, origin, f"cannot be read: {error.strerror}")
        return
    for each in found:
        yield ToolFolder(_name(each, root), each, root, origin, _fault(each, root))


def read_files(folder: ToolFolder) -> dict[str, bytes]:
    """Read ``config.json`` and the Python files of a tool; PermanentError if one cannot be used."""
    files: dict[str, bytes] = {}
    for entry in sorted(os.scandir(folder.path), key=lambda entry: entry.name):
        if entry.name != MANIFEST and not entry.name.endswith(".py"):
            continue
        path = Path(entry.path)
        if entry.is_symlink() and _leads_out(path, folder.root):
            raise _unusable(f"{entry.name} is a link that leads out of {folder.root}")
        if not entry.is_file():
            raise _unusable(f"{entry.name} is not a regular file")
        if entry.stat().st_size > MAX_FILE_BYTES:
            raise _unusable(f"{entry.name} has more than {MAX_FILE_BYTES} bytes")
        files[entry.name] = path.read_bytes()
    for needed in (MANIFEST, CODE):
        if needed not in files:
            raise _unusable(f"{needed} is missing")
    return files


def _unusable(why: str) -> PermanentError:
    return PermanentError(why, code="tool.files_unusable")


def _subfolders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(
            Path(entry.path)
            for entry in entries
            if not entry.name.startswith(("_", ".")) and entry.is_dir()
        )


def _is_candidate(path: Path, root: Path) -> bool:
    return _leads_out(path, root) or (path / MANIFEST).exists() or (path / CODE).exists()


def _leads_out(path: Path, root: Path) -> bool:
    return path.is_symlink() and not path.resolve().is_relative_to(root.resolve())


def _name(path: Path, root: Path) -> str:
    return ".".join(map(canonical_name, path.relative_to(root).parts))


def _fault(path: Path, root: Path) -> str | None:
    if _leads_out(path, root):
        return f"it is a link that leads out of {root}"
    if any("." in part for part in path.relative_to(root).parts):
        return "a folder's name may not hold a dot, which stands between group and tool"
    fault = name_fault(_name(path, root))
    return None if fault is None else f"its name cannot be used: {fault}"
