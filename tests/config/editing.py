"""A configuration file to edit, the checks of every edit, and processes that are killed in the middle."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from session_runtime.config.edit import Check, Edit, keys, open_file, plan, write
from session_runtime.config.history import History
from session_runtime.config.load import load
from session_runtime.config.rollback import Rollback, plan_rollback
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.types import NOTHING

SWEEP = """
import os, pathlib, signal, sys

def killed_after(last):
    left = [last]
    def step(name):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return step

def sweep(prepare, write):
    root, steps, died = pathlib.Path(sys.argv[1]), 0, True
    while died:
        folder = root / str(steps)
        folder.mkdir()
        prepare(folder)
        child = os.fork()
        if not child:
            write(folder, killed_after(steps))
            os._exit(0)
        died = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        steps += 1
    print(steps)
"""
"""Calls ``write`` in a process of its own for each of its steps, and kills it there."""


def swept(folder: Path, script: str) -> int:
    """Run a script that calls ``sweep`` in ``folder``; gives the number of folders that it made."""
    done = subprocess.run(
        [sys.executable, "-c", SWEEP + script, str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def set_values(path: Path, values: Mapping[str, object], check: Check) -> Edit:
    """Take the steps of an edit one after the other, as the commands and the HTTP door do."""
    edit = plan(open_file(path), keys(values), check)
    write(edit)
    return edit


def go_back(
    path: Path, history: History, number: int, check: Check, include: Collection[str] = ()
) -> Rollback:
    """The same for going back."""
    planned = plan_rollback(open_file(path, may_be_absent=True), history, number, check, include)
    write(planned.edit)
    return planned


@dataclass(frozen=True)
class Editor:
    """Edits ``path`` with the checks that a start would make."""

    path: Path
    env: Mapping[str, str] = field(default_factory=dict)
    explicit: Mapping[str, object] = field(default_factory=lambda: NOTHING)

    def write(self, text: str) -> None:
        self.path.write_bytes(text.encode())

    def read(self) -> str:
        return self.path.read_bytes().decode()

    @property
    def check(self) -> Callable[[bytes], ConfigSnapshot]:
        read = partial(load, self.path, named=True, env=self.env, explicit=self.explicit)
        return lambda content: read(text=content)

    def set(self, **values: Any) -> Edit:
        """Keys are written with ``__`` for each dot."""
        dotted = {key.replace("__", "."): value for key, value in values.items()}
        return set_values(self.path, dotted, self.check)


def in_mounts(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command with mounts of its own; the test is left out where that is not allowed."""
    isolate = [shutil.which("unshare") or "unshare", "-m", "sh", "-c"]
    try:
        tried = subprocess.run(
            [*isolate, "mount --bind /tmp /tmp"], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if tried.returncode != 0:
        pytest.skip("mounting is not permitted")
    return subprocess.run(
        [*isolate, command, "sh", *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
