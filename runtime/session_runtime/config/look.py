"""What one look at everything that is watched finds, and how it differs from another look (REL-5).

When to look, and what follows from it, is decided in ``watch``.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.config.fingerprint import (
    Fingerprint,
    Watched,
    fingerprint,
    is_mount_point,
    is_readable,
    places_of,
)
from session_runtime.config.receipt import Trigger

Folder = tuple[Path, int, int]
"""A folder with its device and inode: one that is made anew is another one."""

_STIRRED: Final = "stirred "


@dataclass(frozen=True, slots=True)
class Armed:
    """What events are asked of.

    In ``folders`` only ``places`` count; other files there may be written all the time.
    """

    folders: tuple[Folder, ...] = ()
    trees: tuple[Folder, ...] = ()
    places: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found in one look at ``watched``; ``readable`` is about the configuration file."""

    watched: Watched
    prints: Fingerprint
    readable: bool
    is_mounted: bool
    armed: Armed


def stirred(number: int) -> str:
    """What stands for the content of the folders of tools if something happened there; once per number."""
    return f"{_STIRRED}{number}"


def see(watched: Watched, known_trees: str | None) -> Seen:
    """Look at everything now; blocks. At the folders of tools unless it is ``known_trees`` what they hold.

    What is around those is asked for events only where it may be read. Raises OSError as ``fingerprint``.
    """
    places = places_of(watched.files)
    around = tuple(each for each in places_of(watched.trees) if os.access(each.parent, os.R_OK))
    armed = Armed(
        tuple(dict.fromkeys(_identified(place.parent for place in (*places, *around)))),
        tuple(dict.fromkeys(_identified(watched.trees))),
        frozenset(map(str, (*places, *around))),
    )
    return Seen(
        watched,
        fingerprint(watched, known_trees),
        is_readable(watched.config),
        is_mount_point(watched.config),
        armed,
    )


def _identified(folders: Iterable[Path]) -> Iterator[Folder]:
    for folder in folders:
        try:
            fact = folder.stat()
        except OSError:
            continue
        yield folder, fact.st_dev, fact.st_ino


def cause(before: Seen, now: Seen) -> Trigger | None:
    """What changed, the most telling first; None if nothing is known to have changed."""
    old, new = before.prints, now.prints
    if (old.config, old.others) != (new.config, new.others):
        return "watch"
    if old.secrets != new.secrets:
        return "secret"
    if old.trees == new.trees or is_unknown(before, now):
        return None
    return "source"


def is_unknown(before: Seen, now: Seen) -> bool:
    """Whether the folders of tools were looked at now and not before, as after the start."""
    return before.prints.trees.startswith(_STIRRED) and not now.prints.trees.startswith(_STIRRED)
