"""Code that can never be imported is found without running any."""

import sys
from pathlib import Path

import pytest

from session_runtime.local.code import ImportPath, StoredCode, code_faults

EXPLODES = "raise AssertionError('it ran')\n"


def stored(**files: bytes) -> StoredCode:
    return StoredCode(Path("/tools/x"), {f"{name}.py": content for name, content in files.items()})


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (
            b"def execute(args, context)\n    return 1\n",
            "handler.py line 1: SyntaxError: expected ':'",
        ),
        (b"x = 1\nx = (\n", "handler.py line 2: SyntaxError: '(' was never closed"),
        (b"\tx = 1\n        y = 2\n", "handler.py line 1: IndentationError: unexpected indent"),
        (
            b"x = '\xff'\n",
            "handler.py line 1: SyntaxError: (unicode error) 'utf-8' codec can't decode",
        ),
        (b"x = 1\0\n", "handler.py: "),
        (b"return 1\n", "handler.py line 1: SyntaxError: 'return' outside function"),
        (b"x = " + b"-" * 100_000 + b"1\n", "handler.py: "),
    ],
)
def test_a_file_that_is_no_python_is_told_with_its_line(content: bytes, fault: str) -> None:
    [told] = code_faults(stored(handler=content))
    assert told.startswith(fault)


def test_every_file_of_a_folder_is_looked_at_and_none_is_run() -> None:
    code = stored(handler=EXPLODES.encode(), good=b"x = '\\d'\n", bad=b"x =\n", worse=b")\n")
    assert [fault.partition(":")[0] for fault in code_faults(code)] == [
        "bad.py line 1",
        "worse.py line 1",
    ]


@pytest.mark.requirement("REG-6")
def test_the_module_of_an_entry_is_read_and_not_imported(site: Path) -> None:
    (site / "acme" / "deep").mkdir(parents=True)
    for path, text in {
        "alone.py": "x =\n",
        "acme/__init__.py": EXPLODES,
        "acme/shop.py": "def price(args, context:\n",
        "acme/deep/__init__.py": ")\n",
        "acme/good.py": EXPLODES,
    }.items():
        (site / path).write_text(text)
    faults = {
        module: list(code_faults(ImportPath(module, "f")))
        for module in (
            "alone",
            "acme.shop",
            "acme.deep",
            "acme.good",
            "acme.unseen",
            "math",
            "os.path",
        )
    }
    assert faults == {
        "alone": [f"{site / 'alone.py'} line 1: SyntaxError: invalid syntax"],
        "acme.shop": [f"{site / 'acme/shop.py'} line 1: SyntaxError: '(' was never closed"],
        "acme.deep": [f"{site / 'acme/deep/__init__.py'} line 1: SyntaxError: unmatched ')'"],
        "acme.good": [f"{site / 'acme/good.py'} has no f"],
        "acme.unseen": ["there is no module acme.unseen"],
        "math": [],
        "os.path": [],
    }
    assert "acme" not in sys.modules


@pytest.mark.requirement("REG-6")
def test_a_module_that_nobody_installed_is_told() -> None:
    assert list(code_faults(ImportPath("no_such_package.shop", "f"))) == [
        "there is no module no_such_package: install it where the daemon runs"
    ]


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(args, context):\n    pass\n", True),
        ("async def f(args, context):\n    pass\n", True),
        ("class f:\n    pass\n", True),
        ("f = g = print\n", True),
        ("(e, f), *h = [(1, 2)]\n", True),
        ("f: object = print\n", True),
        ("from os import path as f\n", True),
        ("import f.g\n", True),
        ("try:\n    from a import f\nexcept ImportError:\n    pass\n", True),
        ("if (f := 1):\n    pass\n", True),
        ("from elsewhere import *\n", True),
        ("def __getattr__(name):\n    return print\n", True),
        ("globals()['f'] = print\n", True),
        ("f.g = 1\n", False),
        ("def other():\n    def f():\n        pass\n    f = 1\n", False),
        ("class Other:\n    f = 1\n", False),
        ("F = 1\n", False),
        ("from a import f as g\n", False),
    ],
)
def test_a_function_that_its_module_does_not_have_is_told(
    site: Path, text: str, found: bool
) -> None:
    (site / "alone.py").write_text(text)
    expected = [] if found else [f"{site / 'alone.py'} has no f"]
    assert list(code_faults(ImportPath("alone", "f"))) == expected
