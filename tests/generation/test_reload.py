"""Handlers that are edited: each tool by itself, each ask with the code of its generation (REL-7)."""

import asyncio
import gc
import os
import shutil
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from session_runtime.app.reader import ConfigReader
from session_runtime.app.runtime import bundled_handlers
from session_runtime.config.live import LiveConfig
from session_runtime.config.receipt import Receipt
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.handler import HandlerContext
from session_runtime.registry.registry import Registry
from tests.support import manifest, write_config, write_handler

pytestmark = pytest.mark.requirement("REL-7")


def telling(what: str) -> str:
    return f"calls = []\ndef execute(args, context):\n    calls.append(1)\n    return '{what}', len(calls)\n"


@dataclass
class Workshop:
    """Handler folders, and what is in force of them."""

    tools: Path
    builder: GenerationBuilder
    live: LiveConfig

    @property
    def generation(self) -> Generation:
        return self.builder.generations.current

    async def reload(self) -> Receipt:
        return await self.live.reload("source")


@asynccontextmanager
async def workshop(folder: Path, *names: str) -> AsyncIterator[Workshop]:
    for name in names:
        write_handler(folder / "tools", name, code=telling("first"))
    config = write_config(folder, '[handlers]\npaths = ["tools"]\nbundled = false\n')
    read = ConfigReader(config, {})
    builder = GenerationBuilder(Registry(), bundled_handlers())
    live = LiveConfig(read, builder)
    await live.start(read())
    yield Workshop(folder / "tools", builder, live)
    await builder.generations.aclose()


async def call(generation: Generation, name: str) -> object:
    spec = generation.catalog.lookup(name)
    return await generation.handlers.call(spec, {}, HandlerContext())


async def test_adding_changing_and_removing_a_folder_publishes_a_new_catalogue(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path, "a", "b", "group.c") as shop:
        write_handler(shop.tools, "group.d")
        (shop.tools / "a" / "handler.py").write_text(telling("second"))
        shutil.rmtree(shop.tools / "b")
        receipt = await shop.reload()
        names = [spec.name for spec in shop.generation.catalog.specs]
    assert receipt.verdict == "applied"
    assert receipt.tools == {"added": ("group.d",), "changed": ("a",), "removed": ("b",)}
    assert names == ["a", "group.c", "group.d"]


async def test_an_ask_runs_the_code_of_its_generation_even_if_it_was_never_imported_before(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path, "a") as shop:
        with shop.builder.generations.pin() as old:
            (shop.tools / "a" / "handler.py").write_text(telling("second"))
            await shop.reload()
            assert await call(shop.generation, "a") == ("second", 1)
            assert await call(old, "a") == ("first", 1)


async def test_an_ask_runs_a_tool_that_was_deleted_meanwhile(tmp_path: Path) -> None:
    async with workshop(tmp_path, "a", "b") as shop:
        with shop.builder.generations.pin() as old:
            shutil.rmtree(shop.tools / "a")
            assert (await shop.reload()).tools == {"removed": ("a",)}
            assert await call(old, "a") == ("first", 1)


async def test_a_handler_that_nobody_touched_keeps_its_module_and_its_state(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path, "a", "b") as shop:
        assert await call(shop.generation, "a") == ("first", 1)
        (shop.tools / "b" / "handler.py").write_text(telling("second"))
        await shop.reload()
        assert await call(shop.generation, "a") == ("first", 2)


async def test_a_file_that_is_saved_without_a_change_is_no_new_tool(tmp_path: Path) -> None:
    async with workshop(tmp_path, "a") as shop:
        os.utime(shop.tools / "a" / "handler.py", (1, 1))
        assert (await shop.reload()).verdict == "unchanged"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"\xff"),
        ("config.json", b"{}"),
        ("config.json", None),
        ("handler.py", None),
        ("handler.py", b"def execute(:"),
    ],
)
async def test_a_tool_that_breaks_keeps_its_last_good_form_and_is_marked_stale(
    file: str, content: bytes | None, tmp_path: Path
) -> None:
    async with workshop(tmp_path, "a", "b") as shop:
        if content is None:
            (shop.tools / "a" / file).unlink()
        else:
            (shop.tools / "a" / file).write_bytes(content)
        receipt = await shop.reload()
        [bad] = shop.generation.catalog.quarantined
        assert (receipt.verdict, receipt.tools) == ("applied", {"broken": ("a",)})
        assert (bad.name, bad.stale) == ("a", True)
        assert await call(shop.generation, "a") == ("first", 1)
        assert (await shop.reload()).verdict == "unchanged"
        (shop.tools / "a" / "config.json").write_text(manifest("a"))
        (shop.tools / "a" / "handler.py").write_text(telling("mended"))
        assert (await shop.reload()).tools == {"changed": ("a",)}
        assert shop.generation.catalog.quarantined == ()
        assert await call(shop.generation, "a") == ("mended", 1)


async def test_a_tool_that_was_never_good_is_left_out_and_not_stale(tmp_path: Path) -> None:
    async with workshop(tmp_path, "a") as shop:
        (write_handler(shop.tools, "b") / "config.json").write_text("{")
        receipt = await shop.reload()
        [bad] = shop.generation.catalog.quarantined
    assert (receipt.tools, bad.stale) == ({"broken": ("b",)}, False)


async def test_a_folder_that_lost_all_its_tools_is_refused_and_the_old_ones_stay(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path, "a") as shop:
        shutil.rmtree(shop.tools / "a")
        receipt = await shop.reload()
        assert receipt.verdict == "rejected"
        assert "holds no tool" in str(receipt.errors[0])
        assert await call(shop.generation, "a") == ("first", 1)


async def test_a_change_of_the_same_size_and_time_is_noticed(tmp_path: Path) -> None:
    async with workshop(tmp_path, "a") as shop:
        code = shop.tools / "a" / "handler.py"
        fact = code.stat()
        code.write_text(telling("other"))
        os.utime(code, ns=(fact.st_atime_ns, fact.st_mtime_ns))
        assert code.stat().st_size == fact.st_size
        assert (await shop.reload()).tools == {"changed": ("a",)}
        assert await call(shop.generation, "a") == ("other", 1)


async def test_what_did_not_change_is_shared_with_the_generation_before(tmp_path: Path) -> None:
    async with workshop(tmp_path, "a", "b") as shop:
        before = shop.generation
        (tmp_path / "config.toml").write_text(
            '[handlers]\npaths = ["tools"]\nbundled = false\n[trace]\nenabled = false\n'
            "[skills]\ntool_search_max_results = 3\n"
        )
        assert (await shop.live.reload("watch")).verdict == "applied"
        now = shop.generation
        assert now.number == before.number + 1
        assert now.index is before.index
        assert now.handlers is before.handlers
        assert all(a is b for a, b in zip(now.catalog.specs, before.catalog.specs, strict=True))


async def test_an_index_that_nobody_uses_any_more_is_gone(tmp_path: Path) -> None:
    async with workshop(tmp_path, "a") as shop:
        shop.generation.index.rank("does a", 1)
        old = weakref.ref(shop.generation.index)
        (shop.tools / "a" / "config.json").write_text(manifest("a", search_hints=["new"]))
        await shop.reload()
        async with asyncio.timeout(20):
            while old() is not None:  # tasks and threads that end hold it a little
                await asyncio.sleep(0.001)
                gc.collect()


async def test_a_folder_that_is_replaced_by_a_link_out_of_the_root_is_no_tool_any_more(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path, "a", "b") as shop:
        await shop.reload()
        outside = tmp_path / "outside"
        (shop.tools / "a").rename(outside)
        (shop.tools / "a").symlink_to(outside)
        receipt = await shop.reload()
        [bad] = shop.generation.catalog.quarantined
    assert receipt.tools == {"broken": ("a",)}
    assert "leads out" in bad.reason
