"""Which rules the tests claim to prove, read from their source without importing them.

A claim counts if it stands on a test that pytest collects: on the function, its class, one of its
parameters, or in the module's ``pytestmark``.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MARKER = "requirement"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Claim:
    """One ``requirement`` marker: the ``rule`` it names, or None if that is not a plain string.

    ``place`` is ``file:line``; ``collected`` is False if no test carries the marker.
    """

    rule: str | None
    place: str
    collected: bool


def claims_below(folder: Path) -> tuple[Claim, ...]:
    """All claims in the Python files below ``folder``, in the order of files and lines."""
    return tuple(
        claim
        for path in sorted(folder.rglob("*.py"))
        for claim in claims(
            path.read_text("utf-8"),
            str(path.relative_to(folder.parent)),
            test_file=path.name.startswith("test_"),
        )
    )


def claims(source: str, name: str, *, test_file: bool) -> tuple[Claim, ...]:
    """All claims in one file; ``name`` is used for their places."""
    tree = ast.parse(source)
    collected = set(_collected(tree)) if test_file else set()
    calls = sorted(_marker_calls(tree), key=lambda call: (call.lineno, call.col_offset))
    return tuple(Claim(_rule(call), f"{name}:{call.lineno}", call in collected) for call in calls)


def _marker_calls(node: ast.AST) -> Iterator[ast.Call]:
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr=attr)) if (
                attr == _MARKER
            ):
                yield inner


def _rule(call: ast.Call) -> str | None:
    match call:
        case ast.Call(args=[ast.Constant(value=str(rule))], keywords=[]):
            return rule
    return None


def _collected(module: ast.Module) -> Iterator[ast.Call]:
    if not any(True for _ in _tests(module.body)):
        return
    for node in module.body:
        if _is_pytestmark(node):
            yield from _marker_calls(node)
    yield from _on_tests(module.body)


def _on_tests(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for node in _tests(body):
        for decorator in node.decorator_list:
            yield from _marker_calls(decorator)
        if isinstance(node, ast.ClassDef):
            yield from _on_tests(node.body)


def _tests(body: list[ast.stmt]) -> Iterator[_Function | ast.ClassDef]:
    for node in body:
        if isinstance(node, _Function) and node.name.startswith("test_"):
            yield node
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            if any(True for _ in _tests(node.body)):
                yield node


def _is_pytestmark(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="pytestmark")]):
            return True
        case ast.AnnAssign(target=ast.Name(id="pytestmark")):
            return True
    return False
