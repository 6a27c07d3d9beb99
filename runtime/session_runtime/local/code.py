"""Where the code of a tool is, and whether it is Python; how it becomes a function: ``loader``."""

import importlib.util
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import assert_never


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
            spec = _found(self.outermost)
        except ValueError:  # a module that came from nowhere, such as __main__
            return ()
        if spec is None:
            return ()
        files = [spec.origin] if spec.has_location and spec.origin else []
        return tuple(Path(each) for each in spec.submodule_search_locations or files)

    @property
    def outermost(self) -> str:
        """The package around the module, or the module itself."""
        return self.module.partition(".")[0]

    def files(self) -> Iterator[Path]:
        """Where the text of the module is, as far as that can be told without importing anything."""
        for home in self.homes():
            path = home.joinpath(*self.module.split(".")[1:])
            places = (path, path / "__init__.py", path.with_name(f"{path.name}.py"))
            yield from (each for each in places if each.suffix == ".py" and each.is_file())

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


Code = StoredCode | ImportPath


def code_faults(code: Code) -> Iterator[str]:
    """Tell what of the code can never be imported, with file and line; nothing of it is run.

    It takes as long as compiling: for checks, not for starting.
    """
    match code:
        case StoredCode(files=files):
            for name, content in files.items():
                yield from _syntax_faults(name, content)
        case ImportPath():
            if _is_nowhere(code.outermost):
                yield f"there is no module {code.outermost}: install it where the daemon runs"
            for path in code.files():
                yield from _syntax_faults(str(path), path.read_bytes())
        case _:
            assert_never(code)


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


def _is_nowhere(module: str) -> bool:
    try:
        return _found(module) is None
    except ValueError:
        return False


def _found(module: str) -> ModuleSpec | None:
    return importlib.util.find_spec(module)
