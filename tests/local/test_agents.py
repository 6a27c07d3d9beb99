"""Folders of sub-agents as tools: what is found, what is refused, what an edit changes."""

from pathlib import Path

import pytest

from session_runtime.config.agents import AgentSettings
from session_runtime.config.handlers import HandlersSettings
from session_runtime.local.scan import Scan, scan
from tests.support import ECHO, scan_of, write_agent, write_handler


def names(found: Scan) -> list[str]:
    return [tool.spec.name for tool in found.tools]


def reasons(found: Scan) -> dict[str, str]:
    return {bad.name: bad.reason for bad in found.quarantined}


@pytest.mark.requirement("ASK-11")
def test_an_agent_is_a_tool_without_prefix_and_its_own_tools_belong_to_it(tmp_path: Path) -> None:
    write_handler(tmp_path, "shared")
    write_agent(
        tmp_path,
        "writer",
        prompt="Write well.",
        settings='model = "m"\ntools = ["shared"]\ntimeout_s = 7.0\n',
        tools={"draft": ECHO},
    )
    found = scan_of(tmp_path)
    assert names(found) == ["agents.writer.draft", "shared", "writer"]
    own, _, agent = found.tools
    assert (agent.spec.origin, agent.spec.owner, agent.spec.timeout_s) == ("agent", "", 7.0)
    assert (own.spec.origin, own.spec.owner) == ("handler", "writer")
    assert agent.form is not None
    assert agent.form.prompt == "Write well."
    assert agent.form.settings == AgentSettings(model="m", tools=("shared",), timeout_s=7.0)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("agent.toml", "tols = []", "agent.toml: tols: unknown key; did you mean tools?"),
        ("agent.toml", "max_steps = 0", "agent.toml: max_steps"),
        ("agent.toml", "tools = ", "agent.toml is no TOML"),
        ("agent.toml", "when = 2026-01-01", "agent.toml: when: unknown key"),
        ("prompt.md", " \n", "prompt.md is blank"),
        ("config.json", "{}", "config.json: "),
    ],
)
def test_a_fault_in_a_file_costs_the_agent_alone_and_is_named(
    tmp_path: Path, file: str, content: str, reason: str
) -> None:
    write_handler(tmp_path, "shared")
    (write_agent(tmp_path, "writer") / file).write_text(content)
    found = scan_of(tmp_path)
    assert names(found) == ["shared"]
    assert reasons(found)["writer"].startswith(reason)


@pytest.mark.parametrize("file", ["prompt.md", "config.json"])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    write_handler(tmp_path, "shared")
    (write_agent(tmp_path, "writer") / file).unlink()
    assert reasons(scan_of(tmp_path)) == {"writer": f"{file} is missing"}


def test_a_prompt_behind_a_link_that_leads_out_is_not_read(tmp_path: Path) -> None:
    root, secret = tmp_path / "tools", tmp_path / "secret.md"
    secret.write_text("secret")
    write_handler(root, "shared")
    prompt = write_agent(root, "writer") / "prompt.md"
    prompt.unlink()
    prompt.symlink_to(secret)
    assert "leads out of" in reasons(scan_of(root))["writer"]


@pytest.mark.parametrize("lists", [{"disabled": ("writer",)}, {"enabled": ("shared",)}])
def test_an_agent_that_is_left_out_takes_its_tools_along(
    tmp_path: Path, lists: dict[str, tuple[str, ...]]
) -> None:
    write_handler(tmp_path, "shared")
    write_agent(tmp_path, "writer", tools={"draft": ECHO})
    assert names(scan_of(tmp_path, **lists)) == ["shared"]


def test_a_single_own_tool_can_be_left_out(tmp_path: Path) -> None:
    write_agent(tmp_path, "writer", tools={"draft": ECHO, "print": ECHO})
    found = scan_of(tmp_path, disabled=("agents.writer.print",))
    assert names(found) == ["agents.writer.draft", "writer"]


def test_an_operators_agent_replaces_the_bundled_one_with_all_its_tools(tmp_path: Path) -> None:
    bundled, own = tmp_path / "bundled", tmp_path / "own"
    write_agent(bundled, "writer", tools={"draft": ECHO})
    place = write_agent(own, "writer", tools={"print": ECHO})
    found = scan_of(own, bundled=bundled)
    assert names(found) == ["agents.writer.print", "writer"]
    assert found.warnings == (f"tool 'writer' in {place} replaces the bundled one",)


@pytest.mark.requirement("REL-7")
def test_an_edit_of_the_prompt_makes_another_agent_and_a_broken_one_keeps_the_last(
    tmp_path: Path,
) -> None:
    folder = write_agent(tmp_path, "writer", settings='tools = ["a"]\n')
    handlers = HandlersSettings(paths=(tmp_path,))
    first = scan(handlers, None)
    same = scan(handlers, None, before=first)
    assert same.tools[0].spec is first.tools[0].spec
    (folder / "prompt.md").write_text("Do it better.")
    second = scan(handlers, None, before=first, touched=[str(folder / "prompt.md")])
    assert second.digest != first.digest
    (folder / "agent.toml").write_text("tools = 5")
    third = scan(handlers, None, before=second)
    assert third.tools[0].spec is second.tools[0].spec
    assert [bad.stale for bad in third.quarantined] == [True]
