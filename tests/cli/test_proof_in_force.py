"""What an edit comes to in the daemon that runs, beside what the file says."""

from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.registry.keyring import hash_of
from tests.cli.conftest import Run
from tests.control_daemon import control_daemon


@pytest.mark.requirement("REL-2")
def test_what_else_an_edit_brings_into_force_is_told(run: Run, tmp_path: Path) -> None:
    rules = '[access.rules.g]\nroles = ["guest"]\ndeny = ["files.*"]\n'
    with control_daemon(tmp_path, f"[ask]\nmax_steps = 3\n{rules}"):
        (tmp_path / "config.toml").write_text("[ask]\nmax_steps = 0\n")
        done = run("config", "set", "ask.max_steps", "9")
    assert done.code == exits.OK
    assert done.err.splitlines() == [
        f"warning: access.rules.g.{key}: comes into force too, as it was changed before:"
        f' ["{value}"] -> null'
        for key, value in (("roles", "guest"), ("deny", "files.*"))
    ]


@pytest.mark.requirement("REL-9")
def test_another_state_directory_is_warned_about_and_can_be_taken_back(
    run: Run, tmp_path: Path
) -> None:
    """A secret of this daemon alone: without it, no edit can be checked."""
    text = '[models.m]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key = "env:ONLY_API_KEY"\n'
    with control_daemon(tmp_path, text, {"ONLY_API_KEY": "there"}):
        done = run("config", "set", "runtime.state_dir", "other")
        assert (done.code, done.err) == (
            exits.OK,
            "warning: runtime.state_dir: the running daemon keeps its folder until a restart: until"
            f" then commands find it only by --state-dir {tmp_path}/.session-runtime\n",
        )
        lost = run("status")
        assert (lost.code, "name that by --state-dir" in lost.err) == (exits.UNAVAILABLE, True)
        back = run("config", "unset", "runtime.state_dir")
        assert (back.code, back.err) == (exits.OK, "")
        assert run("status").code == exits.OK


@pytest.mark.requirement("NET-2")
def test_the_last_key_in_the_file_may_go_if_the_daemon_has_another_one(
    run: Run, tmp_path: Path
) -> None:
    env = {"SESSION_RUNTIME__HTTP__KEYS__SHOP__HASH": hash_of("b")}
    text = f'[ask]\n[http.keys.bot]\nhash = "{hash_of("a")}"\n'
    with control_daemon(tmp_path, text, env):
        done = run("keys", "revoke", "bot")
    assert (done.code, done.err) == (exits.OK, "")
    assert "bot" not in (tmp_path / "config.toml").read_text()
