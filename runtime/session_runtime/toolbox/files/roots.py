"""Which folders are open to tools, and that none overlaps with what the daemon runs on (SEC-1).

How a file below a root is reached is decided in ``walk``.
"""

import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from types import MappingProxyType
from typing import Final

from session_runtime.config.files import FileRoot
from session_runtime.config.keys import dotted
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError, Problem

Inode = tuple[int, int]
"""Device and number of a file or folder: the same whatever name, link or mount leads to it."""

_PACKAGE: Final = Path(__file__).resolve().parents[2]
_DEFAULT_CONFIG: Final = Path("config.toml")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that is open to tools; ``path`` is absolute and without links."""

    name: str
    path: Path
    writable: bool
    per_user: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder that no tool may reach, and what it is in the configuration's words.

    If not ``whole``, it may not be in a root, but a root may be in it.
    """

    what: str
    path: Path
    whole: bool = True


def protected_places(snapshot: ConfigSnapshot, bundled: Path) -> tuple[Place, ...]:
    """List the code, configuration, secrets and state of the daemon, whether they exist or not."""
    settings = snapshot.settings
    entries, models = settings.handlers.entries.items(), settings.models.items()
    files = {f"handlers.entries.{name}.schema": each.schema_ for name, each in entries}
    files |= {f"models.{name}.script": each.script for name, each in models}
    folders = [each for each in settings.runtime.secret_sources if each.startswith("file:")]
    # Where there is no configuration file, one that a tool writes would be read at the next start.
    config = snapshot.path or _DEFAULT_CONFIG.absolute()
    return (
        Place("runtime.state_dir", settings.runtime.state_dir),
        Place("trace.path", settings.trace.path),
        *(Place("handlers.paths", path) for path in settings.handlers.paths),
        Place("the bundled tools", bundled),
        Place("the program", _PACKAGE),
        *(Place("Python and installed packages", path) for path in _installed()),
        Place("the configuration file", config),
        *(Place("a file that the configuration reads", path) for path in snapshot.files),
        *(Place(key, path) for key, path in files.items() if path is not None),
        *(Place("runtime.secret_sources", Path(each.removeprefix("file:"))) for each in folders),
        *(Place("a folder that Python imports from", Path(each), whole=False) for each in sys.path),
    )


def _installed() -> tuple[Path, ...]:
    kinds = ("stdlib", "purelib", "platlib")
    return tuple(dict.fromkeys(Path(sysconfig.get_path(kind)) for kind in kinds))


def open_roots(snapshot: ConfigSnapshot, protected: Sequence[Place]) -> Mapping[str, Root]:
    """Find the folders of [files.roots]; ConfigError tells each that is missing or overlaps."""
    given = snapshot.settings.files.roots
    roots: dict[str, Root] = {}
    faults: list[tuple[str, str]] = []
    for name, settings in given.items():
        try:
            roots[name] = Root(name, _folder(settings), settings.writable, settings.per_user)
        except ValueError as error:
            faults.append((name, str(error)))
    faults += _overlaps(tuple(roots.values()), protected)
    if faults:
        found = (Problem(fault, dotted(("files", "roots", name, "path"))) for name, fault in faults)
        raise ConfigError(snapshot.located(found))
    return MappingProxyType(roots)


def _folder(settings: FileRoot) -> Path:
    """The folder without links; ValueError if it is none."""
    try:
        path = settings.path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise ValueError(
            f"there is no folder {settings.path}: create it, or name another"
        ) from None
    if not path.is_dir():
        raise ValueError(f"{settings.path} is no folder: name the folder around it")
    return path


def _overlaps(roots: Sequence[Root], protected: Iterable[Place]) -> Iterator[tuple[str, str]]:
    """Tell, by the root's name, what lies in a root and what a root lies in."""
    met: dict[str, list[str]] = {}
    for root, place in product(roots, protected):
        whole = place.whole and _lies_in(root.path, place.path)
        if whole or _lies_in(place.path, root.path):
            met.setdefault(root.name, []).append(f"{place.what} ({place.path})")
    for one, other in combinations(roots, 2):
        if _lies_in(one.path, other.path) or _lies_in(other.path, one.path):
            met.setdefault(other.name, []).append(f"files.roots.{one.name} ({one.path})")
    for name, others in met.items():
        yield name, f"overlaps with {' and '.join(others)}: name a folder apart"


def _lies_in(inner: Path, outer: Path) -> bool:
    """Whether ``inner`` is ``outer`` or anything in it, whatever names, links and mounts lead there."""
    return inode(outer) in _around(inner)


def _around(path: Path) -> frozenset[Inode]:
    """The path and all folders above, of itself and of what it links to, as far as they exist."""
    try:
        spellings = (path.parent.resolve() / path.name, path.resolve())
    except (OSError, RuntimeError, ValueError):
        spellings = (path, path)  # it leads nowhere
    above = (each for spelling in spellings for each in (spelling, *spelling.parents))
    return frozenset(found for each in above if (found := inode(each)) is not None)


def inode(path: Path) -> Inode | None:
    """Identify what is at ``path`` now, links followed; None if there is nothing to be reached."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
