"""A tool that is called before it is loaded: never run, and if that is wanted loaded for the next turn."""

from pathlib import Path

import pytest

from session_runtime.types import ToolFinished, ToolsLoaded, ToolStarted, TurnStarted
from tests.support import Asked, ask, calls, opened, says, scripted, tool_folder, write_handler

SETTINGS = """
[skills]
prefetch_tools = []
tool_search_enabled = true
tool_search_autoload = true
[access.rules.r]
deny = ["deep.secret"]
"""
EARLY = (
    "deep.probe was not run, because it was not loaded in this turn. It is loaded now: call "
    "deep.probe again in the next turn, with arguments that fit its parameters."
)


async def played(folder: Path, *replies: dict[str, object], profile: str = "") -> Asked:
    write_handler(folder / "tools", "deep.probe")
    write_handler(folder / "tools", "deep.secret", code="raise SystemExit('it ran')\n")
    script = scripted(folder, *replies) + profile
    async with opened(folder, tool_folder(folder) + script + SETTINGS) as runtime:
        return await ask(runtime, "go")


@pytest.mark.requirement("TS-6")
@pytest.mark.requirement("TS-12")
async def test_a_call_that_comes_too_early_is_refused_and_loads_its_tool(tmp_path: Path) -> None:
    early = calls(("deep.probe", {}), ("deep.probe", {"n": 1}))
    asked = await played(tmp_path, early, calls(("deep.probe", {})), says("Done."))
    codes = [each.error_code for each in asked.of(ToolFinished)]
    assert codes == ["tool.not_loaded", "tool.not_loaded", None]
    assert [each.names for each in asked.of(ToolsLoaded)] == [("deep.probe",)]
    exposed = ["deep.probe" in each.exposed for each in asked.of(TurnStarted)]
    assert (exposed, len(asked.of(ToolStarted))) == ([False, True, True], 1)
    told = [m.content for m in asked.result.new_messages if m.role == "tool"]
    assert (told[0], asked.result.loaded_tools) == (EARLY, ("deep.probe",))


@pytest.mark.requirement("TS-2")
@pytest.mark.parametrize("name", ["deep.secret", "deep.nothing"])
async def test_a_name_that_may_not_be_known_loads_nothing(tmp_path: Path, name: str) -> None:
    asked = await played(tmp_path, calls((name, {})), says("Done."))
    assert [each.error_code for each in asked.of(ToolFinished)] == ["tool.unknown"]
    assert (asked.of(ToolsLoaded), asked.result.loaded_tools) == ([], ())


@pytest.mark.requirement("ASK-12b")
async def test_no_tool_is_loaded_beyond_what_the_profile_takes(tmp_path: Path) -> None:
    early = calls(("deep.probe", {}))
    asked = await played(tmp_path, early, says("Done."), profile="max_tools = 3\n")
    (told,) = [str(m.content) for m in asked.result.new_messages if m.role == "tool"]
    assert told == (
        "deep.probe is not loaded and cannot be loaded any more. You can have 3 tools at most, and that many "
        "are loaded. Go on with the tools you have now, or say what you cannot do without it."
    )
    assert asked.of(ToolsLoaded) == []
