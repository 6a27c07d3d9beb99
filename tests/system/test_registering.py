"""Folders, entries and installed packages side by side: one catalogue, and nothing imported early."""

import json
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import session_runtime
from session_runtime import Runtime
from session_runtime.errors import ConfigError
from tests.support import (
    ask,
    calls,
    importable,
    install,
    manifest,
    opened,
    says,
    scripted,
    write_handler,
)

CODE = "def execute(args, context):\n    return '{word}'\n"
WAYS = """
[handlers]
paths = ["tools"]
plugins = ["acme-shop"]
[handlers.entries."by.entry"]
import = "acme_lone:execute"
description = "Does it by an entry."
"""
WATCH = """
import asyncio, json, sys
from session_runtime import AskRequest, Runtime

def imported():
    return sorted(name for name in sys.modules if name.startswith("acme"))

async def main():
    async with Runtime.open("config.toml") as runtime:
        listed = [tool["name"] for tool in runtime.tools() if tool["name"].startswith("by.")]
        before = imported()
        result = await runtime.ask(AskRequest("go"))
        print(json.dumps([listed, before, result.text, imported()]))

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one tool of each kind, and a script that calls them."""
    write_handler(tmp_path / "tools", "by.folder", code=CODE.format(word="folder"))
    site = tmp_path / "site"
    files = {
        "acme_shop/__init__.py": "",
        "acme_shop/by/__init__.py": "",
        "acme_shop/by/handler.py": CODE.format(word="plugin"),
        "acme_shop/by/config.json": manifest("by.plugin"),
        "acme_lone.py": CODE.format(word="entry"),
    }
    install(site, "acme-shop", "1.2", {"by.plugin": "acme_shop.by.handler:execute"}, files)
    return tmp_path


@pytest.mark.requirement("REG-6")
def test_a_start_imports_nothing_and_an_ask_what_it_calls(folder: Path) -> None:
    profile = scripted(folder, calls(("by.plugin", {}), ("by.entry", {})), says("done"))
    (folder / "config.toml").write_text(f"{profile}{WAYS}[trace]\nenabled = false\n")
    sources = Path(session_runtime.__file__).parents[1]
    env = os.environ | {"PYTHONPATH": f"{sources}{os.pathsep}{folder / 'site'}"}
    done = subprocess.run(
        [sys.executable, "-c", WATCH], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        ["by.entry", "by.folder", "by.plugin"],
        [],
        "done",
        ["acme_lone", "acme_shop", "acme_shop.by", "acme_shop.by.handler"],
    ]


@pytest.mark.requirement("REG-6")
async def test_all_ways_are_one_catalogue(folder: Path) -> None:
    names = ("by.entry", "by.folder", "by.plugin")
    profile = scripted(folder, calls(*((name, {}) for name in names)), says("done"))
    async with AsyncExitStack() as stack:
        stack.enter_context(importable(folder / "site"))
        runtime = await stack.enter_async_context(opened(folder, f"{profile}{WAYS}"))
        places = {tool["name"]: (tool["origin"], tool["place"]) for tool in runtime.tools()}
        asked = await ask(runtime, "go")
    assert {name: places[name] for name in names} == {
        "by.entry": ("handler", 'handlers.entries."by.entry" (acme_lone:execute)'),
        "by.folder": ("handler", str(folder / "tools" / "by" / "folder")),
        "by.plugin": ("handler", "acme-shop 1.2 (by.plugin = acme_shop.by.handler:execute)"),
    }
    results = [message.content for message in asked.result.new_messages if message.role == "tool"]
    assert results == ["entry", "folder", "plugin"]


@pytest.mark.requirement("REG-6")
@pytest.mark.requirement("CFG-1")
async def test_what_is_named_and_not_there_is_told_all_at_once_with_file_and_line(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[handlers]\npaths = ["gone"]\nplugins = ["acme-nowhere"]\n'
        '[handlers.entries."a b"]\nimport = "a:b"\ndescription = "D."\n'
        '[handlers.entries.c]\nimport = "a:b"\nschema = "c.json"\n'
    )
    with pytest.raises(ConfigError) as caught:
        async with Runtime.open(config, env={}):
            pass
    gone = f"{tmp_path / 'gone'} cannot be read as a folder of tools: No such file or directory"
    assert str(caught.value).splitlines() == [
        f"config.toml:2: handlers.paths: {gone}",
        "config.toml:3: handlers.plugins: no package 'acme-nowhere' is installed;"
        " install it where the daemon runs",
        "config.toml:4: handlers.entries.\"a b\": cannot be a name: write 'a_b'",
        f"config.toml:9: handlers.entries.c.schema: there is no file {tmp_path / 'c.json'}",
    ]


@pytest.mark.requirement("REG-6")
async def test_a_module_that_is_not_there_is_told_at_the_first_call(tmp_path: Path) -> None:
    entry = '[handlers.entries.lost]\nimport = "acme_nowhere.x:f"\ndescription = "Is lost."\n'
    profile = scripted(tmp_path, calls(("lost", {})), says("done"))
    async with opened(tmp_path, f"{profile}{entry}") as runtime:
        asked = await ask(runtime, "go")
    [result] = [message.content for message in asked.result.new_messages if message.role == "tool"]
    assert asked.result.outcome == "answered"
    assert "its code in acme_nowhere.x:f cannot be imported: ModuleNotFoundError" in result
