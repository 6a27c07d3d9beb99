import json
import threading
from pathlib import Path

import pytest

from session_runtime.cli import exits
from tests.cli.conftest import Run
from tests.support import write_handler


@pytest.mark.requirement("INT-5")
def test_a_good_configuration_is_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[ask]\nmax_steps = 3\n")
    text, data = run("config", "check"), run("config", "check", "--json")
    found = json.loads(data.out)
    assert (text.code, data.code) == (0, 0)
    assert (
        text.out
        == f"ok: {found['tools']} tools, digest {found['digest']} ({Path.cwd()}/config.toml)\n"
    )
    assert found["ok"] is True


@pytest.mark.requirement("INT-5")
def test_a_bad_configuration_is_told_with_every_problem(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[http]\nprt = 1\nhots = 2\n")
    done = run("config", "check", "--json")
    found = json.loads(done.out)
    assert (done.code, found["ok"]) == (exits.CONFIG, False)
    assert [(p["key"], p["source"], p["line"]) for p in found["problems"]] == [
        ("http.prt", "config.toml", 2),
        ("http.hots", "config.toml", 3),
    ]


def test_tools_that_cannot_be_used_are_warned_about(run: Run, tmp_path: Path) -> None:
    for name in ("broken", "good"):
        (tmp_path / "mine" / name).mkdir(parents=True)
    (tmp_path / "mine" / "broken" / "config.json").write_text("{")
    function = {"name": "good", "description": "d", "parameters": {"type": "object"}}
    (tmp_path / "mine" / "good" / "config.json").write_text(
        json.dumps({"type": "function", "function": function})
    )
    (tmp_path / "mine" / "good" / "handler.py").write_text("def execute(args, context): ...\n")
    (tmp_path / "config.toml").write_text('[handlers]\npaths = ["mine"]\n')
    done = run("config", "check")
    assert done.code == 0
    assert "broken" in done.err
    assert done.err.startswith("warning: ")


def test_code_that_can_never_be_imported_is_warned_about_and_not_run(
    run: Run, tmp_path: Path
) -> None:
    write_handler(tmp_path / "tools", "bad", code="def execute(args, context)\n")
    loud = "print('it ran')\ndef execute(args, context): ...\n"
    write_handler(tmp_path / "tools", "loud", code=loud)
    entry = '[handlers.entries."a.b"]\nimport = "no_such_package:f"\ndescription = "Does it."\n'
    (tmp_path / "config.toml").write_text(f'[handlers]\npaths = ["tools"]\n{entry}')
    text, data = run("config", "check"), run("config", "check", "--json")
    warnings = [
        "tool 'a.b': its code in handlers.entries.\"a.b\" (no_such_package:f) cannot be imported: there is"
        " no module no_such_package: install it where the daemon runs",
        f"tool 'bad': its code in {tmp_path}/tools/bad cannot be imported: handler.py line 1: SyntaxError:"
        " expected ':'",
    ]
    assert (text.code, text.err) == (0, "".join(f"warning: {line}\n" for line in warnings))
    assert (data.code, json.loads(data.out)["warnings"]) == (0, warnings)
    assert "it ran" not in text.out + data.out


KEYED = '[models.m]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "x"\napi_key = "env:NO_API_KEY"\n'
NO_KEY = (
    "config.toml:4: models.m.api_key: the variable NO_API_KEY is not set in this shell; the daemon may have"
    " it"
)


def test_what_else_is_wrong_is_told_together_with_a_missing_secret(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(f'{KEYED}[handlers]\npaths = ["nowhere"]\n')
    text, data = run("config", "check"), run("config", "check", "--json")
    told = (
        f"config.toml:6: handlers.paths: {tmp_path}/nowhere cannot be read as a folder of tools: No such"
        " file or directory"
    )
    assert (text.code, text.err) == (exits.CONFIG, f"error: {NO_KEY}\nerror: {told}\n")
    assert [each["key"] for each in json.loads(data.out)["problems"]] == [
        "models.m.api_key",
        "handlers.paths",
    ]


def test_broken_tools_are_warned_of_together_with_a_missing_secret(
    run: Run, tmp_path: Path
) -> None:
    write_handler(tmp_path / "tools", "bad", code="def run(args, context): ...\n")
    (tmp_path / "config.toml").write_text(f'{KEYED}[handlers]\npaths = ["tools"]\n')
    done = run("config", "check")
    assert (done.code, done.err) == (
        exits.CONFIG,
        f"warning: tool 'bad': its code in {tmp_path}/tools/bad cannot be imported: handler.py has no"
        f" function execute(args, context)\nerror: {NO_KEY}\n",
    )


@pytest.mark.requirement("INT-5")
@pytest.mark.requirement("CFG-4a")
def test_every_key_is_shown_with_its_source_and_no_secret(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-abcdefghijklmnop"
    (tmp_path / "config.toml").write_text(
        f'[models.m]\nwire = "chat"\nbase_url = "https://h/v1"\nmodel = "x"\napi_key = "{secret}"\n'
    )
    monkeypatch.setenv("SESSION_RUNTIME__ASK__MAX_STEPS", "7")
    text, data = run("config", "show"), run("config", "show", "--json")
    shown = {entry["key"]: entry for entry in json.loads(data.out)}
    assert shown["ask.max_steps"] == {
        "key": "ask.max_steps",
        "value": 7,
        "source": "env SESSION_RUNTIME__ASK__MAX_STEPS",
        "shadowed": [],
        "acts": "next ask",
    }
    assert shown["models.m.api_key"]["value"] == "***"
    assert "ask.max_steps = 7  # env SESSION_RUNTIME__ASK__MAX_STEPS" in text.out.splitlines()
    assert secret not in text.out + text.err + data.out + data.err
    assert secret not in run("config", "explain", "models.m.api_key").out
    assert secret not in run("config", "check").out


@pytest.mark.requirement("INT-5")
def test_a_key_is_explained_with_what_it_hides(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[ask]\nmax_steps = 3\n")
    monkeypatch.setenv("SESSION_RUNTIME__ASK__MAX_STEPS", "7")
    text = run("config", "explain", "ask.max_steps")
    assert text.out.splitlines() == [
        "ask.max_steps = 7",
        "source: env SESSION_RUNTIME__ASK__MAX_STEPS",
        "shadowed, no effect: config.toml:2",
        "an edit acts: next ask",
        f"read: {Path.cwd()}/config.toml",
    ]
    assert json.loads(run("config", "explain", "ask.max_steps", "--json").out) == {
        "key": "ask.max_steps",
        "value": 7,
        "source": "env SESSION_RUNTIME__ASK__MAX_STEPS",
        "shadowed": ["config.toml:2"],
        "acts": "next ask",
    }


@pytest.mark.requirement("INT-5")
def test_a_section_is_explained_with_all_its_keys(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[log]\nlevel = "debug"\n')
    done = run("config", "explain", "log")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        'log.level = "debug"  # config.toml:2',
        'log.format = "text"  # default',
    ]
    level, form = json.loads(run("config", "explain", "log", "--json").out)
    assert level == json.loads(run("config", "explain", "log.level", "--json").out)
    assert form["key"] == "log.format"


@pytest.mark.requirement("INT-5")
def test_a_section_without_a_key_says_so(run: Run) -> None:
    done = run("config", "explain", "models")
    assert (done.code, done.out, done.err) == (0, "", "nothing is set in [models]\n")
    assert json.loads(run("config", "explain", "models", "--json").out) == []


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize(
    "command",
    [
        "config check",
        "config show",
        "config explain ask.max_steps",
        "ask hi",
        "tools list",
        "tools show end",
        "tools search end",
    ],
)
def test_every_command_reads_the_env_file_that_is_named(
    run: Run, tmp_path: Path, command: str
) -> None:
    (tmp_path / "wrong.env").write_text("SESSION_RUNTIME__ASK__MAX_STEPS=0\n")
    done = run(*command.split(), "--env-file", "wrong.env")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert done.err == "error: wrong.env:1: ask.max_steps: must be at least 1 (given: 0)\n"


def test_checking_opens_no_trace(run: Run) -> None:
    threads: set[str] = set()
    threading.setprofile(lambda *_: threads.add(threading.current_thread().name))
    try:
        assert run("config", "check").code == 0
    finally:
        threading.setprofile(None)
    assert "trace-writer" not in threads


def test_an_unknown_key_is_answered_with_the_nearest(run: Run) -> None:
    done = run("config", "explain", "http.prt")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert done.err == "error: no such key: http.prt; did you mean http.port?\n"


def test_where_there_is_no_file_that_is_told(run: Run, tmp_path: Path) -> None:
    none = f"no {tmp_path}/config.toml: defaults and variables alone"
    assert run("config", "check").out.endswith(f" ({none})\n")
    assert run("config", "explain", "ask.max_steps").out.endswith(f"\nread: {none}\n")
