"""Which folders are tools, and their files as bytes (REG-1); what they say is decided in ``scan``."""

import os
import time
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from operator import attrgetter
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
    Stamp,
    Touched,
    read_file,
    stamp_of,
    told_twice,
    unknown_stamp,
    unusable,
)
from session_runtime.local.code import CODE, StoredCode
from session_runtime.registry.names import canonical_name, name_fault
from session_runtime.registry.spec import Origin

KEY: Final = "handlers.paths"


def in_paths(
    paths: Collection[Path], before: Iterable[Candidate] = (), touched: Touched = None
) -> list[Candidate]:
    """Find the tools below all folders of [handlers] paths; ConfigError for those that are none.

    With ``touched`` only what is below one of these paths, or behind a link, is looked for; the rest is
    taken from what was found ``before``.
    """
    found: list[Candidate] = []
    problems = list(told_twice(KEY, "folder", map(_without_links, paths)))
    for path in paths:
        try:
            found += _in_path(path, before, touched)
        except OSError as error:
            problems.append(_unreadable(path, error.strerror))
        except ValueError as error:
            problems.append(_unreadable(path, str(error)))
    if problems:
        raise ConfigError(problems)
    return found


def _in_path(root: Path, before: Iterable[Candidate], touched: Touched) -> Iterable[Candidate]:
    """Find the tools below one folder, sorted by where they are."""
    if touched is None or any(_holds(path, root) for path in touched):
        return in_folder(root, "handler")
    here = Listing(KEY, str(root))
    tops = {path.removeprefix(f"{root}/").partition("/")[0] for path in touched}
    tops |= {_top(each) for each in before if each.listing == here and each.linked}
    kept = (each for each in before if each.listing == here and _top(each) not in tops)
    entries = (entry for entry in subfolders(root) if entry.name in tops - {AGENTS})
    new = (each for entry in entries for each in _tools_at(entry, root, "handler"))
    return sorted((*kept, *new), key=lambda each: each.native_name.split("/"))


def _holds(path: str, root: Path) -> bool:
    """Whether what happened at ``path`` happened to all that is below ``root``."""
    return f"{root}/".startswith(f"{path}/")


def _top(candidate: Candidate) -> str:
    return candidate.native_name.partition("/")[0]


def _without_links(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def _unreadable(path: Path, reason: str | None) -> Problem:
    return Problem(f"{path} cannot be read as a folder of tools: {reason}", KEY)


def in_folder(root: Path, origin: Origin) -> Iterator[Candidate]:
    """Find ``<tool>/`` and ``<group>/<tool>/`` below ``root``, sorted; OSError if it has no list.

    Names that begin with ``_`` or ``.`` are passed over, and so is ``agents/``, which is kept for
    sub-agents. A link that leads out of ``root`` is a fault: it is not followed.
    """
    for entry in subfolders(root):
        if entry.name != AGENTS:
            yield from _tools_at(entry, root, origin)


def _tools_at(entry: os.DirEntry[str], root: Path, origin: Origin) -> Iterator[Candidate]:
    """Take ``entry`` as a tool or as a group of tools."""
    try:
        inside = [entry] if _is_tool(entry, root) else subfolders(entry)
        found = [each for each in inside if _is_tool(each, root)]
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
        yield _candidate(entry, (entry.name,), root, origin, fault, linked=True)
        return
    for each in found:
        parts = (entry.name,) if each is entry else (entry.name, each.name)
        yield tool_at(each, parts, root, origin, linked=entry.is_symlink())


def tool_at(
    entry: os.DirEntry[str],
    parts: tuple[str, ...],
    root: Path,
    origin: Origin,
    *,
    linked: bool = False,
) -> Candidate:
    """Take one folder as a tool; ``parts`` are what its name is made of, ``linked`` what is around it."""
    linked = linked or entry.is_symlink() or _holds_links(entry)
    return _candidate(entry, parts, root, origin, _leads_out_fault(entry, root), linked=linked)


def _holds_links(folder: os.DirEntry[str]) -> bool:
    try:
        return any(each.is_symlink() for each in _files(folder.path))
    except OSError:
        return True


def _candidate(
    entry: os.DirEntry[str],
    parts: tuple[str, ...],
    root: Path,
    origin: Origin,
    fault: str | None,
    *,
    linked: bool,
) -> Candidate:
    name = ".".join(map(canonical_name, parts))
    fault = fault or _name_fault(name, parts)
    read = partial(_read_folder, entry.path, root) if fault is None else partial(_refuse, fault)
    return Candidate(
        name=name,
        place=entry.path,
        native_name="/".join(parts),
        origin=origin,
        read=read,
        listing=Listing(KEY, str(root)),
        stamp=partial(_stamp, entry.path) if fault is None else unknown_stamp,
        linked=linked,
        shipped=origin == "bundled",
    )


def _refuse(fault: str) -> Material:
    raise PermanentError(fault, code="tool.folder_unusable")


def _stamp(folder: str) -> Stamp | None:
    return stamp_of(((each.name, each.stat()) for each in _files(folder)), time.time())


def _files(folder: str) -> list[os.DirEntry[str]]:
    """The files of a tool, sorted by name."""
    with os.scandir(folder) as entries:
        found = [each for each in entries if each.name == MANIFEST or each.name.endswith(".py")]
    return sorted(found, key=attrgetter("name"))


def _read_folder(folder: str, root: Path) -> Material:
    files: dict[str, bytes] = {}
    for entry in _files(folder):
        if leads_out(entry, root):
            raise unusable(f"{entry.name} is a link that leads out of {root}")
        files[entry.name] = read_file(Path(entry.path))
    for needed in (MANIFEST, CODE):
        if needed not in files:
            raise unusable(f"{needed} is missing")
    manifest = files.pop(MANIFEST)
    return Material(manifest, StoredCode(Path(folder), MappingProxyType(files)))


def subfolders(folder: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    """The folders in a folder that may hold tools, sorted by name; OSError if it has no list."""
    with os.scandir(os.fspath(folder)) as entries:
        found = [
            entry for entry in entries if not entry.name.startswith(("_", ".")) and entry.is_dir()
        ]
    return sorted(found, key=attrgetter("name"))


def _is_tool(entry: os.DirEntry[str], root: Path) -> bool:
    exists = os.path.exists  # there are thousands, and a Path takes longer
    return leads_out(entry, root) or any(
        exists(f"{entry.path}/{name}") for name in (MANIFEST, CODE)
    )


def leads_out(entry: os.DirEntry[str] | Path, root: Path) -> bool:
    """Whether a link leads to somewhere outside of ``root``."""
    return entry.is_symlink() and not Path(entry).resolve().is_relative_to(root.resolve())


def _leads_out_fault(entry: os.DirEntry[str], root: Path) -> str | None:
    return f"it is a link that leads out of {root}" if leads_out(entry, root) else None


def _name_fault(name: str, parts: tuple[str, ...]) -> str | None:
    if name.count(".") >= len(parts):
        return "a folder's name may not hold a dot, which stands between group and tool"
    fault = name_fault(name)
    return None if fault is None else f"its name cannot be used: {fault}"
