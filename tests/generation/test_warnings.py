"""What an operator is warned about before the first ask."""

from pathlib import Path

import pytest

from session_runtime.app.reader import ConfigReader
from session_runtime.app.runtime import bundled_handlers
from session_runtime.generation import GenerationBuilder
from session_runtime.registry.registry import Registry
from tests.support import tool_folder, write_config, write_handler

TAKEN = (
    "tool {0!r} takes the name of tool_search{1}: who may use it is sent all tools at once; rename"
    " the tool"
)


async def warnings(folder: Path, text: str) -> list[str]:
    building = GenerationBuilder(Registry(), bundled_handlers())
    prepared = await building.prepare(ConfigReader(write_config(folder, text), {})())
    await prepared.abort()
    return list(prepared.generation.warnings)


@pytest.mark.requirement("TS-10")
async def test_a_tool_that_takes_the_name_of_the_loader_is_told(tmp_path: Path) -> None:
    for name in ("tool_search", "Tool.Search", "other"):
        write_handler(tmp_path / "tools", name)
    text = tool_folder(tmp_path)
    assert await warnings(tmp_path, text) == [TAKEN.format("tool_search", "")]
    flat = '[models.a]\nwire = "offline"\n[models."b c"]\nwire = "offline"\nname_separator = "_"\n'
    assert await warnings(tmp_path, text + flat) == [
        TAKEN.format("Tool.Search", " in requests of the profile 'b c'"),
        TAKEN.format("tool_search", ""),
    ]


@pytest.mark.requirement("TS-10")
async def test_a_tool_of_that_name_that_is_switched_off_is_no_matter(tmp_path: Path) -> None:
    for name in ("tool_search", "other"):
        write_handler(tmp_path / "tools", name)
    assert await warnings(tmp_path, f'{tool_folder(tmp_path)}disabled = ["tool_search"]\n') == []
