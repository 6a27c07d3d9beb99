"""Handlers are imported at their first call, from the text that the scan read, once for all callers."""

import asyncio
import gc
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from session_runtime.errors import PermanentError
from session_runtime.handler import HandlerContext
from session_runtime.local.loader import Handler
from tests.support import scan_of, write_handler


def handler(root: Path, code: str, **others: str) -> Handler:
    """The tool ``group.t`` with this code, and with neighbours by module name."""
    folder = write_handler(root, "group.t", code=code)
    for name, text in others.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    [tool] = scan_of(root).tools
    return Handler(tool)


async def load(given: Handler) -> Any:
    return await given.load()


async def refusal(given: Handler) -> str:
    with pytest.raises(PermanentError) as caught:
        await load(given)
    assert caught.value.code == "tool.import_failed"
    return str(caught.value)


def private_modules() -> list[str]:
    gc.collect()
    return [name for name in sys.modules if name.startswith("_handler_")]


@pytest.mark.requirement("REG-2")
async def test_what_runs_is_what_the_scan_read(tmp_path: Path) -> None:
    given = handler(tmp_path, "def execute(args, context):\n    return 'old'\n")
    (tmp_path / "group" / "t" / "handler.py").write_text("raise ValueError('new')")
    execute = await load(given)
    assert execute({}, HandlerContext()) == "old"


@pytest.mark.requirement("REG-2")
async def test_a_handler_knows_its_file_and_can_read_beside_it(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "def execute(args, context):\n"
        "    return Path(__file__).with_name('data.txt').read_text()\n"
    )
    given = handler(tmp_path, code)
    (tmp_path / "group" / "t" / "data.txt").write_text("数据", encoding="utf-8")
    assert (await load(given))({}, HandlerContext()) == "数据"


@pytest.mark.requirement("REG-2")
async def test_all_who_wait_get_one_import(tmp_path: Path) -> None:
    sys.modules["count_of_imports"] = counting = type(sys)("count_of_imports")
    counting.imports = []  # type: ignore[attr-defined]
    code = "import count_of_imports\ncount_of_imports.imports.append(1)\ndef execute(a, c): ...\n"
    given = handler(tmp_path, code)
    try:
        loaded = await asyncio.gather(*(given.load() for _ in range(20)))
        assert counting.imports == [1]
        assert len(set(loaded)) == 1
    finally:
        del sys.modules["count_of_imports"]


@pytest.mark.requirement("REG-2")
async def test_an_import_goes_on_when_the_caller_who_started_it_is_cancelled(
    tmp_path: Path,
) -> None:
    given = handler(tmp_path, "def execute(args, context):\n    return 1\n")
    first = asyncio.create_task(given.load())
    await asyncio.sleep(0)
    second = asyncio.create_task(given.load())
    await asyncio.sleep(0)
    first.cancel()
    assert (await second)({}, HandlerContext()) == 1
    assert first.cancelled()


@pytest.mark.requirement("REG-2")
async def test_a_failed_import_is_tried_again_at_the_next_call(tmp_path: Path) -> None:
    switch = tmp_path / "broken"
    switch.touch()
    code = (
        f"from pathlib import Path\nif Path({str(switch)!r}).exists():\n"
        "    raise OSError('not yet')\ndef execute(args, context):\n    return 'ready'\n"
    )
    given = handler(tmp_path / "tools", code)
    assert await refusal(given) == (
        "its code in group/t cannot be imported: handler.py line 3: OSError: not yet"
    )
    switch.unlink()
    assert (await load(given))({}, HandlerContext()) == "ready"


@pytest.mark.requirement("REG-2")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("x = 1\nx.y\n", "handler.py line 2: AttributeError: 'int' object has no attribute 'y'"),
        ("def execute(:\n", "handler.py line 1: SyntaxError: invalid syntax"),
        ("import not_there\n", "handler.py line 1: ModuleNotFoundError: No module named 'not_there'"),
        ("import json\n\njson.loads('{')\n", "handler.py line 3: JSONDecodeError: Expecting"),
        ("raise SystemExit(3)\n", "handler.py line 1: SystemExit: 3"),
        ("from . import other\n", "handler.py line 1: ImportError: cannot import name 'other'"),
        ("", "handler.py has no function execute(args, context)"),
        ("execute = 3\n", "handler.py has no function execute(args, context)"),
    ],
)  # fmt: skip
async def test_the_error_of_a_failed_import_names_file_and_line(
    tmp_path: Path, code: str, why: str
) -> None:
    before = private_modules()
    told = await refusal(handler(tmp_path, code))
    assert told.startswith(f"its code in group/t cannot be imported: {why}")
    assert private_modules() == before


@pytest.mark.requirement("REG-2")
async def test_a_handler_may_use_what_needs_its_module_during_import(tmp_path: Path) -> None:
    code = (
        "from __future__ import annotations\n"
        "import pickle\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n"
        "@dataclass\nclass Point:\n    origin: ClassVar[str] = 'here'\n    x: int = 0\n"
        "def execute(args, context):\n    return pickle.loads(pickle.dumps(Point(3))).x\n"
    )
    given = handler(tmp_path, code)
    assert (await load(given))({}, HandlerContext()) == 3


@pytest.mark.requirement("REG-2")
async def test_other_files_of_the_folder_can_be_imported_relatively(tmp_path: Path) -> None:
    given = handler(
        tmp_path,
        "from . import client\nfrom .words import GREETING\n"
        "def execute(args, context):\n    return client.greet(GREETING)\n",
        client="from .words import MARK\ndef greet(text):\n    return text + MARK\n",
        words="GREETING = '你好'\nMARK = '!'\n",
    )
    for path in (tmp_path / "group" / "t").glob("*.py"):
        path.write_text("raise ValueError('new')")
    assert (await load(given))({}, HandlerContext()) == "你好!"


@pytest.mark.requirement("REG-2")
async def test_a_fault_in_another_file_is_named_there(tmp_path: Path) -> None:
    given = handler(tmp_path, "from . import client\n", client="\n\n1 / 0\n")
    assert "client.py line 3: ZeroDivisionError" in await refusal(given)


async def test_two_tools_with_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    code = "from .words import WORD\ndef execute(args, context):\n    return WORD\n"
    given = [handler(tmp_path / word, code, words=f"WORD = {word!r}") for word in ("a", "b")]
    assert [(await load(each))({}, HandlerContext()) for each in given] == ["a", "b"]


async def test_modules_go_when_nobody_holds_the_handler(tmp_path: Path) -> None:
    before = private_modules()
    given = handler(tmp_path, "from . import other\ndef execute(a, c): ...\n", other="")
    await load(given)
    assert len(private_modules()) == len(before) + 2
    del given
    assert private_modules() == before
    finders = sys.path_importer_cache.items()
    assert not [path for path, finder in finders if finder and "_handler_" in path]


async def test_a_handler_may_go_while_python_walks_its_finders(tmp_path: Path) -> None:
    given = handler(tmp_path, "def execute(a, c): ...\n")
    await load(given)
    walk = iter(sys.path_importer_cache)
    next(walk)
    del given
    assert list(walk)


@pytest.mark.requirement("REG-2")
async def test_an_import_leaves_the_list_of_finders_alone_that_other_threads_walk(
    tmp_path: Path,
) -> None:
    code = "from . import other\nimport sys\nfinders = list(sys.meta_path)\ndef execute(a, c):\n"
    before = list(sys.meta_path)
    execute = await load(handler(tmp_path, f"{code}    return finders\n", other=""))
    assert execute({}, HandlerContext()) == before == sys.meta_path


async def test_another_file_can_be_imported_when_the_tool_already_runs(tmp_path: Path) -> None:
    given = handler(
        tmp_path,
        "def execute(args, context):\n    from .words import WORD\n    return WORD\n",
        words="WORD = 'late'\n",
    )
    execute = await load(given)
    importlib.invalidate_caches()
    assert execute({}, HandlerContext()) == "late"
