"""Turns the code of a tool into a function, once, at its first call (REG-2)."""

import asyncio
import importlib
import logging
import traceback
import weakref
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, assert_never

from session_runtime.errors import PermanentError
from session_runtime.handler import HandlerContext
from session_runtime.local.code import CODE, ENTRY, Code, ImportPath, StoredCode
from session_runtime.local.stored import forget, run_stored
from session_runtime.local.tool import LocalTool
from session_runtime.threads import in_thread

Execute = Callable[[dict[str, Any], HandlerContext], object]

_log = logging.getLogger(__name__)


class Handler:
    """The code of one tool; imported by the first caller, for all who wait, and then kept.

    A failed import is forgotten, so that the next call tries again. The modules of a folder leave
    ``sys.modules`` when nobody holds the handler any more; those of an installed package are Python's.
    """

    def __init__(self, tool: LocalTool) -> None:
        self.tool = tool
        self._module_name = f"_handler_{tool.spec.digest}_{id(self):x}"
        self._execute: Execute | None = None
        self._importing: asyncio.Task[Execute] | None = None
        weakref.finalize(self, forget, self._module_name).atexit = False

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
    """Import the function of a tool; the modules of a folder are made under ``module_name``.

    Raises PermanentError with the code ``tool.import_failed`` and leaves no half module behind.
    """
    try:
        found = _imported(tool.code, module_name)
    except BaseException as error:
        forget(module_name)
        raise _import_failed(tool, _place_of(error, tool.code)) from error
    if not callable(found):
        forget(module_name)
        raise _import_failed(tool, _lacks(tool.code))
    execute: Execute = found
    return execute


def _imported(code: Code, module_name: str) -> object:
    """What stands where the function should be; None if nothing does."""
    match code:
        case StoredCode():
            return vars(run_stored(code, module_name)).get(ENTRY)
        case ImportPath():
            importlib.invalidate_caches()  # it may have been installed a moment ago
            return _attribute(importlib.import_module(code.module), code.function)
        case _:
            assert_never(code)


def _attribute(module: object, path: str) -> object:
    try:
        return attrgetter(path)(module)
    except AttributeError:
        return None


def _lacks(code: Code) -> str:
    match code:
        case StoredCode():
            return f"{CODE} has no function {ENTRY}(args, context)"
        case ImportPath():
            return f"{code.module} has no function {code.function}(args, context)"
        case _:
            assert_never(code)


def _import_failed(tool: LocalTool, why: str) -> PermanentError:
    return PermanentError(
        f"its code in {tool.spec.native_name} cannot be imported: {why}", code="tool.import_failed"
    )


def _place_of(error: BaseException, code: Code) -> str:
    """Name the last line of the tool's own files that led to ``error``, and the error."""
    lines = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError) and error.filename is not None:
        lines.append((Path(error.filename), error.lineno or 0))
    shown = [(_shown(path, code), line) for path, line in lines]
    own = [f"{file} line {line}: " for file, line in shown if file is not None]
    told = (
        error.msg if isinstance(error, SyntaxError) and own else error
    )  # its text repeats the place
    return f"{own[-1] if own else ''}{type(error).__name__}: {told}"


def _shown(path: Path, code: Code) -> str | None:
    """What messages call a file of the tool's own; None if it is another's."""
    match code:
        case StoredCode(folder=folder):
            return path.name if path.parent == folder else None
        case ImportPath():
            around = (home.parent for home in code.homes() if path.is_relative_to(home))
            return next((path.relative_to(each).as_posix() for each in around), None)
        case _:
            assert_never(code)
