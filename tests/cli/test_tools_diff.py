"""A pipeline keeps a snapshot of the tools, and learns from the exit code what became of them."""

import json
from pathlib import Path

import pytest

from session_runtime.cli import exits, tools_diff
from tests.cli.conftest import Run
from tests.support import write_handler
from tests.system.server_config import table

CONFIG = '[handlers]\npaths = ["tools"]\nbundled = false\n'
TEXT = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(CONFIG)
    write_handler(tmp_path / "tools", "t", parameters=TEXT)
    return tmp_path / "tools"


def kept(run: Run, folder: Path, *options: str) -> str:
    done = run("tools", "snapshot", *options)
    assert (done.code, done.err) == (exits.OK, "")
    path = folder / "old.json"
    path.write_text(done.out)
    return str(path)


def edited(tools: Path, **function: object) -> None:
    path = tools / "t" / "config.json"
    data = json.loads(path.read_text())
    data["function"] |= function
    path.write_text(json.dumps(data))


@pytest.mark.requirement("RTE-12")
def test_nothing_changed(run: Run, tools: Path, tmp_path: Path) -> None:
    for options in ((), ("--json",)):
        done = run("tools", "diff", kept(run, tmp_path, *options))
        assert (done.code, done.out) == (tools_diff.SAME, "")


@pytest.mark.requirement("RTE-12")
def test_what_breaks_nobody_has_its_own_exit_code(run: Run, tools: Path, tmp_path: Path) -> None:
    old = kept(run, tmp_path)
    edited(tools, description="Does more.")
    write_handler(tools, "u")
    done = run("tools", "diff", old)
    assert (done.code, done.out) == (
        tools_diff.COMPATIBLE,
        "compatible  t has another description\ncompatible  u is new\n",
    )


@pytest.mark.requirement("RTE-12")
def test_what_breaks_callers_has_its_own_exit_code(run: Run, tools: Path, tmp_path: Path) -> None:
    old = kept(run, tmp_path)
    edited(tools, parameters={**TEXT, "required": ["a"]})
    done = run("tools", "diff", old, "--json")
    assert done.code == tools_diff.BREAKING
    assert json.loads(done.out) == {
        "verdict": "breaking",
        "changes": [
            {"tool": "t", "weight": "breaking", "what": "parameter 'a' is required now"},
        ],
    }


def test_two_files_are_compared_without_a_configuration(
    run: Run, tools: Path, tmp_path: Path
) -> None:
    old = kept(run, tmp_path)
    (tmp_path / "new.json").write_text('{"version":1,"tools":[]}')
    (tmp_path / "config.toml").write_text("no configuration")
    done = run("tools", "diff", old, str(tmp_path / "new.json"))
    assert (done.code, done.out) == (tools_diff.BREAKING, "breaking    t is gone\n")


@pytest.mark.requirement("RTE-12")
def test_a_name_in_a_snapshot_cannot_pass_for_another_line(
    run: Run, tools: Path, tmp_path: Path
) -> None:
    snapshot = json.loads(Path(kept(run, tmp_path)).read_text())
    [tool] = snapshot["tools"]
    tool["name"] = "a is new\ncompatible\tb\u2028\x1b"
    (tmp_path / "new.json").write_text('{"version":1,"tools":[]}')
    (tmp_path / "old.json").write_text(json.dumps(snapshot))
    done = run("tools", "diff", str(tmp_path / "old.json"), str(tmp_path / "new.json"))
    assert done.out == "breaking    a is new\\ncompatible\\tb\\u2028\\x1b is gone\n"


@pytest.mark.requirement("RTE-12")
@pytest.mark.parametrize("command", [("snapshot",), ("diff", "old.json")])
def test_tools_of_a_server_that_is_not_there_are_no_change(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "old.json").write_text('{"version":1,"tools":[]}')
    (tmp_path / "config.toml").write_text(
        "[handlers]\nbundled = false\n" + table("gone", command="/no/such/program")
    )
    done = run("tools", *command)
    assert (done.code, done.out) == (exits.UNAVAILABLE, "")
    assert "the tools of gone are not known" in done.err


@pytest.mark.parametrize("content", [None, "{}", "no json", '{"version":2}'])
def test_a_file_that_is_no_snapshot_is_not_taken_for_a_change(
    run: Run, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "old.json"
    if content is not None:
        path.write_text(content)
    done = run("tools", "diff", str(path), str(path))
    assert (done.code, done.out) == (exits.USAGE, "")
    assert str(path) in done.err
