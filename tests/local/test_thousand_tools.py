"""A thousand handlers cost a scan, not a thousand imports; one call imports one of them."""

import asyncio
import gc
import sys
from pathlib import Path

import pytest

from session_runtime.handler import HandlerContext
from session_runtime.local.source import LocalSource
from session_runtime.registry.catalog import build_catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.registry import Registry
from tests.support import scan_of, write_handler

TOOLS = 1_000
CODE = "import asyncio\nasync def execute(args, context):\n    return 'tool {number}'\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for number in range(TOOLS):
        code = "1 / 0\n" if number == 7 else CODE.format(number=number)
        write_handler(root, f"group{number % 40}.tool{number}", code=code)
    return root


def imported() -> int:
    gc.collect()
    return sum(name.startswith("_handler_") for name in sys.modules)


@pytest.mark.requirement("REG-2")
async def test_the_first_call_imports_one_handler_and_no_other(tree: Path) -> None:
    before = imported()
    found = scan_of(tree)
    catalog = await build_catalog([LocalSource(found)], found.quarantined, found.checks)
    assert (len(catalog.specs), catalog.quarantined, imported()) == (TOOLS, (), before)
    registry = Registry()
    invoker = Invoker(registry, 60, 1_000)
    spec = catalog.lookup("group2.tool42")
    results = await asyncio.gather(
        *(invoker.invoke(catalog, spec, {}, HandlerContext(call_id=str(n))) for n in range(50))
    )
    assert {result.content for result in results} == {"tool 42"}
    assert imported() == before + 1
    counted = [each.name for each in catalog.specs if registry.statistics(each).imported]
    assert counted == ["group2.tool42"]


@pytest.mark.requirement("REG-2")
async def test_a_tool_whose_import_fails_is_an_error_in_words_and_disturbs_nobody(
    tree: Path,
) -> None:
    catalog = await build_catalog([LocalSource(scan_of(tree))])
    invoker = Invoker(Registry(), 60, 1_000)
    broken, good = catalog.lookup("group7.tool7"), catalog.lookup("group7.tool47")
    for _ in range(2):
        failed = await invoker.invoke(catalog, broken, {}, HandlerContext())
        assert (failed.error_code, failed.content) == (
            "tool.import_failed",
            "group7.tool7 was not run: its code in group7/tool7 cannot be imported: handler.py line 1: "
            "ZeroDivisionError: division by zero. The import will be tried again at the next call; "
            "a fault in the file stays until the file is fixed and read again.",
        )
    assert (await invoker.invoke(catalog, good, {}, HandlerContext())).content == "tool 47"
