"""The commands that edit the configuration file, list what worked, and go back to it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.config.history import History
from session_runtime.config.starting import starting_config
from tests.cli.conftest import Run, start

TEXT = "# mine\n[ask]\nmax_steps = 1 # few\n"
AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def history(tmp_path: Path) -> History:
    """What a daemon in the working folder would have kept."""
    history = History(tmp_path / ".session-runtime" / "history")
    for number in (1, 2):
        history.add({"ask": {"max_steps": number}}, f"d{number}", AT)
    return history


@pytest.mark.requirement("REL-6")
def test_a_file_to_start_with_is_written_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    done = run("config", "init")
    assert (done.code, done.out) == (exits.OK, f"wrote {path}\n")
    assert path.read_text() == starting_config()
    again = run("config", "init")
    assert (again.code, again.out) == (exits.USAGE, "")
    assert (
        again.err
        == f"error: {path} exists and is left as it is: name another file by --config FILE\n"
    )
    other = run("config", "init", "other.toml", "--json")
    assert json.loads(other.out) == {"file": str(tmp_path / "other.toml"), "written": True}
    assert run("config", "init", "--config", "third.toml").out == f"wrote {tmp_path}/third.toml\n"
    assert run("config", "check").code == exits.OK


@pytest.mark.requirement("REL-6")
@pytest.mark.requirement("NET-7a")
def test_a_key_is_set_and_unset(run: Run, config: Path) -> None:
    done = run("config", "set", "ask.max_steps", "7")
    assert (done.code, done.out.splitlines()) == (
        exits.OK,
        ["ask.max_steps: 1 -> 7  # acts: next ask", f"wrote {config}"],
    )
    assert config.read_text() == TEXT.replace("= 1", "= 7")
    same = run("config", "set", "ask.max_steps", "7")
    assert same.out == f"nothing to change in {config}\n"
    gone = run("config", "unset", "ask.max_steps", "--json")
    assert json.loads(gone.out) == {
        "file": str(config),
        "written": True,
        "changes": [{"key": "ask.max_steps", "old": 7, "new": None, "acts": "next ask"}],
        "left": [],
        "warnings": [],
    }
    assert config.read_text() == "# mine\n[ask]\n"


def test_values_need_no_quotes(run: Run, config: Path) -> None:
    run("config", "set", "skills.prefetch_tools", "end, get_current_time")
    run("config", "set", "log.level", "debug")
    run("config", "set", "models.m", '{wire = "offline"}')
    assert config.read_text() == (
        f'{TEXT}\n[skills]\nprefetch_tools = ["end", "get_current_time"]\n\n[log]\nlevel = "debug"\n'
        '\n[models.m]\nwire = "offline"\n'
    )


def test_a_dry_run_shows_and_writes_nothing(run: Run, config: Path) -> None:
    done = run("config", "set", "http.port", "9000", "--dry-run")
    assert done.out.splitlines() == [
        "http.port: not set -> 9000  # acts: restart",
        f"would write {config}",
    ]
    assert json.loads(run("config", "unset", "ask", "--dry-run", "--json").out)["written"] is False
    assert config.read_text() == TEXT


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("set", "ask.max_steps", "-5"), exits.CONFIG, "ask.max_steps: must be at least 1"),
        (("set", "http.prt", "5"), exits.USAGE, "unknown key (given: 5); did you mean port?"),
        (("unset", "http.prt"), exits.USAGE, "no such key: http.prt; did you mean http.port?"),
        (("set", "a b", "5"), exits.USAGE, "'a b' is not one dotted key"),
        (("rollback", "9"), exits.USAGE, "there is no entry 9 in "),
        (("diff", "1", "9"), exits.USAGE, "there is no entry 9 in "),
        (("diff", "0", "1"), exits.USAGE, "0 is not in the range"),
        (("rollback", "1", "--include", "all"), exits.USAGE, "'all' is none of keys, access"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_written(
    run: Run, config: Path, history: History, arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = run("config", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert config.read_text() == TEXT


@pytest.mark.requirement("CFG-3b")
def test_an_edit_without_effect_names_the_variable(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_RUNTIME__ASK__MAX_STEPS", "7")
    done = run("config", "set", "ask.max_steps", "2")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "no effect: shadowed by env SESSION_RUNTIME__ASK__MAX_STEPS" in done.err


def test_a_file_that_cannot_be_written_ends_with_1(run: Run, config: Path) -> None:
    config.chmod(0o444)
    done = run("config", "set", "ask.max_steps", "2")
    assert (done.code, done.out) == (exits.FAILED, "")
    assert f"{config} is read-only: change it where it is made" in done.err


def test_a_secret_is_never_printed(run: Run, config: Path) -> None:
    config.write_text('[models.m]\nmodel = "m"\nbase_url = "http://h/v1"\n')
    texts = []
    for secret in ("sk-geheim-1", "sk-geheim-2"):
        done = run("config", "set", "models.m.api_key", secret)
        texts.append(done.out + done.err)
        assert done.code == exits.OK
        assert secret in config.read_text()
    assert "models.m.api_key: not set -> ***" in texts[0].replace('"', "")
    assert "the secret itself is in the file" in texts[0]
    assert "geheim" not in "".join(texts)


def test_without_a_file_there_is_nothing_to_edit(run: Run) -> None:
    for arguments in (("set", "ask.max_steps", "2"), ("unset", "ask.max_steps")):
        done = run("config", *arguments)
        assert (done.code, done.out) == (exits.CONFIG, "")
        assert "session-runtime config init writes one to start with" in done.err


@pytest.mark.requirement("REL-6")
def test_what_worked_is_listed_with_the_newest_first(
    run: Run, config: Path, history: History
) -> None:
    assert run("config", "history").out.splitlines() == [
        "     2  2026-03-01T12:30:00+00:00  d2",
        "     1  2026-03-01T12:30:00+00:00  d1",
    ]
    assert json.loads(run("config", "history", "--json").out) == [
        {"number": number, "at": "2026-03-01T12:30:00+00:00", "digest": f"d{number}"}
        for number in (2, 1)
    ]


def test_an_empty_history_is_told(run: Run, config: Path) -> None:
    done = run("config", "history")
    assert (done.code, done.out) == (exits.OK, "")
    assert done.err == (
        f"nothing is kept in {config.parent}/.session-runtime/history: a daemon keeps every configuration"
        " that works; if its runtime.state_dir is another, name that by --state-dir\n"
    )
    assert run("config", "history", "--json").out == "[]\n"


@pytest.mark.requirement("REL-6")
def test_two_entries_are_compared(run: Run, config: Path, history: History) -> None:
    assert run("config", "diff", "1", "2").out == "ask.max_steps: 1 -> 2  # acts: next ask\n"
    assert json.loads(run("config", "diff", "2", "1", "--json").out) == [
        {"key": "ask.max_steps", "old": 2, "new": 1, "acts": "next ask"}
    ]
    same = run("config", "diff", "1", "1")
    assert (same.code, same.out, same.err) == (exits.OK, "", "no difference\n")


@pytest.mark.requirement("REL-6")
def test_the_file_goes_back_and_what_stays_is_told(
    run: Run, config: Path, history: History
) -> None:
    history.add({"ask": {"max_steps": 3}, "access": {"default": "deny"}}, "d", AT)
    shown = run("config", "rollback", "3", "--dry-run")
    assert config.read_text() == TEXT
    assert shown.out.splitlines() == [
        "ask.max_steps: 1 -> 3  # acts: next ask",
        f"would write {config}",
    ]
    assert shown.err == ("left as in the file: access (--include access takes it back too)\n")
    done = json.loads(run("config", "rollback", "3", "--include", "keys,access", "--json").out)
    assert (done["written"], done["left"]) == (True, [])
    assert config.read_text() == f'{TEXT.replace("= 1", "= 3")}\n[access]\ndefault = "deny"\n'


@pytest.mark.requirement("REL-6")
@pytest.mark.parametrize("now", ["[ask]\nmax_stepz = 1\n", None], ids=["broken", "gone"])
def test_a_file_that_no_daemon_would_start_with_goes_back(
    run: Run, config: Path, history: History, now: str | None
) -> None:
    config.write_text(now) if now is not None else config.unlink()
    done = run("config", "rollback", "2", "--config", "config.toml")
    assert (done.code, done.err) == (exits.OK, "")
    assert config.read_text() == "[ask]\nmax_steps = 2\n"


def test_the_history_is_found_in_the_state_directory_of_a_broken_file(
    run: Run, config: Path, tmp_path: Path
) -> None:
    History(tmp_path / "state" / "history").add({}, "d", AT)
    config.write_text('[runtime]\nstate_dir = "state"\nnme = "x"\n')
    assert run("config", "history").out == "     1  2026-03-01T12:30:00+00:00  d\n"


def test_commands_that_edit_nothing_load_no_editor(tmp_path: Path) -> None:
    code = (
        "import sys, session_runtime.cli.serve, session_runtime.cli.config, session_runtime.app.runtime;"
        "sys.exit('tomlkit' in sys.modules)"
    )
    with start(tmp_path, code=code) as process:
        assert process.communicate() == ("", "")
    assert process.returncode == 0


@pytest.mark.requirement("REL-6")
def test_of_two_that_edit_at_once_none_is_lost(config: Path, tmp_path: Path) -> None:
    edits = [
        start(tmp_path, "config", "set", key, "5")
        for key in ("ask.max_steps", "ask.max_tool_calls")
    ]
    codes = {edit.args[-2]: (edit.communicate()[1], edit.returncode) for edit in edits}  # type: ignore[index]
    text = config.read_text()
    for key, (err, code) in codes.items():
        name = str(key).rpartition(".")[2]
        assert (f"{name} = 5" in text, code) in ((True, 0), (False, 1)), err
    assert any(code == 0 for _, code in codes.values())
