"""A daemon whose state folder came from its environment is found by ``--state-dir``, or told of (NET-4)."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_runtime.cli import doctor, exits
from tests.cli.conftest import Run
from tests.control_daemon import Daemon, control_daemon

pytestmark = pytest.mark.requirement("NET-4")
CONFIG = '[runtime]\nwatch = "off"\n[http]\nport = 0\n'


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    monkeypatch.setattr(doctor, "set_up_logging", lambda _: None)
    env = {"SESSION_RUNTIME__RUNTIME__STATE_DIR": str(tmp_path / "away")}
    with control_daemon(tmp_path, CONFIG, env) as running:
        yield running


FOUND = [
    ("doctor",),
    ("status",),
    ("config", "show", "--daemon"),
    ("config", "explain", "ask.max_steps", "--daemon"),
    ("config", "check", "--diff"),
    ("revoke", "--list"),
    ("asks", "list"),
]


@pytest.mark.parametrize("arguments", FOUND)
def test_the_daemon_is_found_by_its_state_folder(
    run: Run, daemon: Daemon, arguments: tuple[str, ...]
) -> None:
    done = run(*arguments, "--state-dir", "away")
    assert (done.code, "no daemon runs" in done.err, "none runs" in done.out) == (0, False, False)


def test_an_edit_is_shown_to_the_daemon_of_that_folder(run: Run, daemon: Daemon) -> None:
    done = run("config", "set", "http.port", "1", "--dry-run", "--state-dir", "away")
    assert (done.code, done.out.splitlines()[0]) == (0, "http.port: 0 -> 1  # acts: restart")


@pytest.mark.parametrize(
    "arguments",
    [
        ("config", "history"),
        ("config", "diff", "1", "2"),
        ("config", "rollback", "1"),
        ("trace", "tail"),
        ("audit", "verify"),
        ("audit", "tail"),
    ],
)
def test_where_nothing_is_found_the_folder_and_the_way_out_are_told(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "config.toml").write_text(CONFIG, "utf-8")
    done = run(*arguments)
    assert str(tmp_path / ".session-runtime") in done.err
    assert "name that by --state-dir" in done.err
    assert str(tmp_path / "away") in run(*arguments, "--state-dir", "away").err


def test_a_taken_port_may_be_the_daemons(run: Run, tmp_path: Path, daemon: Daemon) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "config.toml").write_text(f"[http]\nport = {port}\n", "utf-8")
        done = run("doctor")
    assert "-> perhaps the daemon of this file has it, with another state folder" in done.out
    assert "name that by --state-dir" in done.out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("arguments", [("status",), ("asks", "list"), ("revoke", "--list")])
def test_a_folder_of_another_user_is_told_as_such(
    run: Run, tmp_path: Path, daemon: Daemon, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "away").chmod(0o700)
    assert run(*arguments, "--state-dir", "away").code == exits.OK
    tmp_path.chmod(0o755)
    (tmp_path / "here").mkdir()
    os.chdir(tmp_path / "here")
    os.setresuid(12_345, 12_345, 0)
    try:
        done = run(*arguments, "--state-dir", "../away")
    finally:
        os.setresuid(0, 0, 0)
    assert "control.sock may not be opened by this user" in done.err
