"""What is written by a command is what the daemon, or a start, would take: nothing else is."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.cli import keys as keys_command
from session_runtime.config.edit import ConfigFile
from session_runtime.config.history import History
from session_runtime.registry.keyring import hash_of
from tests.cli.conftest import Run
from tests.control_daemon import Daemon, control_daemon

MODEL = '[models.m]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key = "env:ONLY_THERE_API_KEY"\n'
KEYS = f'[http.keys.bot]\nhash = "{hash_of("a")}"\n[http.keys.shop]\nhash = "{hash_of("b")}"\n'
ABSENT = (
    "config.toml:4: models.m.api_key: the variable ONLY_THERE_API_KEY is not set in this shell;"
    " the daemon may have it"
)
EDITS = (
    ("config", "set", "ask.max_steps", "2"),
    ("config", "unset", "http.keys.shop"),
    ("config", "rollback", "1"),
    ("keys", "add", "new", "--write"),
    ("keys", "revoke", "bot"),
)


def kept(folder: Path) -> History:
    """What the daemon has kept, with an entry to go back to."""
    history = History(folder / ".session-runtime" / "history")
    model = {"base_url": "http://h/v1", "model": "m", "api_key": "env:ONLY_THERE_API_KEY"}
    entry = {"models": {"m": model}, "ask": {"max_steps": 9}}
    history.add(entry, "d", datetime(2026, 3, 1, tzinfo=UTC))
    return history


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(MODEL + KEYS)
    return path


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that has in its environment what the shell has not."""
    with control_daemon(tmp_path, MODEL + KEYS, {"ONLY_THERE_API_KEY": "sk-there"}) as daemon:
        yield daemon


@pytest.mark.requirement("REL-6")
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("[ask]\n", ("config", "set", "handlers.paths", "tools")),
        (
            '[handlers]\npaths = ["tools"]\n[ask]\nmax_steps = 3\n',
            ("config", "unset", "ask.max_steps"),
        ),
        ('[handlers]\npaths = ["tools"]\n', ("config", "rollback", "1")),
        ('[handlers]\npaths = ["tools"]\n', ("keys", "add", "new", "--write")),
        (f'[handlers]\npaths = ["tools"]\n{KEYS}', ("keys", "revoke", "bot")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["write", "dry"])
def test_what_no_start_would_take_is_not_written(
    run: Run, config: Path, text: str, arguments: tuple[str, ...], dry: tuple[str, ...]
) -> None:
    config.write_text(text)
    entry = {"handlers": {"paths": ["tools"]}, "ask": {"max_steps": 9}}
    History(config.parent / ".session-runtime" / "history").add(
        entry, "d", datetime(2026, 3, 1, tzinfo=UTC)
    )
    done = run(*arguments, *(dry if arguments[0] == "config" else ()))
    assert (done.code, done.out, config.read_text()) == (exits.CONFIG, "", text)
    assert "cannot be read as a folder of tools" in done.err


@pytest.mark.requirement("REL-6")
@pytest.mark.parametrize("arguments", EDITS, ids=lambda words: words[1])
def test_a_secret_of_the_daemon_is_none_of_the_shell(
    run: Run, config: Path, daemon: Daemon, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    number, before = str(kept(tmp_path).entries()[0].number), config.read_text()
    words = [number if word == "1" else word for word in arguments]
    done = run(*words)
    assert (done.code, "ONLY_THERE" in done.err) == (exits.OK, False)
    assert config.read_text() != before


@pytest.mark.parametrize("served", [False, True], ids=["alone", "beside a daemon"])
def test_what_an_edit_has_no_effect_on_is_warned_about_as_by_a_check(
    run: Run, tmp_path: Path, request: pytest.FixtureRequest, served: bool
) -> None:
    if served:
        request.getfixturevalue("daemon")
    else:
        (tmp_path / "config.toml").write_text("[ask]\n")
    done = run("config", "set", "skills.prefetch_tools", "no_such_tool")
    assert done.code == exits.OK
    assert "no_such_tool" in done.err
    assert done.err.startswith("warning: ")


@pytest.mark.requirement("NET-2")
@pytest.mark.parametrize(
    "arguments",
    [("unset", "http.keys"), ("rollback", "1", "--include", "keys")],
    ids=lambda words: words[0],
)
def test_any_edit_that_takes_the_last_key_away_warns_of_what_that_means(
    run: Run, config: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    config.write_text(f"[ask]\nmax_steps = 3\n{KEYS}")
    History(tmp_path / ".session-runtime" / "history").add(
        {"ask": {"max_steps": 3}}, "d", datetime(2026, 3, 1, tzinfo=UTC)
    )
    done = run("config", *arguments)
    assert (done.code, done.err) == (
        exits.OK,
        "warning: no key is left: without a key, every caller on this machine is an administrator\n",
    )


@pytest.mark.requirement("REL-6")
def test_what_the_daemon_would_reject_is_not_written(
    run: Run, config: Path, daemon: Daemon
) -> None:
    before = config.read_text()
    done = run("config", "set", "handlers.paths", "tools")
    assert (done.code, done.out, config.read_text()) == (exits.CONFIG, "", before)
    assert "cannot be read as a folder of tools" in done.err
    assert "ONLY_THERE" not in done.err


@pytest.mark.parametrize("arguments", EDITS, ids=lambda words: words[1])
def test_without_the_daemon_an_unknown_secret_refuses_the_edit_and_tells_the_way_out(
    run: Run, config: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    kept(tmp_path)
    done = run(*arguments)
    assert (done.code, done.out, config.read_text()) == (exits.CONFIG, "", MODEL + KEYS)
    absent, way_out = done.err.splitlines()
    assert absent.endswith(ABSENT.partition(": ")[2])
    assert way_out == (
        "error: no daemon of this file answers that could check the edit with its own environment, so"
        " nothing was written: set in this shell what is not set, or name the file of variables by"
        " --env-file, or start the daemon first"
    )
    Path("there.env").write_text("ONLY_THERE_API_KEY=sk-x\n")
    assert run(*arguments, "--env-file", "there.env").code == exits.OK


def test_the_daemon_of_another_file_is_not_asked(run: Run, daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(MODEL)
    done = run("config", "set", "ask.max_steps", "2", "--config", "other.toml")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert "no daemon of this file answers" in done.err


@pytest.mark.requirement("CFG-4")
def test_what_only_looks_warns_of_an_unknown_secret_and_shows_where_it_stands(
    run: Run, config: Path
) -> None:
    warning = f"warning: {ABSENT}\n"
    shown, explained = run("config", "show"), run("config", "explain", "models.m.api_key")
    assert (shown.code, shown.err, explained.code, explained.err) == (0, warning, 0, warning)
    line = 'models.m.api_key = "env:ONLY_THERE_API_KEY"'
    assert f"{line}  # config.toml:4" in shown.out.splitlines()
    assert explained.out.splitlines()[:2] == [line, "source: config.toml:4"]
    listed, added = run("keys", "list"), run("keys", "add", "new")
    assert (listed.code, listed.err, added.code) == (0, warning, 0)
    assert added.err.startswith(warning)


def test_a_secret_file_that_the_daemon_alone_sees_is_a_warning_too(run: Run, config: Path) -> None:
    config.write_text(
        f'[runtime]\nsecret_sources = ["file:{config.parent}/run"]\n'
        + MODEL.replace("env:ONLY_THERE_API_KEY", "file:run/key")
    )
    done = run("config", "explain", "models.m.api_key", "--json")
    assert json.loads(done.out)["value"] == "file:run/key"
    assert f"there is no file {config.parent}/run/key; the daemon may see it, if it" in done.err


def test_a_secret_that_is_not_allowed_is_wrong_wherever_one_looks(run: Run, config: Path) -> None:
    config.write_text(f"[runtime]\nsecret_sources = []\n{MODEL}")
    done = run("config", "show")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert "is not allowed by runtime.secret_sources" in done.err


def test_a_check_is_of_this_shell(run: Run, config: Path) -> None:
    done = run("config", "check")
    assert (done.code, done.out, done.err) == (exits.CONFIG, "", f"error: {ABSENT}\n")


@pytest.mark.requirement("INT-5")
def test_what_a_daemon_has_in_force_is_asked_of_it(
    run: Run, config: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION_RUNTIME__ASK__MAX_STEPS", "7")
    here, there = (
        json.loads(run("config", "explain", "ask.max_steps", "--json", *more).out)
        for more in ((), ("--daemon",))
    )
    assert (here["value"], here["source"]) == (7, "env SESSION_RUNTIME__ASK__MAX_STEPS")
    assert there == {
        "key": "ask.max_steps",
        "value": daemon.runtime.live.snapshot.settings.ask.max_steps,
        "source": "default",
        "shadowed": [],
        "acts": "next ask",
    }
    shown = run("config", "show", "--daemon")
    assert (shown.code, shown.err) == (0, "")
    assert 'models.m.api_key = "env:ONLY_THERE_API_KEY"  # config.toml:4' in shown.out
    section = run("config", "explain", "models.m", "--daemon").out.splitlines()
    assert section == [line for line in shown.out.splitlines() if line.startswith("models.m.")]
    wrong = run("config", "explain", "http.prt", "--daemon")
    assert (wrong.code, wrong.err) == (
        exits.USAGE,
        "error: no such key: http.prt; did you mean http.port?\n",
    )


def test_without_a_daemon_there_is_nothing_in_force(run: Run, config: Path) -> None:
    for arguments in (("show",), ("explain", "ask.max_steps")):
        done = run("config", *arguments, "--daemon")
        assert (done.code, done.out) == (exits.UNAVAILABLE, "")
        assert "no daemon runs with runtime.state_dir" in done.err


STEPS = "SESSION_RUNTIME__ASK__MAX_STEPS"


@pytest.mark.requirement("CFG-3b")
def test_a_value_that_a_variable_of_the_daemon_shadows_is_refused(run: Run, tmp_path: Path) -> None:
    text = "[ask]\nmax_steps = 3\n"
    with control_daemon(tmp_path, text, {STEPS: "6"}):
        done = run("config", "set", "ask.max_steps", "9")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert (tmp_path / "config.toml").read_text().startswith(text)
    assert done.err == (
        f"error: ask.max_steps: no effect: shadowed by env {STEPS}; the running daemon has it: change"
        " it there, and restart it\n"
    )


@pytest.mark.requirement("CFG-3b")
@pytest.mark.parametrize("verb", [("unset", "ask.max_steps"), ("rollback", "1")])
def test_what_the_daemon_shadows_is_cleaned_up_and_goes_back_with_a_warning(
    run: Run, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    History(tmp_path / ".session-runtime" / "history").add(
        {"ask": {"max_tool_calls": 4}}, "d", datetime(2026, 3, 1, tzinfo=UTC)
    )
    text = "[ask]\nmax_steps = 3\nmax_tool_calls = 4\n"
    with control_daemon(tmp_path, text, {STEPS: "6"}):
        done = run("config", *verb)
    assert (done.code, done.err) == (
        exits.OK,
        f"warning: ask.max_steps: no effect: shadowed by env {STEPS}\n",
    )
    assert "max_steps" not in (tmp_path / "config.toml").read_text()


@pytest.mark.requirement("CFG-3b")
@pytest.mark.parametrize("value", ["7", "zero"])
def test_a_variable_of_the_shell_alone_refuses_nothing_that_the_daemon_takes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(STEPS, value)
    with control_daemon(tmp_path, "[ask]\nmax_steps = 3\n"):
        done = run("config", "set", "ask.max_steps", "9")
    assert (done.code, done.err) == (exits.OK, "")
    assert (tmp_path / "config.toml").read_text().startswith("[ask]\nmax_steps = 9\n")


@pytest.mark.requirement("NET-2")
def test_the_last_key_stays_valid_in_a_running_daemon_and_that_is_said(
    run: Run, tmp_path: Path
) -> None:
    with control_daemon(tmp_path, f'[http.keys.bot]\nhash = "{hash_of("a")}"\n'):
        done = run("keys", "revoke", "bot", "--last")
    assert done.code == exits.OK
    assert done.err == (
        "warning: no key is left in the file, but the running daemon keeps those it has until a"
        " restart: to lock them out now, add another key first, then remove these; after a restart,"
        " without a key, every caller on this machine is an administrator\n"
    )


def test_when_a_change_acts_is_what_the_daemon_says(run: Run, tmp_path: Path) -> None:
    with control_daemon(tmp_path, f'[http.keys.bot]\nhash = "{hash_of("a")}"\n'):
        done = run("config", "unset", "http.keys.bot", "--dry-run")
    assert done.out.splitlines()[0].endswith("-> not set  # acts: restart")


def test_a_variable_that_only_the_daemon_lacks_is_told_as_that(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIN_API_KEY", "sk-here")
    text = MODEL.replace("ONLY_THERE_API_KEY", "MAIN_API_KEY").partition("api_key")[0]
    with control_daemon(tmp_path, text):
        done = run("config", "set", "models.m.api_key", "env:MAIN_API_KEY")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert done.err == (
        "error: models.m.api_key: the variable MAIN_API_KEY is not set in the environment of the running"
        ' daemon: restart it with the variable, or give the secret as "file:/path"\n'
    )


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("ask", "ask is a section: name a key in it, such as ask."),
        ("models", "models is a section: name a key in it, such as models.NAME."),
        ("models.x", "models.x is a section: name a key in it, such as models.x."),
    ],
)
def test_a_section_takes_no_value(run: Run, config: Path, key: str, hint: str) -> None:
    done = run("config", "set", key, "9")
    assert (done.code, done.out, config.read_text()) == (exits.USAGE, "", MODEL + KEYS)
    assert hint in done.err


def test_where_the_file_is_gone_the_newest_of_the_history_is_named(
    run: Run, tmp_path: Path
) -> None:
    kept(tmp_path)
    done = run("config", "set", "ask.max_steps", "2")
    assert done.code == exits.CONFIG
    assert "config init writes one to start with" in done.err
    assert "or go back to what worked: session-runtime config rollback 1\n" in done.err


@pytest.mark.requirement("NET-2")
def test_the_last_key_is_told_by_the_file_that_is_edited(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command takes the other key away between two looks at the file."""
    keys = f"[ask]\n{KEYS}"
    config.write_text(keys)
    works = keys_command.open_file

    def opened(path: Path, *, may_be_absent: bool = False) -> ConfigFile:
        config.write_text(keys.partition("[http.keys.shop]")[0])
        return works(path, may_be_absent=may_be_absent)

    monkeypatch.setattr(keys_command, "open_file", opened)
    done = run("keys", "revoke", "bot")
    assert (done.code, done.out, "bot" in config.read_text()) == (exits.USAGE, "", True)
