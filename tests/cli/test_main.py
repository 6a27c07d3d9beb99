import importlib
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import click
import pytest

from session_runtime import __version__
from session_runtime.cli import COMMANDS, commands, exits
from session_runtime.types import AskResult, ErrorInfo, Outcome
from tests.cli.conftest import Done, Run, start

HEAVY = ("pydantic", "starlette", "numpy", "rich", "httpx2", "tomlkit", "uvicorn")


@pytest.mark.requirement("NET-7a")
def test_help_lists_every_command_and_exit_code_and_imports_none(tmp_path: Path) -> None:
    code = (
        "import sys; from session_runtime.cli import main; main(['--help']);"
        f"sys.exit([name for name in {HEAVY} if name in sys.modules] or 0)"
    )
    with start(tmp_path, code=code) as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert [name for name in COMMANDS if f"  {name} " not in out] == []
    assert "  78   the configuration is wrong" in out


def test_every_command_in_the_table_exists() -> None:
    context = commands.make_context("session-runtime", ["ask", "x"])
    for name in COMMANDS:
        command = commands.get_command(context, name)
        assert command is not None
        assert command.name == name


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Each command that does something, by its words."""
    context = commands.make_context("session-runtime", ["ask", "x"])
    for name in COMMANDS:
        command = commands.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {each}", found) for each, found in command.commands.items())
        elif command is not None:
            yield name, command


@pytest.mark.requirement("INT-5")
@pytest.mark.requirement("NET-7b")
@pytest.mark.parametrize("option", ["--config", "--json"])
def test_every_command_takes_the_options_that_programs_rely_on(option: str) -> None:
    without = [
        name
        for name, command in every_command()
        if not any(option in parameter.opts for parameter in command.params)
    ]
    assert without == (["mcp"] if option == "--json" else [])  # what mcp prints is JSON as it is


@pytest.mark.requirement("NET-7b")
def test_there_is_a_command_for_all_that_operators_do() -> None:
    names = {name for name, _ in every_command()}
    assert names >= {
        *("asks list", "asks cancel", "keys add", "keys list", "keys revoke", "revoke", "status"),
        *("mcp", "audit tail", "audit verify", "replay", "eval"),
    }


def test_the_version_is_told(run: Run) -> None:
    assert run("--version") == Done(0, f"session-runtime, version {__version__}\n", "")


@pytest.mark.requirement("NET-7a")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Commands:"),
        (("aks",), "No such command 'aks'"),
        (("ask",), "Missing argument 'TEXT'"),
        (("ask", "hi", "--jsn"), "No such option"),
        (("ask", "hi", "--json", "--events"), "--json and --events exclude each other"),
        (("serve", "--port", "99999"), "99999 is not in the range"),
        (("tools", "search", "x", "--limit", "0"), "0 is not in the range"),
    ],
)
def test_a_wrong_command_is_explained_and_exits_64(
    run: Run, arguments: tuple[str, ...], words: str
) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert words in done.err


@pytest.mark.requirement("CFG-6")
@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "hi"),
        ("serve",),
        ("tools", "list"),
        ("tools", "show", "end"),
        ("tools", "search", "x"),
        ("config", "check"),
        ("config", "show"),
        ("config", "explain", "http.port"),
    ],
)
def test_a_named_configuration_that_is_absent_exits_78(
    run: Run, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(*arguments, "--config", "absent.toml")
    assert (done.code, done.out) == (exits.CONFIG, "")
    assert "absent.toml cannot be read: No such file or directory" in done.err
    monkeypatch.setenv("SESSION_RUNTIME_CONFIG", "other.toml")
    assert "other.toml cannot be read" in run(*arguments).err


def test_every_problem_of_a_configuration_has_its_own_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[http]\nprt = 1\n[ask]\nmax_steps = "a"\n')
    done = run("ask", "hi")
    assert done.code == exits.CONFIG
    assert [
        line.partition(": unknown")[0].partition(": must")[0] for line in done.err.splitlines()
    ] == [
        "error: config.toml:2: http.prt",
        "error: config.toml:4: ask.max_steps",
    ]


def test_errors_cannot_send_controls_to_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[ask]\nmax_steps = "\\u001b[31m\\u009b\\u202e"\n')
    done = run("config", "check")
    assert r"\u001b[31m\x9b\u202e" in done.err
    assert done.err.rstrip("\n").isprintable()


def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path) -> None:
    with start(tmp_path, "config", "show") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (exits.BROKEN_PIPE, "")


@pytest.mark.requirement("NET-7a")
@pytest.mark.parametrize(
    ("outcome", "error", "code"),
    [
        ("answered", None, 0),
        ("ended", None, 0),
        ("limit", "limit.steps", 2),
        ("needs_confirmation", None, 3),
        ("failed", "confirmation.invalid", 64),
        ("cancelled", "cancelled.operator", 130),
        ("failed", "model.network", 1),
        ("failed", "busy.capacity", 1),
        ("failed", "request.unknown_model", 64),
        ("failed", None, 1),
    ],
)
def test_the_exit_code_says_how_an_ask_ended(
    outcome: Outcome, error: str | None, code: int
) -> None:
    info = None if error is None else ErrorInfo(error, "why")
    is_refused = error is not None and not error.startswith("model.")
    result = AskResult("a", outcome, error=info, refused=is_refused)
    assert exits.of_result(result) == code


@pytest.mark.parametrize(
    "arguments",
    [
        ("revoke", "a\udcff"),
        ("asks", "cancel", "\udcff"),
        ("config", "explain", "\udcff", "--daemon"),
        ("config", "show", "--config", "\udcff.toml"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "udcff" in done.err
    assert "is not UTF-8" in done.err


@pytest.mark.requirement("REL-8")
def test_a_hangup_does_not_end_a_daemon_whose_code_is_still_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, found = signal.signal(signal.SIGHUP, signal.SIG_DFL), []

    def imported(name: str) -> ModuleType:
        found.append(signal.getsignal(signal.SIGHUP))
        return SimpleNamespace(command=None)  # type: ignore[return-value]

    monkeypatch.setattr(importlib, "import_module", imported)
    try:
        for name in ("status", "serve"):
            commands.get_command(click.Context(commands), name)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert found == [signal.SIG_DFL, signal.SIG_IGN]
