"""What is revoked: which names, under which number, and what of it outlives the process."""

import asyncio
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import RequestError, StartError, TransientError
from session_runtime.registry.revocation_file import Revocation, RevocationFile, Revoked
from session_runtime.registry.revocations import MAX_REVOCATIONS, Revocations, open_revocations


def clock() -> float:
    return 17.5


@pytest.mark.requirement("REL-9")
async def test_a_pattern_blocks_what_it_matches_until_it_is_lifted() -> None:
    revocations = Revocations(clock=clock)
    files = await revocations.revoke("files.*", "a leak", "ann")
    every = await revocations.revoke("*.read")
    assert files == Revocation(1, "files.*", "a leak", "ann", 17.5)
    assert revocations.list() == (files, every)
    names = ("files.read", "files.write", "web.read", "Files.write", "filesx")
    assert [revocations.blocks(name) for name in names] == [files, files, every, None, None]
    assert await revocations.lift("files.*") == files
    assert [revocations.blocks(name) for name in names] == [every, None, every, None, None]
    assert await revocations.lift(2) == every
    assert revocations.list() == ()


@pytest.mark.requirement("REL-9")
async def test_what_is_revoked_is_still_revoked_after_a_restart(tmp_path: Path) -> None:
    before = open_revocations(tmp_path / "state")
    kept = await before.revoke("files.*", "因为", "ann")
    await before.revoke("web.fetch")
    await before.lift("web.fetch")
    after = open_revocations(tmp_path / "state")
    assert after.list() == (kept,)
    assert after.blocks("files.read") == kept
    assert (await after.revoke("notes.*")).number == 3
    file = tmp_path / "state" / "revocations.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["revocations.json"]


async def test_revoking_a_pattern_again_changes_nothing() -> None:
    revocations = Revocations()
    first = await revocations.revoke("a.*", "one")
    revision = revocations.revision
    assert await revocations.revoke("a.*", "two") == first
    assert (revocations.list(), revocations.revision) == ((first,), revision)


@pytest.mark.parametrize(
    ("pattern", "reason", "fault"),
    [
        ("", "", "pattern: is empty"),
        ("a" * 257, "", "pattern: has 257 characters, at most 256 are allowed"),
        ("a.*, b.*", "", "holds a character that no name of a tool has"),
        ("a\n", "", "holds a character that no name of a tool has"),
        ("a", "r" * 501, "reason: has 501 characters, at most 500 are allowed"),
    ],
)
async def test_what_could_match_no_name_is_refused(pattern: str, reason: str, fault: str) -> None:
    revocations = Revocations()
    with pytest.raises(RequestError, match=fault.replace("*", r"\*")):
        await revocations.revoke(pattern, reason)
    assert revocations.list() == ()


async def test_there_is_a_most_that_can_be_revoked() -> None:
    revocations = Revocations()
    for number in range(MAX_REVOCATIONS):
        await revocations.revoke(f"tool_{number}")
    with pytest.raises(RequestError, match="lift some") as refused:
        await revocations.revoke("one.more")
    assert refused.value.code == "request.too_many_revocations"


@pytest.mark.parametrize("which", [7, "b.*", "1"])
async def test_lifting_what_is_not_revoked_names_what_is(which: int | str) -> None:
    revocations = Revocations()
    await revocations.revoke("a.*")
    with pytest.raises(RequestError, match=r"there is 1 \(a\.\*\)") as refused:
        await revocations.lift(which)
    assert refused.value.code == "request.unknown_revocation"


BROKEN = {
    "empty": "",
    "cut": '{"version":1,"last":1,"revo',
    "list": "[]",
    "other version": '{"version":2,"last":0,"revocations":[]}',
    "more": '{"version":1,"last":0,"revocations":[],"x":1}',
    "no pattern": '{"version":1,"last":1,"revocations":[{"number":1}]}',
    "number": '{"version":1,"last":1,"revocations":['
    '{"number":2,"pattern":"a","reason":"","by":"","time":1}]}',
}


@pytest.mark.requirement("REL-9")
@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_file_that_cannot_be_understood_keeps_the_daemon_from_starting(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "revocations.json").write_text(content)
    with pytest.raises(StartError, match="mend the file, or delete it") as refused:
        open_revocations(tmp_path)
    assert refused.value.code == "start.revocations"
    assert str(tmp_path / "revocations.json") in str(refused.value)


def test_a_file_that_cannot_be_opened_keeps_the_daemon_from_starting(tmp_path: Path) -> None:
    (tmp_path / "revocations.json").mkdir()
    with pytest.raises(StartError, match="Is a directory"):
        open_revocations(tmp_path)


class BrokenDisk(RevocationFile):
    """A file on a disk that takes nothing while it is ``full``."""

    full = True

    def write(self, revoked: Revoked) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(revoked)


@pytest.mark.requirement("REL-9")
async def test_what_cannot_be_written_is_revoked_at_once_and_lifted_not_at_all(
    tmp_path: Path,
) -> None:
    disk = BrokenDisk(tmp_path)
    revocations = Revocations(disk)
    with pytest.raises(TransientError, match=r"but no longer: .*No space left") as failed:
        await revocations.revoke("a")
    assert failed.value.code == "revocations.not_kept"
    assert revocations.blocks("a") is not None
    with pytest.raises(TransientError, match="'a' is still revoked"):
        await revocations.lift("a")
    assert revocations.blocks("a") is not None
    disk.full = False
    assert (await revocations.revoke("a")).number == 1
    assert open_revocations(tmp_path).blocks("a") is not None
    await revocations.lift("a")
    assert revocations.blocks("a") is None
    assert open_revocations(tmp_path).blocks("a") is None


@pytest.mark.requirement("REL-9")
async def test_what_the_disk_does_not_confirm_is_in_force_as_the_file_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revocations, works = open_revocations(tmp_path), os.fsync

    def unconfirmed(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        works(descriptor)

    monkeypatch.setattr(os, "fsync", unconfirmed)
    with pytest.raises(TransientError, match=r"unless the machine crashes: .*Input/output error"):
        await revocations.revoke("a")
    assert revocations.list() == open_revocations(tmp_path).list() != ()
    with pytest.raises(TransientError, match="is lifted, but may be revoked again after a crash"):
        await revocations.lift("a")
    assert revocations.list() == open_revocations(tmp_path).list() == ()
    monkeypatch.undo()
    kept = await revocations.revoke("b")
    assert revocations.list() == open_revocations(tmp_path).list() == (kept,)


@pytest.mark.requirement("REL-9")
async def test_revoking_needs_no_new_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    revocations = open_revocations(tmp_path)
    monkeypatch.setattr(threading.Thread, "start", no_more)
    kept = await revocations.revoke("a")
    assert open_revocations(tmp_path).list() == (kept,)
    await revocations.lift("a")
    assert open_revocations(tmp_path).list() == ()


@pytest.mark.requirement("REL-9")
async def test_what_another_process_revokes_and_lifts_acts_here_once_this_one_looks(
    tmp_path: Path,
) -> None:
    mine, other = open_revocations(tmp_path), open_revocations(tmp_path)
    told: list[str] = []
    with mine.watching("files.read", lambda: told.append("files.read")):
        theirs = await other.revoke("files.*", "a leak", "ann")
        await mine.look()
    revision = mine.revision
    await mine.look()
    assert (mine.blocks("files.read"), told, mine.revision) == (theirs, ["files.read"], revision)
    await other.lift("files.*")
    await mine.look()
    assert (mine.list(), mine.blocks("files.read")) == ((), None)


@pytest.mark.requirement("REL-9")
async def test_processes_that_revoke_beside_each_other_lose_nothing(tmp_path: Path) -> None:
    mine, other = open_revocations(tmp_path), open_revocations(tmp_path)
    theirs = await other.revoke("theirs")
    own = await mine.revoke("mine")
    assert (theirs.number, own.number) == (1, 2)
    assert mine.list() == (theirs, own) == open_revocations(tmp_path).list()
    assert (await other.revoke("mine")).number == 2
    assert await mine.lift(2) == own
    assert await other.lift("theirs") == theirs
    await mine.look()
    assert mine.list() == () == open_revocations(tmp_path).list()


@pytest.mark.requirement("REL-9")
async def test_what_could_not_be_written_stays_on_top_of_what_others_revoke_and_is_written_later(
    tmp_path: Path,
) -> None:
    disk = BrokenDisk(tmp_path)
    mine, other = Revocations(disk), open_revocations(tmp_path)
    with pytest.raises(TransientError, match="but no longer"):
        await mine.revoke("mine")
    await other.revoke("theirs")
    await mine.look()
    names = [(each.number, each.pattern) for each in mine.list()]
    assert names == [(1, "theirs"), (2, "mine")]
    with pytest.raises(TransientError, match="'mine' is still revoked"):
        await mine.lift("mine")
    disk.full = False
    await mine.look()
    await other.look()
    assert other.list() == mine.list() == open_revocations(tmp_path).list()


@pytest.mark.requirement("REL-9")
@pytest.mark.parametrize("content", [None, "", '{"version":2}'])
async def test_a_file_that_is_gone_or_broken_lifts_nothing_and_is_told_once(
    tmp_path: Path, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    revocations = open_revocations(tmp_path)
    revoked = await revocations.revoke("a")
    caplog.clear()
    file = tmp_path / "revocations.json"
    file.unlink()
    if content is not None:
        file.write_text(content)
    for _ in range(2):
        await revocations.look()
    assert revocations.list() == (revoked,)
    [told] = caplog.messages
    assert told.startswith(
        "it cannot be known what other processes revoke or lift, so that nothing"
    )


async def test_a_file_that_somebody_else_broke_is_not_overwritten(tmp_path: Path) -> None:
    revocations = open_revocations(tmp_path)
    (tmp_path / "revocations.json").write_text("mine")
    with pytest.raises(TransientError, match="was changed by somebody else"):
        await revocations.revoke("a")
    assert revocations.blocks("a") is not None
    assert (tmp_path / "revocations.json").read_text() == "mine"


async def test_who_stops_waiting_does_not_undo_what_is_being_kept(tmp_path: Path) -> None:
    revocations = open_revocations(tmp_path)
    await revocations.revoke("a")
    lifting = asyncio.create_task(revocations.lift("a"))
    await asyncio.sleep(0)
    lifting.cancel()
    kept = await revocations.revoke("b")
    assert lifting.cancelled()
    assert revocations.list() == (kept,) == open_revocations(tmp_path).list()


@pytest.mark.requirement("REL-9")
async def test_what_is_revoked_again_while_it_is_lifted_stays_revoked(tmp_path: Path) -> None:
    revocations = open_revocations(tmp_path)
    await revocations.revoke("a")
    lifting = asyncio.create_task(revocations.lift("a"))
    await asyncio.sleep(0)
    again = await revocations.revoke("a", "again")
    await lifting
    assert revocations.list() == (again,) == open_revocations(tmp_path).list()
    assert again.number == 2


async def test_those_who_watch_a_tool_are_told_once_and_only_of_that_tool() -> None:
    revocations, told = Revocations(), []
    with (
        revocations.watching("a.x", lambda: told.append("a.x")),
        revocations.watching("b.x", lambda: told.append("b.x")),
    ):
        await revocations.revoke("a.*")
        await revocations.revoke("*.x*y")
        await revocations.revoke("?.x")
    await revocations.revoke("b.*")
    assert told == ["a.x", "b.x"]


changes = st.lists(
    st.tuples(
        st.sampled_from(("revoke", "lift")), st.sampled_from(("a", "a.*", "b?", "*", "[ab]"))
    ),
    max_size=12,
)


@given(changes)
def test_the_file_always_tells_what_is_in_force(changes: list[tuple[str, str]]) -> None:
    async def apply(file: RevocationFile) -> tuple[Revocation, ...]:
        revocations = Revocations(file)
        for change, pattern in changes:
            known = pattern in [each.pattern for each in revocations.list()]
            if change == "revoke":
                await revocations.revoke(pattern)
            elif known:
                await revocations.lift(pattern)
            assert file.read().revocations == revocations.list()
        return revocations.list()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(apply(RevocationFile(Path(folder))))


WRITER = """
import asyncio, itertools, sys
from pathlib import Path
from session_runtime.registry.revocations import open_revocations

async def work():
    revocations = open_revocations(Path(sys.argv[1]))
    await revocations.revoke("always", "x" * 400)
    print("ready", flush=True)
    for number in itertools.count():
        await revocations.revoke(f"n{number}", "x" * 400)
        if number >= 40:
            await revocations.lift(f"n{number - 40}")

asyncio.run(work())
"""


@pytest.mark.requirement("REL-9")
@pytest.mark.parametrize("later", [0, 3, 11, 24, 50])
def test_a_process_that_is_killed_while_it_writes_leaves_a_file_that_can_be_read(
    tmp_path: Path, later: int
) -> None:
    file = tmp_path / "revocations.json"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == b"ready\n"
            while json.loads(file.read_bytes())["last"] < later:
                assert writer.poll() is None
        finally:
            writer.kill()
    revocations = open_revocations(tmp_path)
    assert revocations.list()[0].pattern == "always"
    assert asyncio.run(revocations.revoke("more")).number > later
