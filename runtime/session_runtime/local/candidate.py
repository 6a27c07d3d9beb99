"""What should be a tool, before anything of it is read: the finders make them, ``scan`` decides."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.errors import PermanentError
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool that somebody registered, by its canonical name.

    ``place`` tells an operator where, ``native_name`` is what it is called there. ``read`` gives what it
    is made of; it raises PermanentError, or OSError, if that cannot be used. ``listing`` is the item
    that would be useless without it, None for a tool that is registered by itself.
    """

    name: str
    place: str
    native_name: str
    origin: Origin
    read: Callable[[], Material]
    listing: Listing | None = None


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
