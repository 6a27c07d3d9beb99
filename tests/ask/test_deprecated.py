"""A deprecated tool is used on, and the model is told what to use instead, once in an ask (RTE-12)."""

from pathlib import Path

import pytest

from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler

OLD = {"deprecated": {"reason": "slow", "replacement": "new"}}
NOTE = "Note: old is deprecated (slow): use new instead."


@pytest.mark.requirement("RTE-12")
async def test_its_first_result_of_an_ask_says_what_to_use_instead(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "old", runtime=OLD)
    write_handler(tmp_path / "tools", "new")
    turns = (calls(("old", {"n": 1})), calls(("old", {"n": 2})), calls(("new", {})), says("done"))
    config = scripted(tmp_path, *turns) + tool_folder(tmp_path)
    async with opened(tmp_path, config) as runtime:
        for _ in range(2):
            asked = await ask(runtime, "go")
            results = [m.content for m in asked.result.new_messages if m.role == "tool"]
            assert results == [
                f'{{"got":{{"n":1}}}}\n{NOTE}',
                '{"got":{"n":2}}',
                '{"got":{}}',
            ]


@pytest.mark.requirement("RTE-12")
async def test_a_replacement_that_the_caller_may_not_use_is_not_named(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "old", runtime=OLD)
    write_handler(tmp_path / "tools", "new", runtime={"requires": ["staff"]})
    config = scripted(tmp_path, calls(("old", {})), says("done")) + tool_folder(tmp_path)
    async with opened(tmp_path, config) as runtime:
        asked = await ask(runtime, "go")
        [result] = [m.content for m in asked.result.new_messages if m.role == "tool"]
        assert result == '{"got":{}}\nNote: old is deprecated (slow).'
        told = {tool["name"]: tool for tool in runtime.tools()}["old"]
        assert told["deprecation"] == {"reason": "slow", "replacement": "new"}


@pytest.mark.requirement("RTE-12")
async def test_a_replacement_that_does_not_exist_is_a_warning(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "old", runtime=OLD)
    async with opened(tmp_path, tool_folder(tmp_path)) as runtime:
        assert "tool 'old' is deprecated, and its replacement 'new' is no tool" in [
            str(warning).partition(";")[0] for warning in runtime.status()["warnings"]
        ]
