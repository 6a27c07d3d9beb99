"""``status``, and what ``config`` tells of a running daemon."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from session_runtime import __version__
from session_runtime.cli import exits
from session_runtime.cli.status import callback_lines, mqtt_line, state_of
from session_runtime.transports.mqtt.state import MqttState
from tests.cli.conftest import Done, Run
from tests.control_daemon import Daemon, control_daemon
from tests.support import tool_folder, write_handler

UNWATCHED = '[runtime]\nwatch = "off"\n'
TRACE_OFF = "[trace]\nenabled = false\n"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    write_handler(tmp_path / "tools", "good")
    (write_handler(tmp_path / "tools", "bad") / "config.json").write_text("{", "utf-8")
    with control_daemon(tmp_path, UNWATCHED + tool_folder(tmp_path)) as running:
        yield running


def edit(folder: Path, text: str) -> None:
    config = UNWATCHED + tool_folder(folder) + TRACE_OFF + text
    (folder / "config.toml").write_text(config, "utf-8")


@pytest.mark.requirement("INT-4")
def test_the_status_tells_what_is_in_force_and_what_to_know(
    run: Run, daemon: Daemon, tmp_path: Path
) -> None:
    run("revoke", "goo*", "--reason", "a leak")
    edit(tmp_path, '[http]\nhost = "::1"\n')
    daemon.do(daemon.runtime.live.reload("watch"))
    told = run("status").out
    digest = daemon.runtime.generation.digest
    for line in (
        rf"session-runtime {__version__}: ready, 0 asks run",
        rf"generation 1: in force, 0 asks, \d+ s old, digest {digest}",
        "configuration: what its sources say is in force",
        r"last attempt: \S+  watch   applied-restart-needed",
        '  waits for a restart: http.host: "127.0.0.1" -> "::1"',
        "waits for a restart: http.host",
        "edits are noticed by: off",
        r"revoked: goo\* \(a leak\)",
        r"tool bad is left out: .*config\.json.*",
    ):
        assert re.search(f"^{line}$", told, re.MULTILINE), (line, told)


def test_the_mqtt_door_is_told_of_if_there_is_one() -> None:
    state = MqttState()
    assert list(mqtt_line(state.status())) == []
    state.serves_as("r1")
    state.disconnected("refused")
    [without] = mqtt_line(state.status())
    state.connected()
    state.count("answered")
    [connected] = mqtt_line(state.status())
    assert without == "mqtt: not connected (refused) as r1, 0 in hand, 0 answered"
    assert re.fullmatch(r"mqtt: connected for \d+ s as r1, 0 in hand, 1 answered", connected)
    state.disconnected("broken", disputed=True)
    state.connected()
    _, warning = mqtt_line(state.status())
    assert warning.endswith(
        "does another daemon have the name r1? Give each its own (mqtt.client_id)"
    )


def test_without_a_first_connection_to_the_broker_the_daemon_is_not_ready() -> None:
    mqtt = MqttState()
    mqtt.serves_as("r1")
    mqtt.disconnected("refused")
    waiting = state_of({"state": "ready", "mqtt": mqtt.status()})
    draining = state_of({"state": "draining", "mqtt": mqtt.status()})
    mqtt.connected()
    mqtt.disconnected("gone")
    once = state_of({"state": "ready", "mqtt": mqtt.status()})
    assert waiting == "not ready: there was no connection to the MQTT broker yet"
    assert (draining, once, state_of({"state": "ready", "mqtt": None})) == (
        *("draining", "ready", "ready"),
    )


@pytest.mark.requirement("INT-4")
def test_what_cannot_be_used_is_told_for_as_long_as_it_lasts(
    run: Run, daemon: Daemon, tmp_path: Path
) -> None:
    edit(tmp_path, "[ask]\nmax_steps = 0\n")
    daemon.do(daemon.runtime.live.reload("watch"))
    told = run("status").out
    assert re.search(
        r"its sources have been unusable for \d+ s; in force is the one before\n", told
    )
    assert re.search(r"^  error: config\.toml:\d+: ask\.max_steps: must be", told, re.MULTILINE)
    edit(tmp_path, "[ask]\nmax_steps = 4\n")
    daemon.do(daemon.runtime.live.reload("watch"))
    assert "what its sources say is in force" in run("status").out


async def page(daemon: Daemon) -> dict[str, Any]:
    return daemon.runtime.status()


@pytest.mark.requirement("NET-7b")
def test_for_programs_the_status_is_the_page(run: Run, daemon: Daemon) -> None:
    status = json.loads(run("status", "--json").out)
    real = daemon.do(page(daemon))
    assert status.keys() == real.keys()
    assert status["config"] == json.loads(json.dumps(real["config"]))


@pytest.mark.requirement("REL-3")
def test_a_reload_is_told_with_what_changed(run: Run, daemon: Daemon, tmp_path: Path) -> None:
    edit(tmp_path, '[ask]\nmax_steps = 4\nsystem_prompt = "你好"\n')
    (tmp_path / "tools" / "bad" / "config.json").unlink()
    write_handler(tmp_path / "tools", "new")
    done = run("config", "reload")
    lines = ["ask.max_steps: 32 -> 4 (acts: next ask)"]
    lines += ['ask.system_prompt: "" -> "你好" (acts: next ask)', "tools added: new"]
    assert (done.code, done.err) == (exits.OK, "")
    assert done.out.splitlines()[0] == "applied: generation 2 is in force"
    assert set(lines) <= set(done.out.splitlines())
    assert run("config", "reload") == Done(0, "unchanged: generation 2 is in force\n", "")


@pytest.mark.requirement("REL-3")
def test_a_rejected_reload_ends_with_78_and_every_problem(
    run: Run, daemon: Daemon, tmp_path: Path
) -> None:
    edit(tmp_path, "[ask]\nmax_steps = 0\nmax_step = 1\n")
    done = run("config", "reload")
    assert (done.code, done.out) == (exits.CONFIG, "rejected: generation 1 is in force\n")
    assert [line.split(": ")[2] for line in done.err.splitlines()] == [
        "ask.max_steps",
        "ask.max_step",
    ]
    receipt = json.loads(run("config", "reload", "--json").out)
    assert (receipt["trigger"], receipt["verdict"]) == ("cli", "rejected")


def test_an_empty_or_absent_candidate_is_not_taken_for_the_daemons_file(
    run: Run, daemon: Daemon, tmp_path: Path
) -> None:
    state = ("--state-dir", str(tmp_path / ".session-runtime"))
    (tmp_path / "new.toml").write_text("")
    empty = run("config", "check", "--diff", "--config", "new.toml", *state)
    assert (empty.code, "is empty" in empty.err) == (exits.CONFIG, True)
    absent = run("config", "check", "--diff", "--config", "gone.toml", *state)
    assert (absent.code, absent.out) == (exits.USAGE, "")
    assert "gone.toml to compare: the daemon reads " in absent.err


@pytest.mark.requirement("REL-3")
def test_receipts_are_listed_the_newest_first(run: Run, daemon: Daemon, tmp_path: Path) -> None:
    edit(tmp_path, "[ask]\nmax_steps = 0\n")
    run("config", "reload")
    told = run("config", "receipts").out.splitlines()
    assert re.fullmatch(r"    2  \S+  cli     rejected", told[0])
    assert told[1].startswith("       error: config.toml:")
    assert re.fullmatch(r"    1  \S+  start   applied", told[2])
    newest = json.loads(run("config", "receipts", "--limit", "1", "--json").out)
    assert [each["id"] for each in newest] == [2]


def test_a_candidate_is_tried_in_the_daemon_and_changes_nothing(
    run: Run, daemon: Daemon, tmp_path: Path
) -> None:
    (tmp_path / "new.toml").write_text("[ask]\nmax_steps = 4\n", "utf-8")
    done = run("config", "check", "--diff", "--config", "new.toml")
    assert done.code == exits.OK
    assert "this is what a reload would come to" in done.out
    assert "ask.max_steps: 32 -> 4 (acts: next ask)" in done.out
    assert "tools removed: good" in done.out
    (tmp_path / "new.toml").write_bytes(b"\xff")
    state = ("--state-dir", str(tmp_path / ".session-runtime"))
    broken = run("config", "check", "--diff", "--config", "new.toml", *state)
    assert (broken.code, "is not UTF-8" in broken.err) == (exits.CONFIG, True)
    assert daemon.runtime.generation.number == 1
    assert len(daemon.runtime.live.receipts.newest()) == 1


@pytest.mark.parametrize(
    "command",
    [("status",), ("config", "reload"), ("config", "receipts"), ("config", "check", "--diff")],
)
def test_without_a_daemon_all_of_them_say_so(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command)
    assert (done.code, done.out) == (exits.UNAVAILABLE, "")
    assert done.err.startswith("error: no daemon runs with runtime.state_dir ")


@pytest.mark.requirement("SEC-3b")
def test_callbacks_that_did_not_take_a_result_are_told_of() -> None:
    nothing = {"waiting": 0, "delivered": 0, "failed": 0, "dropped": 0, "failures": []}
    assert list(callback_lines(nothing)) == []
    failure = {"callback": "bot", "ask_id": "ask_1", "at": 0.0, "attempts": 1, "reason": "no"}
    told = list(callback_lines({**nothing, "failed": 1, "failures": [failure]}))
    assert told[0] == "callbacks: 0 waiting, 0 delivered, 1 failed"
    assert re.fullmatch(
        r"warning: the callback bot did not take the result of ask_1 \d+ s ago: no", told[1]
    )
