"""Checks the form of a file; nothing of it is run."""

import ast
import configparser
import csv
import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from session_runtime.handler import HandlerContext, ToolError


def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Say ``ok``, or what is wrong with the file."""
    path = args["path"]
    kind = PurePosixPath(path).suffix.lower()
    check = _CHECKS.get(kind)
    if check is None:
        known = ", ".join(_CHECKS)
        raise ToolError(f"{path} is of no kind that can be checked: {known}")
    try:
        text = context.files.read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte {error.start}"
    try:
        return check(text) or "ok"
    except (RecursionError, MemoryError):
        return "nested too deeply to be read"


def _json(text: str) -> str | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except ValueError as error:
        return str(error)
    return None


def _toml(text: str) -> str | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return str(error)
    return None


def _ini(text: str) -> str | None:
    try:
        configparser.ConfigParser(interpolation=None).read_string(text)
    except configparser.Error as error:
        return " ".join(str(error).split())
    return None


def _csv(text: str) -> str | None:
    try:
        reader = csv.reader(text.splitlines(), strict=True)
        first = next(reader, [])
        for row in reader:
            if row and len(row) != len(first):
                return f"line {reader.line_num}: {len(row)} cells, the first line has {len(first)}"
    except csv.Error as error:
        return str(error)
    return None


def _python(text: str) -> str | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:
        return str(error)
    return None


_CHECKS: Mapping[str, Callable[[str], str | None]] = MappingProxyType(
    {".json": _json, ".toml": _toml, ".ini": _ini, ".csv": _csv, ".py": _python}
)
