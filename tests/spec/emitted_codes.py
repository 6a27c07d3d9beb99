"""Which error codes the package and its bundled tools can give, read from their source."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import get_args

from session_runtime.config.shape import leaves
from session_runtime.types import AskEvent
from tests.shape.tree import HANDLERS, PACKAGE, place, python_files, syntax

_CODE = re.compile(r"[a-z_]+(\.[a-z_]+)?")
_DOTTED = re.compile(r"([a-z_]+)\.[a-z_]+")
_FILE = re.compile(r"(agent|approvals|config|revocations)\.(json|toml)|.*\.sqlite")
_PARAMETERS = {"code", "error_code"}
_RETRYABLE = {"TransientError": True, "BusyError": True}
_FINAL = dict.fromkeys(("PermanentError", "RequestError", "StartError"), False)
_FILES = tuple(
    path
    for path in python_files(PACKAGE, HANDLERS)
    if PACKAGE / "testing" not in path.parents  # it speaks for other services, in their codes
)


@cache
def emitted() -> dict[str, str]:
    """Every code, with a place in the source.

    A text that looks like a code is one if codes of its family are given by name (``code="tool.failed"``)
    anywhere; codes without a family are only found where they are given by name or to an ErrorInfo.
    """
    named = {text: at for text, at in _texts(by_name=True) if _CODE.fullmatch(text)}
    families = {match[1] for match in map(_DOTTED.fullmatch, named) if match}
    alike = {
        text: at
        for text, at in _texts(by_name=False)
        if (match := _DOTTED.fullmatch(text)) and match[1] in families
    }
    other = _other_names()
    return {text: at for text, at in (alike | named).items() if text not in other}


def retryable() -> Iterator[tuple[str, bool, str]]:
    """Codes of errors that are raised here, whether trying again may help, and where."""
    classes = _RETRYABLE | _FINAL
    for code, name, at in raised():
        yield code, classes[name], at


def raised() -> Iterator[tuple[str, str, str]]:
    """Codes of errors that are raised here, the name of the error's class, and where."""
    for path in _FILES:
        for node in ast.walk(syntax(path)):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in _RETRYABLE | _FINAL:
                    for text, at in _given_by_name(node):
                        yield text, name, place(path, at)


def _texts(*, by_name: bool) -> Iterator[tuple[str, str]]:
    find = _given_by_name if by_name else _text
    for path in _FILES:
        for node in ast.walk(syntax(path)):
            for text, at in find(node):
                yield text, place(path, at)


def _text(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value, node


def _given_by_name(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Texts as argument, default or value of something called ``code``, and of an ErrorInfo."""
    match node:
        case ast.Call(func=function, args=args, keywords=keywords):
            for keyword in keywords:
                if keyword.arg in _PARAMETERS:
                    yield from _text(keyword.value)
            if args and isinstance(function, ast.Name) and function.id == "ErrorInfo":
                yield from _text(args[0])
        case (
            ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            | ast.Assign(targets=[ast.Name(id=name)], value=value)
        ):
            if name in _PARAMETERS or name.endswith("_CODE"):
                yield from _text(value)
        case ast.arguments(kwonlyargs=parameters, kw_defaults=defaults):
            for parameter, default in zip(parameters, defaults, strict=True):
                if parameter.arg in _PARAMETERS and default is not None:
                    yield from _text(default)


def _other_names() -> set[str]:
    """What looks like a code and is none: names of tools, events, keys and files."""
    tools = {".".join(path.parent.relative_to(HANDLERS).parts) for path in HANDLERS.rglob("*.json")}
    events = {event.type for event in get_args(AskEvent)}
    keys = {".".join(path) for path, _ in leaves(())}
    files = {text for text, _ in _texts(by_name=False) if _FILE.match(text)}
    return tools | events | keys | files
