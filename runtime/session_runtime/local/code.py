"""Where the code of a tool is, and whether it is Python; how it becomes a function: ``loader``."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Final, assert_never

from session_runtime.local.finding import find_inside, find_module, find_outermost, text_of
from session_runtime.local.names import Needed, is_plain, may_define, moves_modules, needs

CODE: Final = "handler.py"
"""The file of a folder that holds its function, ``ENTRY``."""
ENTRY: Final = "execute"


@dataclass(frozen=True, slots=True)
class StoredCode:
    """The Python files of a folder as they were read: names to bytes (REL-7)."""

    folder: Path
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class ImportPath:
    """A function of a module that Python finds by itself: ``package.module`` and ``function``."""

    module: str
    function: str

    @classmethod
    def parse(cls, text: str) -> "ImportPath":
        """Split what ``config.handlers.import_fault`` finds no fault with."""
        module, _, function = text.partition(":")
        return cls(module, function)

    def homes(self) -> tuple[Path, ...]:
        """Where the outermost package of the module is, or its file if that is all; () if nowhere.

        To find an outermost name, Python imports nothing; for an inner one it imports what is around it.
        """
        try:
            spec = find_outermost(self.module.partition(".")[0])
        except ValueError:  # a module that came from nowhere, such as __main__
            return ()
        if spec is None:
            return ()
        files = [spec.origin] if spec.has_location and spec.origin else []
        return tuple(Path(each) for each in spec.submodule_search_locations or files)

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


Code = StoredCode | ImportPath


def code_faults(code: Code) -> Iterator[str]:
    """Tell what of the code can never be imported, with file and line; nothing of it is run.

    What cannot be told for sure is not told. It takes as long as compiling: for checks, not for starting.
    """
    match code:
        case StoredCode():
            faults = list(stored_faults(code))
            yield from faults or _missing_modules(code)
        case ImportPath():
            yield from _import_faults(code)
        case _:
            assert_never(code)


def stored_faults(code: StoredCode) -> Iterator[str]:
    """Tell what of a folder is no Python, or that its function is missing: only an edit of it helps."""
    faults = [each for name, text in code.files.items() for each in _syntax_faults(name, text)]
    yield from faults
    names = None if faults else may_define(code.files[CODE])
    if names is not None and ENTRY not in names:
        yield f"{CODE} has no function {ENTRY}(args, context)"


def _missing_modules(code: StoredCode) -> Iterator[str]:
    """Tell of modules that the first lines of the code import and that are not there."""
    texts = code.files.values()
    settled = not any(map(moves_modules, texts))
    beside = settled and all(map(is_plain, texts))
    for need in needs(code.files[CODE]):
        fault = _not_beside(code, need) if need.beside else _not_installed(need)
        if fault is not None and (beside if need.beside else settled):
            yield f"{CODE} line {need.line}: {fault}"


def _not_beside(code: StoredCode, need: Needed) -> str | None:
    file = f"{need.module.partition('.')[0]}.py"
    return None if file in code.files else f"there is no {file} beside it"


def _not_installed(need: Needed) -> str | None:
    try:
        find_module(need.module)
    except ModuleNotFoundError as error:
        return str(error)
    except (LookupError, OSError, ValueError):
        pass
    return None


def _import_faults(code: ImportPath) -> Iterator[str]:
    """Tell of a module that is not there, and of a function that is missing in it."""
    try:
        spec = find_module(code.module)
        path = text_of(spec)
        content = path.read_bytes() if path is not None else None
    except ModuleNotFoundError as error:
        yield str(error)
        return
    except (LookupError, OSError):
        return
    if path is None or content is None:
        return
    faults = list(_syntax_faults(str(path), content))
    yield from faults
    names = None if faults else may_define(content)
    first = code.function.partition(".")[0]
    if names is not None and first not in names and not _has_inside(spec, first):
        yield f"{path} has no {first}"


def _has_inside(package: ModuleSpec, name: str) -> bool:
    """Whether a package has a module of this name: it is an attribute as soon as somebody imports it."""
    folders = [Path(each) for each in package.submodule_search_locations or ()]
    return find_inside(f"{package.name}.{name}", folders) is not None


def _syntax_faults(name: str, content: bytes) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(content, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f" line {error.lineno}" if error.lineno else ""
        yield f"{name}{line}: {type(error).__name__}: {error.msg}"
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        yield f"{name}: {type(error).__name__}: {error}"
