"""Runs the command line in an empty folder and keeps what it prints: here, or as a process."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import session_runtime
from session_runtime.cli import main, opening

PROGRAM = "import sys; from session_runtime.cli import main; sys.exit(main())"


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SESSION_RUNTIME_CONFIG", raising=False)
    monkeypatch.setattr(opening, "set_up_logging", lambda settings, errors_only=(): None)

    def run(*arguments: str) -> Done:
        code = main(arguments)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


def start(folder: Path, *arguments: str, code: str = PROGRAM) -> subprocess.Popen[str]:
    """Start the command line, or other code, as a process of its own."""
    sources = str(Path(session_runtime.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": sources},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
