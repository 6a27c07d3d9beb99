"""What a command refuses is told with what to do instead."""

import errno
from pathlib import Path

import pytest

from session_runtime.cli import exits, new_tool
from tests.cli.conftest import Run

CONFIG = "[http]\nport = 0\n"


@pytest.mark.requirement("CFG-3")
def test_keys_that_go_together_are_shown_together(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    done = run("config", "set", "models.main.base_url", "http://127.0.0.1:9/v1")
    assert done.code == exits.CONFIG
    assert done.err.splitlines()[-1] == (
        "error: give them together: session-runtime config set models.main"
        """ '{base_url = "http://127.0.0.1:9/v1", model = ...}'"""
    )
    way_out = '{base_url = "http://127.0.0.1:9/v1", model = "m"}'
    assert run("config", "set", "models.main", way_out).code == exits.OK


def test_another_fault_of_an_edit_proposes_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    done = run("config", "set", "ask.max_steps", "0")
    assert (done.code, "together" in done.err) == (exits.CONFIG, False)


def test_an_entry_is_a_number(run: Run) -> None:
    assert "'abc' is not a valid number." in run("config", "rollback", "abc").err


def test_what_belongs_to_the_fleet_says_how(run: Run) -> None:
    done = run("status", "--check")
    assert (done.code, "say status --fleet --check" in done.err) == (exits.USAGE, True)


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        (("tools", "diff"), "tools snapshot writes one that tools diff can read"),
        (("tools", "import-mcp"), "name the file of another program that has mcpServers"),
    ],
)
def test_a_file_that_is_no_json_is_told_as_such(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], way_out: str
) -> None:
    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    done = run(*arguments, "config.toml")
    assert done.code == exits.USAGE
    assert done.err.startswith("error: config.toml: it cannot be read as JSON: ")
    assert done.err.endswith(f"; {way_out}\n")


def test_where_a_tool_may_not_be_written_another_folder_is_proposed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/opt/tools")

    monkeypatch.setattr(new_tool, "write_tool", refused)
    done = run("tools", "new", "second")
    assert (done.code, done.err) == (
        exits.USAGE,
        "error: /opt/tools: Permission denied: name another folder by --dir\n",
    )
