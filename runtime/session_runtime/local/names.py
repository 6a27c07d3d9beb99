"""Which names the text of a module may define, told without running it; what lacks one: ``code``."""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_BY_OTHER_MEANS: Final = re.compile(
    rb"(?<!def )\b(?:global|globals|f_globals|locals|vars|exec|eval|setattr|modules)\b"
    rb"|\b(?:__getattr__|__dict__|__path__)\b"
)
"""With any of these words anywhere, a module may come to names that its text does not show.

A function that is merely called so, such as ``def exec(args, context)``, gives nothing a name.
"""
_FROM_ELSEWHERE: Final = re.compile(rb"\b(?:sys|site|importlib|pkgutil)\b")
"""With any of these words, a module may change where Python looks for others."""


@dataclass(frozen=True, slots=True)
class Needed:
    """A module that an import needs: ``beside`` for one of the same folder, ``acme.shop`` for any other."""

    line: int
    module: str
    beside: bool


def is_plain(content: bytes) -> bool:
    """Whether a module gets its names, and its place among others, in no way but by what its text says."""
    return _BY_OTHER_MEANS.search(content) is None


def moves_modules(content: bytes) -> bool:
    """Whether a text may change where Python looks for modules."""
    return _FROM_ELSEWHERE.search(content) is not None


def needs(content: bytes) -> Iterator[Needed]:
    """List what the imports at the head of a module that is Python need, before anything else runs.

    Those in a branch, or after other statements, may never be reached or may find what those made.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(content)
    bound: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Import(names=names):
                yield from (Needed(node.lineno, each.name, beside=False) for each in names)
            case ast.ImportFrom(level=0, module=str(module)):
                yield Needed(node.lineno, module, beside=False)
            case ast.ImportFrom(level=1, module=str(module)):
                yield Needed(node.lineno, module, beside=True)
            case ast.ImportFrom(level=1, names=names):
                wanted = (each.name for each in names if each.name not in bound)
                yield from (
                    Needed(node.lineno, name, beside=True)
                    for name in wanted
                    if name != "*" and not name.startswith("__")
                )
            case ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                return
        bound.update(_bound_by(node))


def may_define(content: bytes) -> frozenset[str] | None:
    """List what a module that is Python may define at its top level, in whatever branch.

    None if that cannot be told.
    """
    if not is_plain(content):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pending: list[ast.AST] = [ast.parse(content)]
    names: set[str] = set()
    while pending:
        node = pending.pop()
        names.update(_bound_by(node))
        pending += _in_the_same_scope(node)
    return None if "*" in names else frozenset(names)


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that a node itself binds; ``*`` for those of another module."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=imported) | ast.ImportFrom(names=imported):
            yield from ((each.asname or each.name).partition(".")[0] for each in imported)
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case (
            ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield name


def _in_the_same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """What is inside of a node, without the body of a function or class, whose names are its own."""
    match node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body) | ast.ClassDef(body=body):
            return (each for each in ast.iter_child_nodes(node) if each not in body)
        case _:
            return ast.iter_child_nodes(node)
