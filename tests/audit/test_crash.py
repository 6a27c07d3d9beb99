"""A process that is killed in the middle of writing leaves a log that can be verified and gone on with."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import session_runtime
from tests.audit.logs import numbers, verified, write

RUNTIME = Path(session_runtime.__file__).parents[1]
WRITES = """
import sys
from pathlib import Path
from session_runtime.audit.store import AuditStore

store = AuditStore(Path(sys.argv[1]), None, 20_000, 0)
for number in range(1_000_000):
    store.append([{"n": number, "text": "x" * 300}] * 3)
    print(number, flush=True)
"""

DIES = """
import os, signal, sys
from pathlib import Path
from session_runtime.audit import store

state, step = Path(sys.argv[1]), sys.argv[2]

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def write_part(descriptor, data):
    os.write(descriptor, data[: int(step)])
    die()

if step.isdigit():
    store._write_all = write_part
elif step == "before the end is written":
    store.write_head = die
else:
    store.AuditStore._remove_older = die
store.AuditStore(state, None, 1, 1).append([{"n": 2, "text": "x" * 300}, {"n": 3}])
"""


def writer(state: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITES, str(state)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(RUNTIME)},
    )


@pytest.mark.requirement("RTE-13")
def test_kill_9_in_the_middle_of_appends_leaves_a_log_that_verifies(tmp_path: Path) -> None:
    acknowledged = 0
    for lines in (7, 40, 90):
        with writer(tmp_path) as process:
            assert process.stdout is not None
            for _ in range(lines):
                acknowledged += bool(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            acknowledged += len(process.stdout.readlines())
        assert len(numbers(tmp_path)) >= 3 * acknowledged
        verified(tmp_path)
    assert verified(tmp_path).files > 1
    write(tmp_path, [-1])
    assert numbers(tmp_path)[-1] == -1
    verified(tmp_path)


def test_two_processes_write_one_chain(tmp_path: Path) -> None:
    with writer(tmp_path) as one, writer(tmp_path) as other:
        for process in (one, other):
            assert process.stdout is not None
            for _ in range(20):
                process.stdout.readline()
        for process in (one, other):
            process.kill()
    lines = [json.loads(line) for line in (tmp_path / "audit.head").read_bytes().splitlines()]
    assert verified(tmp_path).sequence >= lines[0]["sequence"] >= 120


@pytest.mark.parametrize(
    ("step", "kept", "notes"),
    [
        ("0", [1, 4], 0),
        ("1", [1, 4], 1),
        ("200", [1, 4], 1),
        ("600", [1, 2, 4], 1),
        ("before the end is written", [1, 2, 3, 4], 0),
        ("before old files are removed", [1, 2, 3, 4], 0),
    ],
)
def test_wherever_it_is_killed_the_next_one_goes_on_and_tells_what_was_left(
    tmp_path: Path, step: str, kept: list[int], notes: int
) -> None:
    write(tmp_path, [1])
    environment = {**os.environ, "PYTHONPATH": str(RUNTIME)}
    done = subprocess.run(
        [sys.executable, "-c", DIES, str(tmp_path), step], env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert len(verified(tmp_path).notes) == notes
    write(tmp_path, [4])
    assert numbers(tmp_path) == kept
    assert len(verified(tmp_path).notes) == notes
