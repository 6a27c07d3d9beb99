"""The code keeps the shape that docs/architecture.md draws; a failure lists every offender."""

import ast
import graphlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.shape.tree import (
    HANDLERS,
    OWN,
    PACKAGE,
    ROOT,
    TESTS,
    functions,
    imported,
    imported_modules,
    is_ours,
    left_by_tools,
    module_name,
    place,
    project_files,
    python_files,
    syntax,
)

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 400
MAX_SUMMARY_CHARS = 240
VAGUE_NAMES = {"utils", "util", "helper", "helpers", "manager", "managers", "common", "misc"}
TOP_LEVEL = {
    "LICENSE",
    "Makefile",
    "README.md",
    "config.toml",
    "docs",
    "handlers",
    "pyproject.toml",
    "requirements-dev.lock",
    "runtime",
    "tests",
}
PACKAGE_INDEX = re.compile(
    r"https?://[^\s/\"'<>]*(?:pypi|pythonhosted|npm|crates|registry|mirror|artifact)"
    r"|https?://[^\s\"'<>]+/simple\b"
    r"|--(?:extra-)?index-url[ =]|--find-links[ =]|--trusted-host[ =]",
    re.IGNORECASE,
)


def _listing(offenders: Iterable[str]) -> str:
    return "".join(f"\n  {offender}" for offender in sorted(offenders))


def test_functions_fit_on_a_screen() -> None:
    offenders = [
        f"{place(path, function)} {function.name}: {lines} lines"
        for path in python_files(PACKAGE, HANDLERS, TESTS)
        for function in functions(path)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not offenders, _listing(offenders)


def test_files_are_short() -> None:
    offenders = [
        f"{place(path)}: {lines} lines"
        for path in python_files(PACKAGE, HANDLERS, TESTS)
        if (lines := len(path.read_text("utf-8").splitlines())) > MAX_FILE_LINES
    ]
    assert not offenders, _listing(offenders)


def test_modules_do_not_import_in_circles() -> None:
    modules = {module_name(path): path for path in python_files(PACKAGE)}
    graph = {
        name: {target for target in imported_modules(path, modules) if target != name}
        for name, path in modules.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from error


def test_our_own_code_is_imported_at_the_top() -> None:
    offenders = [
        f"{place(path, node)}: {name}"
        for path in python_files(PACKAGE, HANDLERS)
        for function in functions(path)
        for node in ast.walk(function)
        for name in imported(node)
        if is_ours(name)
    ]
    assert not offenders, _listing(offenders)


def test_no_import_is_for_the_type_checker_alone() -> None:
    offenders = [
        place(path, node)
        for path in python_files(PACKAGE, HANDLERS)
        for node in ast.walk(syntax(path))
        if any(name.endswith(".TYPE_CHECKING") for name in imported(node))
        or (isinstance(node, ast.Attribute) and node.attr == "TYPE_CHECKING")
    ]
    assert not offenders, _listing(offenders)


def test_every_module_starts_with_a_sentence() -> None:
    offenders = [
        f"{place(path)}: {summary!r}"
        for path in python_files(PACKAGE, HANDLERS)
        for summary in [(ast.get_docstring(syntax(path)) or "").partition("\n\n")[0]]
        if not summary.endswith((".", ":")) or len(summary) > MAX_SUMMARY_CHARS
    ]
    assert not offenders, _listing(offenders)


def test_names_of_modules_say_what_they_hold() -> None:
    offenders = [
        place(path)
        for path in (*python_files(PACKAGE, HANDLERS, TESTS), *PACKAGE.rglob("*/"))
        if VAGUE_NAMES & set(path.stem.lower().split("_"))
    ]
    assert not offenders, _listing(offenders)


def test_attributes_are_declared_and_not_probed() -> None:
    offenders = [
        f"{place(path, node)}: {ast.unparse(node)}"
        for path in python_files(PACKAGE, HANDLERS)
        for node in ast.walk(syntax(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "hasattr"
    ]
    assert not offenders, _listing(offenders)


def test_handlers_import_the_handler_module_and_the_standard_library_only() -> None:
    offenders = [
        f"{place(path, node)}: {name}"
        for path in python_files(HANDLERS)
        for node in ast.walk(syntax(path))
        for name in imported(node)
        if not name.startswith(f"{OWN}.handler.")
        and name.split(".")[0] not in sys.stdlib_module_names
    ]
    assert not offenders, _listing(offenders)


def test_no_file_names_a_package_index() -> None:
    offenders = [
        f"{place(path)}:{number}: {line.strip()[:100]}"
        for path in project_files()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if PACKAGE_INDEX.search(line)
    ]
    assert not offenders, _listing(offenders)


def test_the_top_level_holds_the_agreed_names() -> None:
    present = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    present -= left_by_tools()
    assert present == TOP_LEVEL, _listing(present ^ TOP_LEVEL)


def test_imports_go_down_only() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
