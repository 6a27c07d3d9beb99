"""A person at a terminal is asked before a destructive tool runs; where nobody is, it does not run."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import session_runtime
from session_runtime.cli import exits
from tests.cli.conftest import PROGRAM, Run, start
from tests.support import calls, says, scripted, write_config, write_handler

HANGS_S = 60.0  # a test that waits for what never comes fails instead of hanging
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}
WIPES = """
def execute(args, context):
    open("ran.txt", "a").write(args["path"] + "\\n")
    return "gone"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where a model wants to wipe two paths, and then says so."""
    runtime = {"destructive": True}
    write_handler(tmp_path / "tools", "wipe", parameters=PARAMETERS, runtime=runtime, code=WIPES)
    wipes = calls(("wipe", {"path": "a\u202eb"}), ("wipe", {"path": "c"}))
    model = scripted(tmp_path, wipes, says("Done."))
    handlers = '[handlers]\npaths = ["tools"]\n[skills]\nprefetch_tools = []\n'
    write_config(tmp_path, model + handlers)
    return tmp_path


def at_terminal(folder: Path, *typed: str) -> tuple[int, str]:
    """The exit code of ``ask`` at a terminal where each question gets what is typed, and what is seen there.

    If nothing is typed, the first question is interrupted.
    """
    ours, its = pty.openpty()
    sources = str(Path(session_runtime.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "ask", "wipe them"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": sources, "TERM": "dumb"},
        stdin=its,
        stdout=its,
        stderr=its,
    ) as process:
        os.close(its)
        hung = threading.Timer(HANGS_S, process.kill)
        hung.start()
        seen = b""
        for said in typed:
            seen += _until(ours, b"[y/N]: ")
            os.write(ours, said.encode())
        if not typed:
            seen = _until(ours, b"[y/N]: ")
            process.send_signal(signal.SIGINT)
        seen += _until(ours, None)
        hung.cancel()
    os.close(ours)
    return process.returncode, seen.decode()


def _until(terminal: int, end: bytes | None) -> bytes:
    seen = b""
    while end is None or not seen.endswith(end):
        try:
            more = os.read(terminal, 65_536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        seen += more
    return seen


def ran(folder: Path) -> list[str]:
    path = folder / "ran.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


@pytest.mark.requirement("RTE-9b")
def test_at_a_terminal_what_the_person_agrees_to_runs_and_the_ask_goes_on(home: Path) -> None:
    code, seen = at_terminal(home, "perhaps\n", "y\n", "n\n")
    assert code == exits.OK
    assert r'May this run? wipe {"path":"a\u202eb"} [y/N]:' in seen
    assert 'May this run? wipe {"path":"c"} [y/N]:' in seen
    assert "Done." in seen
    assert ran(home) == ["a\u202eb"]


@pytest.mark.requirement("RTE-9b")
def test_what_is_typed_ahead_is_no_yes_to_a_question_that_was_not_seen(home: Path) -> None:
    code, seen = at_terminal(home, "perhaps\ny\ny\ny\n", "n\n", "n\n")
    assert code == exits.OK
    assert "Done." in seen
    assert ran(home) == []


@pytest.mark.requirement("RTE-9b")
def test_no_answer_is_no(home: Path) -> None:
    code, seen = at_terminal(home, "\n", "\n")
    assert code == exits.OK
    assert ran(home) == []
    assert "tool.declined" in seen


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize("typed", [("\x04",), ("y\n", "\x04")], ids=["at once", "later"])
def test_whoever_leaves_agrees_to_nothing(home: Path, typed: tuple[str, ...]) -> None:
    code, _ = at_terminal(home, *typed)
    assert code == exits.NEEDS_CONFIRMATION
    assert ran(home) == []


@pytest.mark.requirement("RTE-9b")
def test_an_interrupt_while_the_question_waits_ends_the_command(home: Path) -> None:
    code, seen = at_terminal(home)
    assert code == exits.INTERRUPTED
    assert "Fatal" not in seen
    assert ran(home) == []


@pytest.mark.requirement("RTE-9a")
def test_without_a_terminal_it_is_told_what_did_not_run(home: Path) -> None:
    with start(home, "ask", "wipe them") as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (exits.NEEDS_CONFIRMATION, "")
    assert err.splitlines() == [
        r'needs_confirmation: wipe {"path":"a\u202eb"} was not run',
        'needs_confirmation: wipe {"path":"c"} was not run',
    ]
    assert ran(home) == []


@pytest.mark.requirement("INT-2b")
def test_as_json_the_pending_calls_are_in_the_result(home: Path, run: Run) -> None:
    done = run("ask", "wipe them", "--json")
    result = json.loads(done.out)
    assert (done.code, result["outcome"]) == (exits.NEEDS_CONFIRMATION, "needs_confirmation")
    assert [call["arguments"] for call in result["pending"]] == [
        {"path": "a\u202eb"},
        {"path": "c"},
    ]
    assert ran(home) == []
