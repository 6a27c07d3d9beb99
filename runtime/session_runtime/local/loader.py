"""Turns the stored files of a tool into code, once, at its first call (REG-2, REL-7).

The text that was read at the scan is what runs, whatever stands in the folder by now.
"""

import asyncio
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
import traceback
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from session_runtime.errors import PermanentError
from session_runtime.handler import HandlerContext
from session_runtime.local.folders import CODE
from session_runtime.local.scan import LocalTool
from session_runtime.local.threads import in_thread

Execute = Callable[[dict[str, Any], HandlerContext], object]

_ENTRY: Final = "execute"
_log = logging.getLogger(__name__)


class Handler:
    """The code of one tool; imported by the first caller, for all who wait, and then kept.

    A failed import is forgotten, so that the next call tries again. The modules leave ``sys.modules``
    when nobody holds the handler any more.
    """

    def __init__(self, tool: LocalTool) -> None:
        self.tool = tool
        self._module_name = f"_handler_{tool.spec.digest}_{id(self):x}"
        self._execute: Execute | None = None
        self._importing: asyncio.Task[Execute] | None = None
        weakref.finalize(self, _forget, self._module_name).atexit = False

    @property
    def is_loaded(self) -> bool:
        """Whether the import is done."""
        return self._execute is not None

    async def load(self) -> Execute:
        """Give the tool's function; PermanentError ``tool.import_failed`` names file and line."""
        if self._execute is not None:
            return self._execute
        if self._importing is None:
            name = f"import of {self.tool.spec.name}"
            self._importing = asyncio.create_task(self._import(name), name=name)
        return await asyncio.shield(self._importing)

    async def _import(self, name: str) -> Execute:
        try:
            work = partial(import_execute, self.tool, self._module_name)
            self._execute = await in_thread(name, work)
            return self._execute
        except PermanentError as error:
            _log.warning("tool %s: %s", self.tool.spec.name, error)
            raise
        finally:
            self._importing = None


def import_execute(tool: LocalTool, module_name: str) -> Execute:
    """Run a tool's stored ``handler.py`` under ``module_name`` and give its ``execute``.

    The other Python files of its folder can be imported relatively: ``from . import other`` or
    ``from .other import name``. Raises PermanentError with the code ``tool.import_failed`` and
    leaves no half module behind.
    """
    try:
        module = _run_module(tool, module_name)
    except BaseException as error:
        _forget(module_name)
        raise _import_failed(tool, _place_of(error, tool.folder)) from error
    execute = vars(module).get(_ENTRY)
    if not callable(execute):
        _forget(module_name)
        raise _import_failed(tool, f"{CODE} has no function {_ENTRY}(args, context)")
    checked: Execute = execute
    return checked


def _run_module(tool: LocalTool, module_name: str) -> ModuleType:
    """Run ``handler.py`` as a package whose search path leads to the stored files alone.

    Python looks up who answers for a search path in a dict, where one more entry disturbs no import
    of another thread; a list of finders would be walked by them while it changes.
    """
    search_path = _search_path(module_name)
    sys.path_importer_cache[search_path] = _StoredModules(tool)
    location = tool.folder / CODE
    code = _StoredCode(tool.code[CODE], location)
    spec = importlib.util.spec_from_file_location(
        module_name, location, loader=code, submodule_search_locations=[search_path]
    )
    assert spec is not None  # there is a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    code.exec_module(module)
    return module


def _import_failed(tool: LocalTool, why: str) -> PermanentError:
    return PermanentError(
        f"its code in {tool.spec.native_name} cannot be imported: {why}", code="tool.import_failed"
    )


def _place_of(error: BaseException, folder: Path) -> str:
    """Name the last line of the tool's own files that led to ``error``, and the error."""
    lines = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename is not None:
        lines.append((Path(error.filename), error.lineno or 0))
    own = [f"{path.name} line {line}: " for path, line in lines if path.parent == folder]
    return f"{own[-1] if own else ''}{type(error).__name__}: {error}"


def _search_path(module_name: str) -> str:
    return f"/{module_name}"  # absolute, or Python takes it for out of date


def _forget(module_name: str) -> None:
    sys.path_importer_cache.pop(_search_path(module_name), None)
    for name in list(sys.modules):
        if name == module_name or name.startswith(f"{module_name}."):
            sys.modules.pop(name, None)


class _StoredModules(importlib.abc.PathEntryFinder):
    """Finds the neighbours of a tool's ``handler.py`` among the files that were read with it."""

    def __init__(self, tool: LocalTool) -> None:
        self._tool = tool

    def find_spec(
        self, fullname: str, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answer for ``<package>.<name>`` if there was a file ``<name>.py``."""
        del target
        file = f"{fullname.rpartition('.')[2]}.py"
        if file not in self._tool.code:
            return None
        location = self._tool.folder / file
        loader = _StoredCode(self._tool.code[file], location)
        return importlib.util.spec_from_file_location(fullname, location, loader=loader)


class _StoredCode(importlib.abc.Loader):
    """Runs bytes as the module at ``location``, which need not hold them any more."""

    def __init__(self, content: bytes, location: Path) -> None:
        self._content = content
        self._location = location

    def exec_module(self, module: ModuleType) -> None:
        """Compile and run the stored text."""
        exec(compile(self._content, self._location, "exec", dont_inherit=True), vars(module))
