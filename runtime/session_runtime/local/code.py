"""Where the code of a tool is, and whether it is Python; how it becomes a function: ``loader``."""

import ast
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
            yield from _import_faults(code)
        case _:
            assert_never(code)


def _import_faults(code: ImportPath) -> Iterator[str]:
    """Tell of a module that is missing in a package that is there, and of a function missing in it."""
    files = list(code.files())
    if not files and any(home.is_dir() for home in code.homes()):
        yield f"there is no module {code.module}"
    for path in files:
        content = path.read_bytes()
        faults = list(_syntax_faults(str(path), content))
        yield from faults
        names = None if faults else _top_names(content)
        if names is not None and code.function not in names:
            yield f"{path} has no {code.function}"


def _top_names(content: bytes) -> set[str] | None:
    """What a module may define at its top level, in whatever branch; None if that cannot be told."""
    names: set[str] = set()
    pending: list[ast.AST] = [ast.parse(content)]
    while pending:
        node = pending.pop()
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                names.add(name)
                if name == "__getattr__":
                    return None
                continue
            case ast.ImportFrom(names=imported) if any(each.name == "*" for each in imported):
                return None
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names |= {(each.asname or each.name).partition(".")[0] for each in imported}
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Call(func=ast.Name(id="globals" | "exec" | "setattr" | "vars")):
                return None
        pending += ast.iter_child_nodes(node)
    return names


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
