"""Processes of servers: how they start, what they are given, and that nothing of them is left."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from session_runtime.errors import PermanentError, TransientError
from session_runtime.mcp.process import Command, start
from session_runtime.testing.mcp_servers.raw import orphan_maker
from session_runtime.testing.mcp_servers.script import Script
from tests.mcp.processes import (
    BRIEF_S,
    command,
    environment,
    folder_of,
    members,
    open_files,
    python,
    running,
    state,
    until,
)

STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write("ready\\n"); sys.stdout.flush()
while True: signal.pause()
"""


async def refusal(what: Command) -> str:
    with pytest.raises(PermanentError) as caught:
        await start(what, os.environ)
    assert caught.value.code == "mcp.command"
    return str(caught.value)


@pytest.mark.requirement("RTE-6")
async def test_a_process_has_the_environment_it_is_given_and_nothing_of_ours_but_three_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "tangerine")
    monkeypatch.setenv("LANG", "C.UTF-8")
    async with running(python(tmp_path, "input()", {"API_KEY": "given"})) as child:
        given = environment(child.pid)
    assert given == {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LANG": "C.UTF-8",
        "API_KEY": "given",
    }


async def test_what_is_configured_stands_in_for_what_is_inherited(tmp_path: Path) -> None:
    what = python(tmp_path, "input()", {"HOME": "/elsewhere"})
    assert what.environment({"HOME": "/root", "TERM": "x"}) == {"HOME": "/elsewhere"}


def test_a_command_shows_no_values_of_its_environment(tmp_path: Path) -> None:
    assert "given" not in repr(python(tmp_path, "", {"API_KEY": "given"}))


async def test_a_process_runs_in_its_folder_and_leads_a_group_of_its_own(tmp_path: Path) -> None:
    async with running(python(tmp_path, "input()")) as child:
        assert folder_of(child.pid) == tmp_path
        assert os.getpgid(child.pid) == os.getsid(child.pid) == child.pid


async def test_a_process_has_no_file_of_ours_open(tmp_path: Path) -> None:
    with (tmp_path / "ours").open("w", encoding="utf-8") as ours:
        os.set_inheritable(ours.fileno(), True)
        async with running(python(tmp_path, "print(); input()")) as child:
            await child.stdout.readline()
            assert open_files(child.pid) == ["0", "1", "2"]


async def test_a_command_that_path_does_not_find_names_the_key_and_the_way_out(
    tmp_path: Path,
) -> None:
    told = await refusal(Command("files", "uvy", (), tmp_path, {"PATH": "/bin"}))
    assert told == (
        "mcp.servers.files.command: 'uvy' was not found by PATH: install it, correct its name, or give"
        " its whole path; PATH is '/bin'"
    )


@pytest.mark.parametrize("program", ["npx -y shop", "npx -y @shop/server"])
async def test_a_whole_command_line_is_told_to_be_split(tmp_path: Path, program: str) -> None:
    told = await refusal(Command("files", program, (), tmp_path, {"PATH": "/bin"}))
    assert "give the program alone, and the words after it as args" in told


async def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = await refusal(Command("files", "./gone", (), tmp_path))
    assert told.startswith(f"mcp.servers.files.command: there is no file '{tmp_path}/gone': ")


async def test_a_file_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    (tmp_path / "srv.py").write_text("print()", encoding="utf-8")
    told = await refusal(Command("files", "./srv.py", (), tmp_path))
    assert "cannot be executed: make it executable (chmod +x), or set its interpreter" in told


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    told = await refusal(Command("files", "true", (), tmp_path / "gone"))
    assert told.startswith(f"mcp.servers.files.cwd: the folder '{tmp_path}/gone' is not there: ")


@pytest.mark.parametrize(
    ("content", "why"),
    [("#!/no/such/interpreter\n", "the interpreter named in its first line"), ("?", "no program")],
)
async def test_a_file_that_the_system_cannot_start_says_why(
    tmp_path: Path, content: str, why: str
) -> None:
    (tmp_path / "srv").write_text(content, encoding="utf-8")
    (tmp_path / "srv").chmod(0o755)
    assert why in await refusal(Command("files", "./srv", (), tmp_path))


async def test_arguments_that_are_too_long_are_told(tmp_path: Path) -> None:
    told = await refusal(Command("files", "true", ("x" * 3_000_000,), tmp_path))
    assert "args and env are too long together" in told


async def test_a_machine_without_processes_to_give_is_asked_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **more: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(TransientError, match=r"^mcp\.servers\.x\.command: ") as caught:
        await start(python(tmp_path, ""), os.environ)
    assert caught.value.code == "mcp.no_process"


@pytest.mark.parametrize("threads", [0, 1, 2, 3])
async def test_a_machine_that_gives_no_more_threads_leaves_no_process_and_no_open_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    left = threads
    real = threading.Thread.start

    def give(thread: threading.Thread) -> None:
        nonlocal left
        if not left:
            raise RuntimeError("can't start new thread")
        left -= 1
        real(thread)

    before = open_files(os.getpid())
    monkeypatch.setattr(threading.Thread, "start", give)
    if threads < 2:
        with pytest.raises(TransientError) as caught:
            await start(python(tmp_path, "input()"), os.environ)
        assert caught.value.code == "mcp.no_process"
    else:
        child = await start(python(tmp_path, "input()"), os.environ)
        child.kill()
        assert await child.wait() == "it was ended by SIGKILL"
    monkeypatch.undo()
    await asyncio.sleep(0)
    assert children() == []
    assert open_files(os.getpid()) == before


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(3)", "it exited with status 3"),
        ("import os; os.kill(os.getpid(), 9)", "it was ended by SIGKILL"),
        ("import os; os.kill(os.getpid(), 50)", "it was ended by signal 50"),
    ],
)
async def test_the_end_of_a_process_is_told_in_words(tmp_path: Path, code: str, words: str) -> None:
    async with running(python(tmp_path, code)) as child:
        assert await child.wait() == words


async def test_a_process_that_ends_with_its_input_is_asked_no_further(tmp_path: Path) -> None:
    async with running(python(tmp_path, "import sys; sys.stdin.read()")) as child:
        await child.end(30)
    assert child.ended == "it exited with status 0"
    assert state(child.pid) == ""


async def test_a_process_that_ignores_the_end_of_its_input_gets_sigterm(tmp_path: Path) -> None:
    async with running(python(tmp_path, "import signal; signal.pause()")) as child:
        await child.end(BRIEF_S)
    assert child.ended == "it was ended by SIGTERM"
    assert state(child.pid) == ""


@pytest.mark.requirement("REL-8c")
async def test_a_process_that_ignores_sigterm_too_is_killed(tmp_path: Path) -> None:
    async with running(python(tmp_path, STUBBORN)) as child:
        await child.stdout.readline()
        await child.end(BRIEF_S)
    assert child.ended == "it was ended by SIGKILL"
    assert state(child.pid) == ""


async def test_a_stopped_process_is_killed(tmp_path: Path) -> None:
    async with running(python(tmp_path, "input()")) as child:
        os.kill(child.pid, signal.SIGSTOP)
        await child.end(BRIEF_S)
    assert child.ended == "it was ended by SIGKILL"


@pytest.mark.requirement("RTE-6")
async def test_what_a_wrapper_started_ends_with_it(tmp_path: Path) -> None:
    launch = orphan_maker(Script(ignores=("eof",)))
    async with running(command(tmp_path, launch)) as child:
        await until(lambda: len(members(child.pid)) == 2)
        await child.end(BRIEF_S)
        await until(lambda: members(child.pid) == [])


@pytest.mark.requirement("REL-8c")
@pytest.mark.requirement("RTE-6")
async def test_what_a_wrapper_left_behind_is_ended_although_the_wrapper_is_over(
    tmp_path: Path,
) -> None:
    launch = ("sh", ("-c", f"{sys.executable} -I -S -c 'import signal; signal.pause()' & exit 0"))
    async with running(command(tmp_path, launch)) as child:
        await child.wait()
        assert len(members(child.pid)) == 1
        await child.end(BRIEF_S)
        await until(lambda: members(child.pid) == [])


@pytest.mark.requirement("REL-8c")
async def test_ending_that_is_cancelled_kills_at_once(tmp_path: Path) -> None:
    child = await start(python(tmp_path, STUBBORN), os.environ)
    await child.stdout.readline()
    ending = asyncio.create_task(child.end(3_600))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait((ending,))
    assert await child.wait() == "it was ended by SIGKILL"
    assert state(child.pid) == ""


async def test_a_start_that_nobody_waits_for_any_more_leaves_no_process(tmp_path: Path) -> None:
    started = tmp_path / "pid"
    code = f"import os; open({str(started)!r}, 'w').write(str(os.getpid())); input()"
    begun = threading.Event()
    real = subprocess.Popen

    def told(*args: Any, **more: Any) -> Any:
        begun.set()
        return real(*args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", told)
        starting = asyncio.create_task(start(python(tmp_path, code), os.environ))
        await asyncio.to_thread(begun.wait)
        starting.cancel()
        await asyncio.wait((starting,))
    assert starting.cancelled()
    assert begun.is_set()
    await until(lambda: children() == [])


def children() -> list[int]:
    """Our own children, zombies too."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(pid) for pid in listed.read_text("utf-8").split()]
