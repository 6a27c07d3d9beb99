"""What should be a tool, before anything of it is read: the finders make them, ``scan`` decides."""

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.errors import PermanentError, Problem
from session_runtime.local.code import Code
from session_runtime.registry.names import canonical_name, name_fault
from session_runtime.registry.spec import Origin

MANIFEST: Final = "config.json"
MAX_FILE_BYTES: Final = 1_000_000
AGENTS: Final = "agents"


@dataclass(frozen=True, slots=True)
class Material:
    """What a tool is made of.

    ``manifest`` has the form of a ``config.json``, ``label`` is what messages call it, ``version`` is
    the one of the package that it comes from.
    """

    manifest: bytes
    code: Code
    label: str = MANIFEST
    version: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """An item of a list in [handlers] that tools come from: ``key`` is dotted, such as ``handlers.paths``."""

    key: str
    item: str


Touched = Collection[str] | None
"""Paths below folders of tools at which something may have changed; None: anywhere."""

Stamp = tuple[object, ...]
"""What changes whenever files change; compared only."""

_SETTLED_S: Final = 0.1


def unknown_stamp() -> None:
    """No stamp: what something is made of can only be told by reading it."""


def stamp_of(files: Iterable[tuple[str, os.stat_result]], now: float) -> Stamp | None:
    """Stamp files by inode, size and times, the one that nobody can set among them.

    None if one changed a moment before ``now``, in seconds since 1970: file systems count time in
    steps, so that another change could leave the same stamp.
    """
    stamp: list[object] = []
    for name, fact in files:
        if now - fact.st_ctime < _SETTLED_S:
            return None
        times = (fact.st_mtime_ns, fact.st_ctime_ns)
        stamp.append((name, fact.st_dev, fact.st_ino, fact.st_size, *times))
    return tuple(stamp)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool that somebody registered, by its canonical name.

    ``place`` tells an operator where, ``native_name`` is what it is called there. ``read`` gives what it
    is made of; it raises PermanentError, or OSError, if that cannot be used. ``listing`` is the item
    that would be useless without it, None for a tool that is registered by itself. ``stamp`` is equal
    whenever ``read`` would give the same again; it raises OSError. What is ``linked`` lies elsewhere, at
    least in part, so that events of its own place do not tell all of its changes. ``is_agent``: it is a
    sub-agent; ``owner`` names the one that it belongs to. ``shipped``: it comes with the package.
    """

    name: str
    place: str
    native_name: str
    origin: Origin
    read: Callable[[], Material]
    listing: Listing | None = None
    stamp: Callable[[], Stamp | None] = unknown_stamp
    linked: bool = False
    is_agent: bool = False
    owner: str = ""
    shipped: bool = False


def told_twice(key: str, what: str, identities: Iterable[Hashable]) -> Iterator[Problem]:
    """Find items of a list, such as ``handlers.paths``, that are the same as one before.

    ``identities`` has one value per item, equal for two that are the same; ``what`` they are is told.
    """
    first: dict[Hashable, int] = {}
    for position, identity in enumerate(identities, start=1):
        before = first.setdefault(identity, position)
        if before != position:
            message = f"item {position} is the same {what} as item {before}: remove one of them"
            yield Problem(message, key)


def registered_fault(name: str) -> str | None:
    """Say why nobody can register this name, or the way out; None if it is ``tool`` or ``group.tool``."""
    parts = name.split(".")
    if canonical_name(name) != name:
        return f"write {canonical_name(name)!r}"
    if (fault := name_fault(name)) is not None:
        return fault
    if len(parts) > 2 or not all(parts) or "/" in name:
        return "write tool or group.tool"
    if any(part.startswith("_") for part in parts):
        return "no part of it may begin with _"
    if parts[0] == AGENTS:
        return f"{AGENTS} is kept for sub-agents"
    return None


def read_file(path: Path) -> bytes:
    """Read a file of a tool; PermanentError if it is no plain file or too large, else OSError."""
    if not path.is_file():
        raise unusable(f"{path.name} is {'not a regular file' if path.exists() else 'missing'}")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise unusable(f"{path.name} has more than {MAX_FILE_BYTES} bytes")
    return path.read_bytes()


def unusable(why: str) -> PermanentError:
    """The error of a tool whose files are not what they have to be."""
    return PermanentError(why, code="tool.files_unusable")
