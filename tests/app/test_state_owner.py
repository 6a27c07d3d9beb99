"""What a command of root leaves in the state directory stays the daemon's, who is another user (REL-5)."""

import codecs
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

import session_runtime
from session_runtime.app.doctor import machine
from session_runtime.app.doctor.finding import Finding
from session_runtime.app.reader import ConfigReader
from session_runtime.app.serve import locked
from session_runtime.audit.log import open_audit
from session_runtime.config.audit import AuditSettings
from session_runtime.config.durable import own_folder, replace_file
from session_runtime.config.history import History
from session_runtime.config.load import load
from session_runtime.errors import ConfigError, StartError
from session_runtime.mcp.stderr_log import Shown, StderrLog
from session_runtime.registry.approval_file import ApprovalFile, Observation, Seen
from session_runtime.registry.approvals import open_approvals
from session_runtime.registry.revocations import open_revocations
from session_runtime.state_files import ForeignStateError, make_state_folder, open_state_file
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.owner import Owner
from session_runtime.wire.control import LOCK

DAEMON = 65_534
SOURCES = str(Path(session_runtime.__file__).parents[1])

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to others")


@pytest.fixture
def state() -> Iterator[Path]:
    """The state folder of a daemon that runs as another user, where that one can reach it."""
    above = Path(tempfile.mkdtemp(prefix="sr-owner-"))
    above.chmod(0o755)
    (above / "state").mkdir(mode=0o700)
    os.chown(above / "state", DAEMON, DAEMON)
    yield above / "state"
    shutil.rmtree(above)


def command(
    state: Path, *arguments: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command beside that folder, as root."""
    return subprocess.run(
        [sys.executable, "-m", "session_runtime", *arguments],
        cwd=cwd or state.parent,
        env={
            "PATH": os.defpath,
            "PYTHONPATH": SOURCES,
            "SESSION_RUNTIME__RUNTIME__STATE_DIR": str(state),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def owners(state: Path) -> set[int]:
    return {path.lstat().st_uid for path in (state, *state.rglob("*"))}


def test_an_ask_of_root_before_the_first_start_leaves_all_to_the_daemon(state: Path) -> None:
    first = command(state, "ask", "Add the note: buy milk. What is 15% of 2480?")
    assert (first.returncode, owners(state)) == (0, {DAEMON})
    assert {"audit", "audit.head", "audit.key", "trace.jsonl"} <= {
        path.name for path in state.iterdir()
    }


def test_the_first_command_of_root_makes_the_state_folder_for_whom_the_folder_around_it_is(
    state: Path,
) -> None:
    state.rmdir()
    os.chown(state.parent, DAEMON, DAEMON)
    first = command(state, "ask", "What is 2+3?")
    assert (first.returncode, owners(state)) == (0, {DAEMON})
    make_state_folder(state.parent / "more" / "of" / "it", state.parent / "more" / "of")
    assert owners(state.parent) == {DAEMON}


def test_a_state_folder_of_root_is_named_with_its_owner_and_the_way_out(
    state: Path, as_another: int
) -> None:
    os.seteuid(0)
    env = {"SESSION_RUNTIME__RUNTIME__STATE_DIR": str(state)}
    load(None, named=False, env=env)  # imports what is late, and perhaps root's alone
    state.chmod(0o700)
    os.chown(state, 0, 0)
    os.seteuid(as_another)
    with pytest.raises(ConfigError) as refused:
        load(None, named=False, env=env)
    [problem] = refused.value.problems
    assert str(problem).partition(": ")[2] == (
        f"runtime.state_dir: {state}/trace.jsonl: Permission denied; {state} belongs to uid 0 and this"
        f" process is uid {as_another}: run the command as the user of the daemon, or chown it to that user"
    )


def test_a_file_that_may_not_be_looked_at_hides_no_folder_that_was_named(
    state: Path, as_another: int
) -> None:
    os.seteuid(0)
    shut = state.parent / "shut"
    shut.mkdir(0o700)
    reader = ConfigReader(
        str(shut / "config.toml"), explicit={"runtime.state_dir": str(state)}, env={}
    )
    reader.state_dir()  # imports what is late, and perhaps root's alone
    os.seteuid(as_another)
    assert reader.state_dir() == state


def test_a_fault_in_a_folder_of_the_state_names_the_whole_path(state: Path) -> None:
    with pytest.raises(FileNotFoundError) as refused, own_folder(state) as folder:
        os.open("absent", os.O_RDONLY, dir_fd=folder)
    assert refused.value.filename == str(state / "absent")


def test_an_ask_whose_state_cannot_be_written_answers_and_says_so_once_for_each_record(
    state: Path,
) -> None:
    done = command(Path("/proc/none/of/it"), "ask", "What is 2+3?", cwd=state)
    assert (done.returncode, done.stdout) == (0, "5\n")
    told = [line.split(": ", 1)[1].partition(" (")[0] for line in done.stderr.splitlines()]
    assert [line.partition(":")[0] for line in told] == [
        "traces cannot be written to /proc/none/of/it/trace.jsonl",
        "the audit log cannot be written, and records are lost",
    ]


def test_a_state_folder_of_another_user_than_the_configuration_is_worth_a_look(
    state: Path,
) -> None:
    config = state.parent / "config.toml"
    config.touch()
    assert [*machine.owner(state, config)] == []  # a file of root is for every daemon
    os.chown(config, DAEMON, DAEMON)
    assert [*machine.owner(state, config)] == []
    os.chown(state, 0, 0)
    assert [*machine.owner(state, config)] == [
        Finding(
            "state directory",
            "warn",
            f"{state} belongs to uid 0, and {config} to uid {DAEMON}",
            f"if the daemon runs as uid {DAEMON}: chown -R {DAEMON} {state}",
        )
    ]
    state.rmdir()
    assert [*machine.owner(state, config)] == []


def test_an_ask_of_root_beside_the_daemon_leaves_it_what_it_had(state: Path) -> None:
    assert command(state, "ask", "What is 2+3?").returncode == 0
    for path in state.rglob("*"):
        os.chown(path, DAEMON, DAEMON)
    assert command(state, "ask", "What is 15% of 2480?").returncode == 0
    verified = command(state, "audit", "verify")
    assert (owners(state), verified.returncode) == ({DAEMON}, 0)


def test_what_root_saw_of_servers_can_be_read_by_the_daemon(state: Path) -> None:
    seen = Seen("crm", "wipe", "digest", destructive=True)
    ApprovalFile(state).change({seen.key: Observation(seen)})
    assert owners(state) == {DAEMON}


def test_a_folder_of_the_history_that_root_makes_is_the_daemons(state: Path) -> None:
    History(state / "history").add({}, "d", datetime.now(UTC))
    assert owners(state) == {DAEMON}


async def test_the_log_of_a_server_and_its_folder_are_the_daemons(state: Path) -> None:
    log = StderrLog(state / "mcp" / "crm.log", Shown(), max_bytes=60)
    for text in (b"first\n", b"second\n"):
        log.write(text)
    await log.aclose()
    assert owners(state) == {DAEMON}
    assert (state / "mcp" / "crm.log").exists()


def test_notes_and_the_lock_are_the_daemons(state: Path) -> None:
    with locked(state):
        NoteStore(state / "notes.sqlite3", 10, 100).of(Owner("bot", "u1")).add("buy milk")
    assert {path.name for path in state.iterdir()} == {LOCK, "notes.sqlite3"}
    assert owners(state) == {DAEMON}


def test_in_a_volume_of_root_files_belong_to_whom_the_lock_belongs(state: Path) -> None:
    os.chown(state, 0, DAEMON)
    (state / LOCK).touch()
    os.chown(state / LOCK, DAEMON, DAEMON)
    with own_folder(state) as folder:
        replace_file(folder, "audit.head", b"", of_state=True)
    assert (state / "audit.head").stat().st_uid == DAEMON


@pytest.fixture
def as_another(state: Path) -> Iterator[int]:
    """This process is another user meanwhile, who may write into the folder as everybody may."""
    state.chmod(0o777)
    for name in ("utf-8-sig", "utf-16-le", "idna"):
        codecs.lookup(name)  # the interpreter's library may be root's alone, and is not asked twice
    os.seteuid(12_345)
    yield 12_345
    os.seteuid(0)


def test_who_cannot_give_files_to_the_daemon_makes_none(state: Path, as_another: int) -> None:
    said = f"the state folder belongs to uid {DAEMON}: run the command as the user of the daemon"
    with own_folder(state) as folder, pytest.raises(ForeignStateError) as replaced:
        replace_file(folder, "audit.head", b"", of_state=True)
    with pytest.raises(ForeignStateError):
        open_state_file(state / "trace.jsonl", os.O_WRONLY, state)
    with pytest.raises(ForeignStateError):
        make_state_folder(state / "audit", state)
    assert (str(replaced.value), [*state.iterdir()]) == (said, [])


def test_a_daemon_that_may_write_into_the_folder_of_another_user_keeps_what_it_makes(
    state: Path, as_another: int
) -> None:
    with locked(state):
        make_state_folder(state / "audit", state)
        os.close(open_state_file(state / "trace.jsonl", os.O_WRONLY, state))
    assert {path.lstat().st_uid for path in state.iterdir()} == {as_another}
    assert {path.name for path in state.iterdir()} == {LOCK, "audit", "trace.jsonl"}


def left_by_root(state: Path, name: str) -> None:
    (state / name).touch(mode=0o600)
    os.chown(state / name, 0, 0)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("approvals.json", open_approvals),
        ("revocations.json", open_revocations),
        ("audit.key", partial(open_audit, AuditSettings())),
    ],
)
def test_a_file_that_may_not_be_read_is_to_be_chowned_and_not_deleted(
    state: Path, as_another: int, name: str, start: Callable[[Path], object]
) -> None:
    os.seteuid(0)
    left_by_root(state, name)
    os.seteuid(as_another)
    with pytest.raises(StartError) as refused:
        start(state)
    said = str(refused.value)
    assert said.endswith(
        f"{name} belongs to uid 0 and this process is uid {as_another}: run the command as the user of"
        " the daemon, or chown it to that user"
    )
    assert "delete" not in said
    assert "Errno" not in said


def test_a_lock_of_root_is_to_be_chowned(state: Path, as_another: int) -> None:
    os.seteuid(0)
    left_by_root(state, LOCK)
    os.seteuid(as_another)
    with pytest.raises(StartError, match=r"lock belongs to uid 0 .* or chown it to that user"):
        with locked(state):
            pass
