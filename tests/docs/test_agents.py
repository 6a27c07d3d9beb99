"""What the page on sub-agents shows of agent.toml can be used as it stands."""

from pathlib import Path

import pytest

from session_runtime.config.agents import AgentSettings
from tests.docs.pages import ROOT, blocks
from tests.support import opened, tool_folder, write_agent


@pytest.mark.requirement("ASK-11")
async def test_the_settings_as_printed_are_the_defaults_and_cost_no_agent(tmp_path: Path) -> None:
    [shown] = [each.text for each in blocks(ROOT / "docs" / "agents.md") if each.info == "toml"]
    write_agent(tmp_path / "tools", "researcher", settings=shown)
    async with opened(tmp_path, tool_folder(tmp_path)) as runtime:
        agent = runtime.generation.agents["researcher"]
        assert (agent.settings, runtime.generation.warnings) == (AgentSettings(), ())
