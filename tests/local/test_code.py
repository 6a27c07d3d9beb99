"""Code that can never be imported is found without running any."""

import sys
from importlib import machinery
from pathlib import Path

import pytest

from session_runtime.local.code import ImportPath, StoredCode, code_faults
from tests.support import importable

EXPLODES = "raise AssertionError('it ran')\n"
UNTOLD = (
    "globals()['f'] = print\n",
    "def g():\n    global f\n    f = print\ng()\n",
    "def g():\n    globals()['f'] = print\ng()\n",
    "class G:\n    global f\n    f = print\n",
    "import sys\ndef g():\n    setattr(sys.modules[__name__], 'f', print)\ng()\n",
    "import sys\nsys.modules[__name__] = print\n",
    "__getattr__ = lambda name: print\n",
    "locals().update(f=print)\n",
    "vars()['f'] = print\n",
    "exec('f = print')\n",
    "import inspect\ninspect.currentframe().f_globals['f'] = print\n",
)
"""Modules that come to ``f`` in ways that their text does not show."""


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
    handler = f"{EXPLODES}def execute(args, context): ...\n".encode()
    code = stored(handler=handler, good=b"x = '\\d'\n", bad=b"x =\n", worse=b")\n")
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
        ("match [1]:\n    case [f]:\n        pass\n", True),
        ("match [1]:\n    case [*f]:\n        pass\n", True),
        ("match {}:\n    case {**f}:\n        pass\n", True),
        ("def g(x=(f := print)):\n    pass\n", True),
        ("class G(print if (f := 1) else print):\n    pass\n", True),
        *((text, True) for text in UNTOLD),
        ("f.g = 1\n", False),
        ("x = '\\d'\n", False),
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


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    ("function", "faults"), [("Tool.run", 0), ("Tool.inner.run", 0), ("Other.run", 1)]
)
def test_of_a_dotted_function_only_the_first_name_is_looked_for(
    site: Path, function: str, faults: int
) -> None:
    (site / "alone.py").write_text("class Tool:\n    pass\n")
    assert len(list(code_faults(ImportPath("alone", function)))) == faults


@pytest.mark.requirement("REG-6")
def test_only_the_file_that_python_takes_is_looked_at(site: Path) -> None:
    (site / "acme" / "both").mkdir(parents=True)
    (site / "acme" / "both" / "__init__.py").write_text("f = print\n")
    (site / "acme" / "both.py").write_text("stale = (\n")
    (site / "acme" / "inner").mkdir()
    (site / "acme" / "inner.py").write_text("f = print\n")
    for module in ("acme.both", "acme.inner"):
        assert list(code_faults(ImportPath(module, "f"))) == []


@pytest.mark.requirement("REG-6")
def test_a_module_inside_of_a_package_is_an_attribute_of_it(site: Path) -> None:
    (site / "acme").mkdir()
    (site / "acme" / "__init__.py").write_text("from acme.shop import words\n")
    (site / "acme" / "shop.py").write_text("words = 1\ndef run(args, context): ...\n")
    assert list(code_faults(ImportPath("acme", "shop.run"))) == []


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize("suffix", [*machinery.EXTENSION_SUFFIXES, *machinery.BYTECODE_SUFFIXES])
@pytest.mark.parametrize("module", ["acme.shop", "acme.shop.deep", "alone"])
def test_of_what_is_no_text_nothing_is_said(site: Path, suffix: str, module: str) -> None:
    (site / "acme").mkdir()
    for name in ("acme/__init__.py", f"acme/shop{suffix}", f"alone{suffix}"):
        (site / name).write_bytes(b"")
    assert list(code_faults(ImportPath(module, "f"))) == []


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    "around",
    [
        "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
        "import sys\nsys.modules['acme.shop'] = sys\n",
    ],
)
def test_a_package_that_says_itself_where_its_modules_are_may_have_any(
    site: Path, around: str
) -> None:
    (site / "acme").mkdir()
    (site / "acme" / "__init__.py").write_text(around)
    assert list(code_faults(ImportPath("acme.shop", "f"))) == []


class Elsewhere:
    """Finds the package ``mapped`` as an editable installation of a namespace package is found."""

    def __init__(self, *places: str) -> None:
        self._places = places

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> machinery.ModuleSpec | None:
        if name != "mapped":
            return None
        spec = machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = list(self._places)
        return spec


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize("places", [("__editable__.mapped.__path_hook__",), ()])
@pytest.mark.parametrize("real", [True, False], ids=["beside a folder", "alone"])
def test_a_package_that_lies_in_no_folder_may_have_any_module(
    site: Path, monkeypatch: pytest.MonkeyPatch, places: tuple[str, ...], real: bool
) -> None:
    (site / "real").mkdir()
    everywhere = (*places, str(site / "real")) if real and places else places
    monkeypatch.setattr(sys, "meta_path", [Elsewhere(*everywhere), *sys.meta_path])
    assert list(code_faults(ImportPath("mapped.shop", "f"))) == []


@pytest.mark.requirement("REG-6")
def test_a_module_is_looked_for_in_every_folder_of_a_namespace(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for folder, name in ((site, "one"), (other, "two")):
        (folder / "acme" / "deep").mkdir(parents=True)
        (folder / "acme" / "deep" / f"{name}.py").write_text("f = print\n")
    with importable(other):
        told = [list(code_faults(ImportPath(f"acme.deep.{each}", "f"))) for each in ("one", "two")]
        absent = list(code_faults(ImportPath("acme.deep.three", "f")))
    assert (told, absent) == ([[], []], ["there is no module acme.deep.three"])


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"def execute(args, context): ...\n", True),
        (b"from .other import execute\n", True),
        (b"from .other import *\n", True),
        (b"globals()['execute'] = print\n", True),
        (b"", False),
        (b"# first half\nimport json\n", False),
        (b"def run(args, context): ...\n", False),
        (b"def exec(args, context): ...\n", False),
        (b"async def eval(args, context): ...\n", False),
    ],
)
def test_a_folder_without_its_function_is_told(content: bytes, found: bool) -> None:
    told = list(code_faults(stored(handler=content, other=b"x = 1\n")))
    assert told == ([] if found else ["handler.py has no function execute(args, context)"])


ENTRY = "def execute(args, context): ...\n"


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (
            "import no_such_package",
            "handler.py line 1: there is no module no_such_package: install it where the daemon runs",
        ),
        (
            '"""Doc."""\nimport json, no_such.part as x',
            "handler.py line 2: there is no module no_such: install it where the daemon runs",
        ),
        (
            "from no_such_package import x",
            "handler.py line 1: there is no module no_such_package: install it where the daemon runs",
        ),
        ("from email import nope_module", None),
        ("import email.nope_module", "handler.py line 1: there is no module email.nope_module"),
        ("from . import other, nope", "handler.py line 1: there is no nope.py beside it"),
        ("from .nope import x", "handler.py line 1: there is no nope.py beside it"),
        ("import os.path\nfrom .other import x", None),
        ("import json\nfrom . import json", None),
        ("from . import __file__", None),
        ("try:\n    import no_such_package\nexcept ImportError:\n    pass", None),
        ("import json\nif json is None:\n    import no_such_package", None),
        ("import json\njson.dumps(1)\nimport no_such_package", None),
        ("import sys\nimport no_such_package", None),
        ("from . import nope\nglobals()", None),
    ],
)
def test_a_module_that_the_first_lines_import_and_that_is_not_there_is_told(
    head: str, fault: str | None
) -> None:
    code = stored(handler=f"{head}\n{ENTRY}".encode(), other=b"x = 1\n")
    assert list(code_faults(code)) == ([] if fault is None else [fault])
