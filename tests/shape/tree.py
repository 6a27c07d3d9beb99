"""The project's files and their syntax trees, as the tests of its shape look at them."""

import ast
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "runtime" / "session_runtime"
HANDLERS = ROOT / "handlers"
TESTS = ROOT / "tests"
OWN = "session_runtime"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*folders: Path) -> tuple[Path, ...]:
    """All Python files below the folders, sorted."""
    return tuple(sorted(path for folder in folders for path in folder.rglob("*.py")))


def project_files() -> Iterator[Path]:
    """Every file of the project, without what tools leave behind (see ``.gitignore``)."""
    for path in ROOT.iterdir():
        if path.is_file():
            yield path
        elif path.name == ".ci" or not (path.name.startswith(".") or path.name in left_by_tools()):
            yield from (p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


@cache
def left_by_tools() -> frozenset[str]:
    """Names that git ignores: build results and caches."""
    lines = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    return frozenset(line.strip("/") for line in lines if line)


@cache
def syntax(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text("utf-8"), str(path))


def place(path: Path, node: ast.AST | None = None) -> str:
    """``file:line`` from the project's root."""
    line = f":{node.lineno}" if isinstance(node, ast.stmt | ast.expr) else ""
    return f"{path.relative_to(ROOT)}{line}"


def functions(path: Path) -> Iterator[Function]:
    """All functions and methods of a file, inner ones too."""
    return (node for node in ast.walk(syntax(path)) if isinstance(node, Function))


def module_name(path: Path) -> str:
    """``session_runtime.ask.loop`` for that file; a package's name for its ``__init__.py``."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(node: ast.AST) -> tuple[str, ...]:
    """Dotted names that an import statement asks for, ``from a import b`` as ``a.b``."""
    match node:
        case ast.Import(names=names):
            return tuple(alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=0):
            return tuple(f"{module}.{alias.name}" for alias in names)
    return ()


def imported_modules(path: Path, modules: Container[str]) -> Iterator[str]:
    """Those of ``modules`` that a file imports; ``from a import b`` is ``a.b`` if that is one."""
    for node in ast.walk(syntax(path)):
        for name in imported(node):
            for module in (name, name.rpartition(".")[0]):
                if module in modules:
                    yield module
                    break


def is_ours(name: str) -> bool:
    """Whether a dotted name lies in the package."""
    return name.split(".")[0] == OWN
