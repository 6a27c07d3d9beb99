"""A runtime that is closed while its configuration is being changed."""

import asyncio
from pathlib import Path

import pytest

from tests.support import opened, tool_folder, write_handler
from tests.system.leftovers import nothing_left


@pytest.mark.requirement("REL-1b")
async def test_a_reload_that_is_cut_off_by_the_end_leaves_nothing(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "one")
    with nothing_left():
        async with opened(tmp_path, tool_folder(tmp_path), watch=False) as runtime:
            write_handler(tmp_path / "tools", "two")
            reloading = asyncio.create_task(runtime.live.reload("http"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            first = runtime.generation
        await asyncio.wait([reloading])
        assert reloading.cancelled()
    assert first.number == 1
