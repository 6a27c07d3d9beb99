"""``revoke``: taking tools away from a running daemon on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_runtime import Identity
from session_runtime.cli import exits
from tests.cli.conftest import Done, Run
from tests.control_daemon import Daemon, control_daemon
from tests.support import tool_folder, write_handler

NO_PREFETCH = "[skills]\nprefetch_tools = []\n"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    for name in ("files.read", "files.write", "mail.send"):
        write_handler(tmp_path / "tools", name)
    config = tool_folder(tmp_path) + "bundled = false\n" + NO_PREFETCH
    with control_daemon(tmp_path, config) as running:
        yield running


def allowed(daemon: Daemon) -> list[str]:
    return [tool["name"] for tool in daemon.runtime.tools(Identity())]


@pytest.mark.requirement("REL-9")
def test_tools_are_taken_away_listed_and_given_back(run: Run, daemon: Daemon) -> None:
    done = run("revoke", "files.*", "--reason", "a leak")
    assert done == Done(0, "revoked, number 1: files.read, files.write\n", "")
    assert allowed(daemon) == ["mail.send"]
    run("revoke", "mail.send")
    listed = run("revoke", "--list").out.splitlines()
    assert [line.partition("(")[0] for line in listed] == ["   1  files.*  ", "   2  mail.send  "]
    assert listed[0].endswith("by local: a leak)")
    assert run("revoke", "--lift", "mail.send") == Done(0, "lifted, number 2: mail.send\n", "")
    assert run("revoke", "--lift", "1") == Done(0, "lifted, number 1: files.*\n", "")
    assert run("revoke", "--list") == Done(0, "", "nothing is revoked\n")
    assert len(allowed(daemon)) == 3


@pytest.mark.requirement("NET-7b")
def test_with_json_the_daemons_answers_are_printed(run: Run, daemon: Daemon) -> None:
    made = json.loads(run("revoke", "files.*", "--json").out)
    assert (made["number"], made["tools"]) == (1, ["files.read", "files.write"])
    kept = {key: made[key] for key in ("number", "pattern", "reason", "by", "time")}
    assert json.loads(run("revoke", "--list", "--json").out) == [kept]
    assert json.loads(run("revoke", "--lift", "1", "--json").out) == kept


def test_a_pattern_without_a_tool_is_revoked_with_a_warning(run: Run, daemon: Daemon) -> None:
    done = run("revoke", "file.*")
    assert (done.code, done.out) == (0, "revoked, number 1: no tool for now\n")
    assert done.err.startswith("warning: 'file.*' is no tool's name now")


def test_a_broken_configuration_is_no_hindrance(run: Run, daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[broken")
    assert run("revoke", "files.read").code == 0
    assert run("revoke", "files.write", "--config", "gone.toml").code == 0
    assert allowed(daemon) == ["mail.send"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("revoke",), "Give either PATTERN, --list or --lift."),
        (("revoke", "a", "--list"), "Give either PATTERN, --list or --lift."),
        (("revoke", "--list", "--lift", "1"), "Give either PATTERN, --list or --lift."),
        (("revoke", "--lift", "1", "--reason", "r"), "--reason belongs to PATTERN."),
    ],
)
def test_a_wrong_command_is_explained(run: Run, arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert words in done.err


@pytest.mark.parametrize("arguments", [("--lift", "7"), ("--lift", "x.*"), ("a b",)])
def test_what_the_daemon_refuses_exits_64(
    run: Run, daemon: Daemon, arguments: tuple[str, ...]
) -> None:
    assert run("revoke", *arguments).code == exits.USAGE


@pytest.mark.requirement("NET-7b")
@pytest.mark.parametrize(
    "arguments", [("revoke", "a"), ("asks", "list"), ("asks", "cancel", "--all")]
)
def test_without_a_daemon_the_exit_code_says_so(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (exits.UNAVAILABLE, "")
    state_dir = tmp_path / ".session-runtime"
    assert f"no daemon runs with runtime.state_dir {state_dir}: start it, or name its" in done.err
