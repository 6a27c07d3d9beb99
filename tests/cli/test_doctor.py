"""``doctor`` tells what it finds, with what to do, to people and to programs."""

import json
from pathlib import Path

import pytest

from session_runtime.cli import doctor, exits
from tests.cli.conftest import Run
from tests.control_daemon import control_daemon

pytestmark = pytest.mark.requirement("NET-7d")
BROKEN = '[http]\nport = 0\n[models.main]\nwire = "chat"\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'


@pytest.fixture(autouse=True)
def keep_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "set_up_logging", lambda _: None)


def test_what_fails_is_told_with_what_to_do_and_the_exit_code(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(BROKEN, "utf-8")
    done = run("doctor")
    assert (done.code, done.err) == (exits.FAILED, "")
    lines = done.out.splitlines()
    assert f"ok    daemon: none runs with {tmp_path}/.session-runtime" in lines
    at = next(n for n, line in enumerate(lines) if line.startswith("fail  model main: 127.0.0.1:9"))
    assert lines[at + 1].startswith("      -> start it, or mend models.main.base_url")
    assert lines[-1].endswith(" ok, 0 to look at, 1 failed")


def test_programs_get_every_check_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[http]\nport = 0\n", "utf-8")
    done = run("doctor", "--json")
    data = json.loads(done.out)
    assert (done.code, data["ok"]) == (exits.OK, True)
    assert data["checks"][1] == {
        "check": "configuration",
        "verdict": "ok",
        "found": str(tmp_path / "config.toml"),
        "do": "",
    }


@pytest.mark.requirement("SEC-4a")
def test_what_is_found_cannot_steer_a_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('["\\u001b[2J\\n"]\nx = 1\n', "utf-8")
    done = run("doctor")
    assert done.code == exits.FAILED
    assert "\x1b" not in done.out
    assert all(
        line[:4].strip() in ("ok", "warn", "fail", "") for line in done.out.splitlines()[:-1]
    )


def test_a_daemon_that_runs_is_told_with_what_it_has_in_force(run: Run, tmp_path: Path) -> None:
    config = '[runtime]\nwatch = "off"\n[http]\nport = 0\n'
    with control_daemon(tmp_path, config) as daemon:
        done = run("doctor")
        assert f"ok    daemon: one runs with {tmp_path}/.session-runtime: ready, 0 asks" in done.out
        (tmp_path / "config.toml").write_text("[ask]\nmax_steps = 0\n", "utf-8")
        daemon.do(daemon.runtime.live.reload("cli"))
        done = run("doctor")
    assert done.code == exits.FAILED
    assert "fail  daemon: it runs on an older configuration" in done.out
