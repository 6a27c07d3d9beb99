"""Folders to try file tools on: a root with something in it, and beside it what must stay untouched."""

import os
from collections.abc import Mapping
from pathlib import Path

from session_runtime.config.files import FilesSettings
from session_runtime.toolbox.files.access import FileRoots, UserFiles
from session_runtime.toolbox.files.roots import Place, Root
from session_runtime.toolbox.owner import Owner

SECRET = "the canary's secret"
ANN = Owner("local", "ann")
NOBODY = Owner("local", None)


def open_docs(
    folder: Path,
    *,
    writable: bool = True,
    per_user: bool = False,
    protected: tuple[Place, ...] = (),
    **limits: int,
) -> FileRoots:
    """Open ``folder`` under the name ``docs``."""
    root = Root("docs", folder.resolve(), writable, per_user)
    return FileRoots(FilesSettings(**limits), {"docs": root}, protected)


def make_tree(base: Path) -> UserFiles:
    """``base/docs`` with two files, beside it ``base/outside`` with a secret; ``docs`` is open."""
    for name, text in {
        "docs/a.txt": "alpha\n",
        "docs/sub/b.txt": "beta\n",
        "outside/a.txt": SECRET,
        "outside/b.txt": SECRET,
        "outside/sub/b.txt": SECRET,
    }.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return open_docs(base / "docs").of(ANN)


def everything(folder: Path) -> Mapping[str, object]:
    """All that is below ``folder``, with kinds, rights and contents; links are not followed."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_size, content)
    return found


def leftovers(folder: Path) -> list[str]:
    """Half-written files that stayed behind."""
    return [
        name for _, _, names in os.walk(folder) for name in names if name.startswith(".session")
    ]
