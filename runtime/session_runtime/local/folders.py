"""Which folders are tools, and their files as bytes (REG-1); what they say is decided in ``scan``."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from session_runtime.errors import ConfigError, PermanentError, Problem
from session_runtime.local.candidate import (
    AGENTS,
    MANIFEST,
    Candidate,
    Listing,
    Material,
    read_file,
    unusable,
)
from session_runtime.local.code import StoredCode
from session_runtime.registry.names import canonical_name, name_fault
from session_runtime.registry.spec import Origin

CODE: Final = "handler.py"
KEY: Final = "handlers.paths"


def in_paths(paths: Iterable[Path]) -> list[Candidate]:
    """Find the tools below all folders of [handlers] paths; ConfigError for those that are none."""
    found: list[Candidate] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            found += in_folder(path, "handler")
        except OSError as error:
            message = f"{path} cannot be read as a folder of tools: {error.strerror}"
            problems.append(Problem(message, KEY))
    if problems:
        raise ConfigError(problems)
    return found


def in_folder(root: Path, origin: Origin) -> Iterator[Candidate]:
    """Find ``<tool>/`` and ``<group>/<tool>/`` below ``root``, sorted; OSError if it has no list.

    Names that begin with ``_`` or ``.`` are passed over, and so is ``agents/``, which is kept for
    sub-agents. A link that leads out of ``root`` is a fault: it is not followed.
    """
    for path in _subfolders(root):
        if path.name != AGENTS:
            yield from _tools_at(path, root, origin)


def _tools_at(path: Path, root: Path, origin: Origin) -> Iterator[Candidate]:
    """Take ``path`` as a tool or as a group of tools."""
    try:
        inside = [path] if _is_tool(path, root) else _subfolders(path)
        found = [each for each in inside if _is_tool(each, root)]
    except OSError as error:
        yield _candidate(path, root, origin, f"cannot be read: {error.strerror}")
        return
    for each in found:
        yield _candidate(each, root, origin, _fault(each, root))


def _candidate(path: Path, root: Path, origin: Origin, fault: str | None) -> Candidate:
    return Candidate(
        name=_name(path, root),
        place=str(path),
        native_name=path.relative_to(root).as_posix(),
        origin=origin,
        read=partial(_read_folder, path, root) if fault is None else partial(_refuse, fault),
        listing=Listing(KEY, str(root)),
    )


def _refuse(fault: str) -> Material:
    raise PermanentError(fault, code="tool.folder_unusable")


def _read_folder(folder: Path, root: Path) -> Material:
    files: dict[str, bytes] = {}
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name != MANIFEST and not entry.name.endswith(".py"):
            continue
        path = Path(entry.path)
        if entry.is_symlink() and _leads_out(path, root):
            raise unusable(f"{entry.name} is a link that leads out of {root}")
        files[entry.name] = read_file(path)
    for needed in (MANIFEST, CODE):
        if needed not in files:
            raise unusable(f"{needed} is missing")
    manifest = files.pop(MANIFEST)
    return Material(manifest, StoredCode(folder, MappingProxyType(files)))


def _subfolders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(
            Path(entry.path)
            for entry in entries
            if not entry.name.startswith(("_", ".")) and entry.is_dir()
        )


def _is_tool(path: Path, root: Path) -> bool:
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
