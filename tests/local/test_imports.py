"""Functions of modules are imported at their first call as folders are: once, late, told in words."""

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from session_runtime.errors import PermanentError
from session_runtime.handler import HandlerContext
from session_runtime.local.loader import Handler
from session_runtime.local.source import LocalSource
from tests.support import install, manifest, scan_of


def source(imported: str, previous: LocalSource | None = None) -> LocalSource:
    """The tool ``t`` alone, registered as a function of a module."""
    entry = {"import": imported, "description": "Does t."}
    return LocalSource(scan_of(entries={"t": entry}), previous)


def handler(imported: str) -> Handler:
    return source(imported).handlers["t"]


def write(site: Path, **modules: str) -> None:
    for name, code in modules.items():
        path = site.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")


async def call(given: LocalSource, **arguments: object) -> object:
    [spec] = await given.list_tools()
    return await given.call(spec, arguments, HandlerContext())


async def refusal(given: Handler) -> str:
    with pytest.raises(PermanentError) as caught:
        await given.load()
    assert caught.value.code == "tool.import_failed"
    return str(caught.value)


@pytest.mark.requirement("REG-6")
async def test_the_first_call_imports_the_module_and_runs_a_plain_function_in_a_thread(
    site: Path,
) -> None:
    write(
        site,
        acme__shop="import threading\nfrom acme.words import WORD\n"
        "def price(args, context):\n    return WORD, args, threading.current_thread().name\n",
        acme__words="WORD = '价格'\n",
    )
    given = source("acme.shop:price")
    assert "acme" not in sys.modules
    assert await call(given, x=1) == ("价格", {"x": 1}, "tool t")
    assert "acme.shop" in sys.modules


@pytest.mark.requirement("REG-6")
async def test_an_asynchronous_function_runs_on_the_event_loop(site: Path) -> None:
    write(site, shop="import threading\nasync def price(a, c):\n    return threading.get_ident()\n")
    assert await call(source("shop:price")) == threading.get_ident()


@pytest.mark.requirement("REG-6")
async def test_a_method_of_a_class_may_be_named(site: Path) -> None:
    write(
        site,
        shop="class Shop:\n    @staticmethod\n    def price(args, context):\n        return 7\n",
    )
    assert await call(source("shop:Shop.price")) == 7


@pytest.mark.requirement("REG-6")
async def test_the_tool_of_a_package_is_called_like_any_other(site: Path) -> None:
    code = "def execute(args, context):\n    return 'called'\n"
    files = {"acme/__init__.py": code, "acme/config.json": manifest("price")}
    install(site, "acme", "1", {"shop.price": "acme:execute"}, files)
    assert await call(LocalSource(scan_of(plugins=("acme",)))) == "called"


@pytest.mark.requirement("REG-6")
async def test_all_who_wait_get_one_import_which_is_off_the_loop(site: Path) -> None:
    write(site, shop="import threading\nHOME = threading.get_ident()\ndef price(a, c): ...\n")
    given = handler("shop:price")
    loaded = await asyncio.gather(*(given.load() for _ in range(20)))
    assert len(set(loaded)) == 1
    assert sys.modules["shop"].HOME != threading.get_ident()


@pytest.mark.requirement("REG-6")
async def test_an_import_that_failed_is_tried_again_even_for_what_was_not_installed(
    site: Path,
) -> None:
    given = handler("acme.shop:price")
    told = "its code in acme.shop:price cannot be imported: ModuleNotFoundError: No module named "
    assert await refusal(given) == f"{told}'acme'"
    write(site, acme__shop="\nimport not_there\n")
    assert "acme/shop.py line 2: ModuleNotFoundError" in await refusal(given)
    write(site, acme__shop="def price(args, context):\n    return 'ready, at last'\n")
    assert (await given.load())({}, HandlerContext()) == "ready, at last"


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    ("imported", "why"),
    [
        ("acme.crash:f", "acme/crash.py line 2: ZeroDivisionError: division by zero"),
        ("acme.syntax:f", "acme/syntax.py line 1: SyntaxError: "),
        ("acme.leads:f", "acme/crash.py line 2: ZeroDivisionError"),
        ("acme.json:f", "acme/json.py line 2: JSONDecodeError"),
        ("acme.exits:f", "acme/exits.py line 1: SystemExit: 3"),
        ("acme.gone:f", "ModuleNotFoundError: No module named 'acme.gone'"),
        ("alone:f", "alone.py line 1: NameError"),
        ("nowhere:f", "ModuleNotFoundError: No module named 'nowhere'"),
        ("acme.good:f", "acme.good has no function f(args, context)"),
        ("acme.good:X.y", "acme.good has no function X.y(args, context)"),
        ("acme.good:X", "acme.good has no function X(args, context)"),
    ],
)
async def test_the_error_of_a_failed_import_names_module_file_and_line(
    site: Path, imported: str, why: str
) -> None:
    write(
        site,
        acme__crash="\n1 / 0\n",
        acme__syntax="def f(:\n",
        acme__leads="from acme import crash\n",
        acme__json="import json as j\nj.loads('{')\n",
        acme__exits="raise SystemExit(3)\n",
        acme__good="X = 3\n",
        alone="f\n",
    )
    told = await refusal(handler(imported))
    assert told.startswith(f"its code in {imported} cannot be imported: {why}")


@pytest.mark.requirement("REG-6")
async def test_a_tool_that_did_not_change_keeps_its_function_over_a_scan(site: Path) -> None:
    write(site, shop="calls = []\ndef price(a, c):\n    calls.append(1)\n    return len(calls)\n")
    before = source("shop:price")
    assert await call(before) == 1
    after = source("shop:price", before)
    assert after.handlers["t"] is before.handlers["t"]
    assert await call(after) == 2
