"""Where Python would find a module, told without importing anything; what it lacks: ``code``."""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path

from session_runtime.local.names import is_plain


def find_outermost(name: str) -> ModuleSpec | None:
    """Find what stands in no package; ValueError for a module that came from nowhere (``__main__``)."""
    return importlib.util.find_spec(name)


def find_module(module: str) -> ModuleSpec:
    """Find a module as an import of it would.

    Raises ModuleNotFoundError if there is none, LookupError if only importing what is around it could
    tell: packages in no folder, those that are no text, and those that change where their modules are.
    """
    outermost, *inner = module.split(".")
    try:
        spec = find_outermost(outermost)
    except ValueError:
        raise LookupError(outermost) from None
    if spec is None:
        raise ModuleNotFoundError(
            f"there is no module {outermost}: install it where the daemon runs"
        )
    name = outermost
    for part in inner:
        name = f"{name}.{part}"
        if name in sys.modules:
            raise LookupError(name)
        spec = find_inside(name, _folders(spec))
        if spec is None:
            raise ModuleNotFoundError(f"there is no module {module}")
    return spec


def find_inside(name: str, folders: Sequence[Path]) -> ModuleSpec | None:
    """Find a module by its full name in the folders of the package around it."""
    portions: list[str] = []
    for folder in folders:
        spec = _finder(folder).find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        if spec is not None:
            portions += spec.submodule_search_locations or ()
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def text_of(spec: ModuleSpec) -> Path | None:
    """The file with the text of a module, if there is one."""
    if spec.origin is None or not spec.has_location:
        return None
    path = Path(spec.origin)
    return path if path.suffix in SOURCE_SUFFIXES else None


def _folders(spec: ModuleSpec) -> Sequence[Path]:
    """The folders that hold the modules of a package; LookupError if that may not be all."""
    folders = [Path(each) for each in spec.submodule_search_locations or ()]
    text = text_of(spec)
    is_settled = spec.origin is None if text is None else is_plain(text.read_bytes())
    if not folders or not is_settled or not all(folder.is_dir() for folder in folders):
        raise LookupError(spec.name)
    return folders


def _finder(folder: Path) -> FileFinder:
    """What Python itself looks with, without what it remembers of the folder."""
    return FileFinder(
        str(folder),
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (SourceFileLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )
