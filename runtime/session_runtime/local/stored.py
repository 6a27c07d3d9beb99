"""Runs the Python files of a handler folder as they were read, whatever stands there by now (REL-7)."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from session_runtime.local.code import CODE, StoredCode


def run_stored(code: StoredCode, module_name: str) -> ModuleType:
    """Run ``handler.py`` as the package ``module_name``; raises what it raises.

    The other Python files of its folder can be imported relatively: ``from . import other`` or
    ``from .other import name``. Python looks up who answers for a search path in a dict, where one more
    entry disturbs no import of another thread; a list of finders would be walked by them while it changes.
    """
    search_path = _search_path(module_name)
    sys.path_importer_cache[search_path] = _StoredModules(code)
    location = code.folder / CODE
    loader = _StoredText(code.files[CODE], location)
    spec = importlib.util.spec_from_file_location(
        module_name, location, loader=loader, submodule_search_locations=[search_path]
    )
    assert spec is not None  # there is a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    loader.exec_module(module)
    return module


def forget(module_name: str) -> None:
    """Drop the modules that ``run_stored`` made under this name, if there are any.

    The collector may call this at any moment, also while Python walks through the dict of finders: an
    entry is emptied, which is safe then, and Python removes empty ones when it invalidates its caches.
    """
    search_path = _search_path(module_name)
    finder = sys.path_importer_cache.get(search_path)
    if isinstance(finder, _StoredModules):  # else nothing was run, as for most tools there are
        sys.path_importer_cache[search_path] = None
        for name in (module_name, *finder.modules(module_name)):
            sys.modules.pop(name, None)


def _search_path(module_name: str) -> str:
    return f"/{module_name}"  # absolute, or Python takes it for out of date


class _StoredModules(importlib.abc.PathEntryFinder):
    """Finds the neighbours of a tool's ``handler.py`` among the files that were read with it."""

    def __init__(self, code: StoredCode) -> None:
        self._code = code

    def modules(self, package: str) -> list[str]:
        """The name of every module that ``find_spec`` can give."""
        return [f"{package}.{file.removesuffix('.py')}" for file in self._code.files]

    def find_spec(
        self, fullname: str, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answer for ``<package>.<name>`` if there was a file ``<name>.py``."""
        del target
        file = f"{fullname.rpartition('.')[2]}.py"
        if file not in self._code.files:
            return None
        location = self._code.folder / file
        loader = _StoredText(self._code.files[file], location)
        return importlib.util.spec_from_file_location(fullname, location, loader=loader)


class _StoredText(importlib.abc.Loader):
    """Runs bytes as the module at ``location``, which need not hold them any more."""

    def __init__(self, content: bytes, location: Path) -> None:
        self._content = content
        self._location = location

    def exec_module(self, module: ModuleType) -> None:
        """Compile and run the stored text."""
        exec(compile(self._content, self._location, "exec", dont_inherit=True), vars(module))
