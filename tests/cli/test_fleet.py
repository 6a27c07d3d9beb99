"""``status --fleet``: whom it asks, with what, and what it ends with (NET-6, NET-7)."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.cli import fleet as fleet_command
from session_runtime.wire.presence import Presence, unknown
from tests.cli.conftest import Done, Run

GONE = "http://127.0.0.1:1"
MQTT = "[mqtt]\nenabled = true\nurl = 'mqtt://127.0.0.1:1'\n"


def replica(name: str, **other: object) -> Presence:
    told: dict[str, object] = {"state": "ready", "since": 1.0, "age_s": 2.0, "version": "1.0"}
    return Presence(name, "http://a", **(told | other))  # type: ignore[arg-type]


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> list[Presence]:
    """The replicas that answer."""
    there: list[Presence] = []

    async def presences(urls: tuple[str, ...], key: str | None) -> tuple[Presence, ...]:
        return (*there, *(unknown(key, url, "asked with this") for url in urls if key))

    monkeypatch.setattr(fleet_command.fleet_http, "presences", presences)
    return there


@pytest.mark.requirement("NET-7c")
def test_replicas_are_shown_side_by_side_and_warned_of(run: Run, fleet: list[Presence]) -> None:
    fleet += [replica("r2", version="1.1", asks=3, most_asks=9), replica("r1")]
    done = run("status", "--fleet", "--url", GONE)
    first, second, warning = done.out.splitlines()
    assert first.startswith("r1: ready for ")
    assert re.fullmatch(
        r"r2: ready for \d+ s; version 1\.1; generation \?; configuration \?; tools \?;"
        r" 3 of 9 asks run, \? wait; last edit \?; heard 2 s ago \(http://a\)",
        second,
    )
    assert warning == "warning: versions differ: 1.0: r1; 1.1: r2"
    assert (done.code, done.err) == (exits.OK, "")
    assert run("status", "--fleet", "--url", GONE, "--check") == Done(exits.FAILED, done.out, "")


def test_for_programs_there_is_one_object(run: Run, fleet: list[Presence]) -> None:
    fleet += [replica("r1"), replica("r2", state="offline")]
    page = json.loads(run("status", "--fleet", "--url", GONE, "--json").out)
    assert page["good"] is False
    assert [each["replica"] for each in page["replicas"]] == ["r1", "r2"]
    assert page["warnings"] == [
        {"kind": "offline", "text": "r2 is offline: it was stopped", "replicas": ["r2"]}
    ]
    fine = run("status", "--fleet", "--url", GONE, "--json", "--check", "--stopped-ok")
    assert (fine.code, json.loads(fine.out)["good"]) == (exits.OK, True)


@pytest.mark.requirement("SEC-4")
def test_what_a_replica_says_cannot_take_over_the_terminal(run: Run, fleet: list[Presence]) -> None:
    fleet.append(replica("r1\x1b[2J\nr9: ready", version="1\u202e0"))
    out = run("status", "--fleet", "--url", GONE).out
    assert out.startswith("r1\\x1b[2J\\nr9: ready: ready for ")
    assert "version 1\\u202e0;" in out


def test_the_key_is_found_where_the_configuration_says(
    run: Run, fleet: list[Presence], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[fleet]\nurls = ["http://a.test"]\nadmin_from = "env:FLEET_API_KEY"\n'
    (tmp_path / "config.toml").write_text(text, "utf-8")
    monkeypatch.setenv("FLEET_API_KEY", "the key")
    assert "asked with this" in run("status", "--fleet").out
    assert "the key: unknown; asked with this (http://a.test)" in run("status", "--fleet").out


@pytest.mark.requirement("NET-7c")
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("env:FLEET_API_KEY", "the variable FLEET_API_KEY is not set"),
        ("env:PATH", "env:PATH is not allowed by runtime.secret_sources"),
    ],
)
def test_without_the_key_replicas_are_asked_all_the_same_and_it_is_told(
    run: Run, fleet: list[Presence], tmp_path: Path, place: str, why: str
) -> None:
    fleet.append(replica("r1"))
    text = f'[fleet]\nurls = ["http://a.test"]\nadmin_from = "{place}"\n'
    (tmp_path / "config.toml").write_text(text, "utf-8")
    done = run("status", "--fleet", "--json")
    assert (done.code, json.loads(done.out)["replicas"][0]["replica"]) == (exits.OK, "r1")
    assert done.err.startswith(f"warning: fleet.admin_from: {why}")
    assert done.err.endswith("; asked without a key\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('urls = ["ftp://a"]', "fleet.urls: item 1 must be an address that begins with http"),
        ('urls = ["http://u:sr_secret@a"]', "must hold no user or password"),
        ('urls = ["http://a/?key=sr_secret"]', "must not have a query"),
        ('admin_from = "sr_secret"', 'fleet.admin_from: must be "env:NAME" or "file:/path"'),
    ],
)
def test_what_is_no_address_and_no_reference_is_refused(
    run: Run, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "config.toml").write_text(f"[fleet]\n{text}\n", "utf-8")
    done = run("config", "check")
    assert done.code == exits.CONFIG
    assert words in done.err
    assert "sr_secret" not in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--fleet", "--url", "http://u:p@a.test"), "--url must hold no user or password"),
        (("--fleet", "--url", "a.test:80"), "--url must be an address that begins with http"),
        (("--check",), "--url, --check and --stopped-ok are for --fleet"),
        (("--fleet",), "no replica can be asked: configure [mqtt]"),
    ],
)
def test_a_wrong_command_is_told_how_to_be_right(
    run: Run, arguments: tuple[str, ...], words: str
) -> None:
    done = run("status", *arguments)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert words in done.err


def test_a_broker_that_is_not_there_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(MQTT, "utf-8")
    done = run("status", "--fleet")
    assert (done.code, done.out) == (exits.UNAVAILABLE, "")
    assert done.err.startswith("error: the MQTT broker cannot be read (")


@pytest.mark.requirement("NET-7c")
@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("", r"the MQTT broker cannot be read \(.*"),
        (
            'username = "u"\npassword = "env:BROKER_PASSWORD"\n',
            r"mqtt\.password: .* cannot be reached.*",
        ),
    ],
)
def test_a_broker_that_cannot_be_read_hides_no_replica_that_answers(
    run: Run, fleet: list[Presence], tmp_path: Path, more: str, fault: str
) -> None:
    (tmp_path / "config.toml").write_text(f"{MQTT}{more}")
    fleet.append(replica("r1"))
    done = run("status", "--fleet", "--url", GONE, "--config", str(tmp_path / "config.toml"))
    shown, warning = done.out.splitlines()
    assert (done.code, shown.split(":")[0]) == (exits.OK, "r1")
    told = f"warning: only those asked by their address are shown: {fault}"
    assert re.fullmatch(told, warning), warning


def test_a_password_that_only_the_daemon_can_reach_is_sent_to_nobody(
    run: Run, tmp_path: Path
) -> None:
    text = f'{MQTT}username = "r"\npassword = "env:BROKER_PASSWORD"\n'
    (tmp_path / "config.toml").write_text(text, "utf-8")
    done = run("status", "--fleet")
    assert done.code == exits.CONFIG
    assert "mqtt.password: env:BROKER_PASSWORD cannot be reached from here" in done.err


def test_without_the_extra_the_way_to_get_it_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text(MQTT, "utf-8")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = run("status", "--fleet")
    assert done.code == exits.CONFIG
    assert "pip install '.[mqtt]' in the source tree" in done.err
