"""Turns the stored files of a tool into code, once, at its first call (REG-2, REL-7).

The text that was read at the scan is what runs, whatever stands in the folder by now.
"""

import asyncio
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
import traceback
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from session_runtime.errors import PermanentError
from session_runtime.handler import HandlerContext
from session_runtime.local.folders import CODE
from session_runtime.local.scan import LocalTool
from session_runtime.local.threads import Threads

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

    async def load(self, threads: Threads) -> Execute:
        """Give the tool's function; PermanentError ``tool.import_failed`` names file and line."""
        if self._execute is not None:
            return self._execute
        if self._importing is None:
            name = f"import of {self.tool.spec.name}"
            self._importing = asyncio.create_task(self._import(threads, name), name=name)
        return await asyncio.shield(self._importing)

    async def _import(self, threads: Threads, name: str) -> Execute:
        try:
            work = partial(import_execute, self.tool, self._module_name)
            self._execute = await threads.run(name, work)
            return self._execute
        except PermanentError as error:
            _log.warning("tool %s: %s", self.tool.spec.name, error)
            raise
        finally:
            self._importing = None


def import_execute(tool: LocalTool, module_name: str) -> Execute:
    """Run a tool's stored ``handler.py`` under ``module_name`` and give its ``execute``.

    The other Python files of its folder can be imported relatively, at the top of ``handler.py``:
    ``from . import other`` or ``from .other import name``. Raises PermanentError with the code
    ``tool.import_failed`` and leaves no half module behind.
    """
    finder = _StoredModules(tool, module_name)
    sys.meta_path.insert(0, finder)
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:
        _forget(module_name)
        raise _import_failed(tool, _place_of(error, tool.folder)) from error
    finally:
        sys.meta_path.remove(finder)
    execute = vars(module).get(_ENTRY)
    if not callable(execute):
        _forget(module_name)
        raise _import_failed(tool, f"{CODE} has no function {_ENTRY}(args, context)")
    checked: Execute = execute
    return checked


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


def _forget(module_name: str) -> None:
    for name in list(sys.modules):
        if name == module_name or name.startswith(f"{module_name}."):
            sys.modules.pop(name, None)


class _StoredModules(importlib.abc.MetaPathFinder):
    """Finds ``handler.py`` under the private name of a tool, and its neighbours below that name."""

    def __init__(self, tool: LocalTool, module_name: str) -> None:
        self._tool = tool
        self._module_name = module_name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answer for the modules of this tool only."""
        del path, target
        parent, _, last = fullname.rpartition(".")
        is_handler = fullname == self._module_name
        file = CODE if is_handler else f"{last}.py"
        if not (is_handler or parent == self._module_name) or file not in self._tool.code:
            return None
        location = self._tool.folder / file
        return importlib.util.spec_from_file_location(
            fullname,
            location,
            loader=_StoredCode(self._tool.code[file], location),
            submodule_search_locations=[] if is_handler else None,
        )


class _StoredCode(importlib.abc.Loader):
    """Runs bytes as the module at ``location``, which need not hold them any more."""

    def __init__(self, content: bytes, location: Path) -> None:
        self._content = content
        self._location = location

    def exec_module(self, module: ModuleType) -> None:
        """Compile and run the stored text."""
        exec(compile(self._content, self._location, "exec", dont_inherit=True), vars(module))
