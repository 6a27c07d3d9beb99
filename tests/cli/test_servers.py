"""Servers of tools on the command line: ``status``, ``tools logs``, ``tools refresh``, ``tools list``."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.testing.mcp_servers.script import Script
from tests.cli.conftest import Run
from tests.control_daemon import Daemon, control_daemon
from tests.system.server_config import server, table

ALONE = """[handlers]
bundled = false
[skills]
prefetch_tools = []
[runtime]
watch = "off"
[mcp]
wait_s = 5.0
"""
WORDS = "loading the index\nready to serve\n"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    script = Script(tools=("echo", "null_schema"), stderr=WORDS)
    text = server("notes", script, naming="bare") + table("gone", command="/no/such/program")
    with control_daemon(tmp_path, f"{ALONE}{text}") as running:
        yield running


@pytest.mark.requirement("INT-4")
def test_the_status_tells_how_each_server_is(run: Run, daemon: Daemon) -> None:
    told = run("status").out
    assert re.search(r"^server notes: ready for \d+ s, 1 tools, 1 refused$", told, re.MULTILINE)
    assert re.search(r"^server gone: \w+ for \d+ s, 0 tools.*/no/such/program", told, re.MULTILINE)
    assert re.search(
        r"^tool notes\.null_schema is left out: mcp\.servers\.notes: ", told, re.MULTILINE
    )


@pytest.mark.requirement("RTE-6")
def test_the_log_of_a_server_is_what_it_wrote_to_its_standard_error(
    run: Run, daemon: Daemon
) -> None:
    daemon.do(daemon.runtime.servers.restart("notes"))
    lines = run("tools", "logs", "notes").out.splitlines()
    assert [line.partition(" ")[2] for line in lines[:2]] == WORDS.splitlines()
    assert len(run("tools", "logs", "notes", "--lines", "1").out.splitlines()) == 1
    assert run("tools", "logs", "gone").err == "it wrote nothing\n"


@pytest.mark.requirement("RTE-4")
def test_a_server_is_listed_again_or_restarted_on_demand(run: Run, daemon: Daemon) -> None:
    assert "server notes: ready" in run("tools", "refresh", "notes").out
    told = json.loads(run("tools", "refresh", "notes", "--restart", "--json").out)
    assert [each["restarts"] for each in told["servers"]] == [1]
    assert (told["receipt"]["trigger"], told["receipt"]["verdict"]) == ("servers", "unchanged")


@pytest.mark.requirement("RTE-4")
def test_a_script_learns_that_a_refreshed_server_is_not_there(run: Run, daemon: Daemon) -> None:
    for options in ((), ("--restart", "--json")):
        done = run("tools", "refresh", "gone", *options)
        assert (done.code, "/no/such/program" in done.out) == (exits.UNAVAILABLE, True)


def test_a_server_behind_an_address_has_no_log(run: Run, tmp_path: Path) -> None:
    text = ALONE + table("far", url="http://127.0.0.1:9/mcp")
    with control_daemon(tmp_path, text):
        done = run("tools", "logs", "far")
        assert (done.code, done.out) == (exits.USAGE, "")
        assert "far has a url: what it logs stays where it runs" in done.err


def test_skipped_lines_are_told_by_the_status(run: Run, tmp_path: Path) -> None:
    script = Script(tools=("echo",), chatter="a log line\n")
    with control_daemon(tmp_path, ALONE + server("loud", script)):
        assert re.search(
            r"^server loud: ready .*, \d+ lines skipped$", run("status").out, re.MULTILINE
        )


@pytest.mark.parametrize("what", ["logs", "refresh"])
def test_an_unknown_server_is_told_with_the_nearest_name(
    run: Run, daemon: Daemon, what: str
) -> None:
    done = run("tools", what, "nots")
    assert done.code == exits.USAGE
    assert done.err == "error: there is no server 'nots'; did you mean 'notes'?\n"


@pytest.mark.requirement("RTE-3")
def test_tools_of_servers_are_listed_with_their_source(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        ALONE + server("notes", Script(tools=("echo",)), naming="bare"), "utf-8"
    )
    assert run("tools", "list").out == "echo  [mcp:notes] Gives the text back.\n"
    shown = run("tools", "show", "echo").out
    assert shown.startswith("echo (mcp, mcp.servers.notes)\nGives the text back.\n")


def test_a_configuration_is_checked_without_starting_any_server(run: Run, tmp_path: Path) -> None:
    started = tmp_path / "started"
    text = "".join(table(name, command="touch", args=[str(started)]) for name in ("a", "b"))
    (tmp_path / "config.toml").write_text(ALONE + text, "utf-8")
    done = run("config", "check")
    assert done.code == exits.OK, done
    told = [line for line in done.err.splitlines() if "server" in line]
    assert told == ["note: servers are not contacted by this check: a, b"]
    assert json.loads(run("config", "check", "--json").out)["not_contacted"] == ["a", "b"]
    assert "server" not in run("config", "set", "ask.max_steps", "9").err
    assert not started.exists()
