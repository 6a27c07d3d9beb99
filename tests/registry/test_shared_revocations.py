"""What is revoked is one state, shared by the processes of a state directory (REL-9)."""

import asyncio
import threading
from pathlib import Path

import pytest

from session_runtime.errors import TransientError
from session_runtime.registry.revocation_file import RevocationFile, Revoked
from session_runtime.registry.revocations import Revocations, open_revocations
from session_runtime.registry.shared_file import ANSWERS_S
from tests.mcp.processes import until
from tests.models.clock import Clock


@pytest.mark.requirement("REL-9")
async def test_what_another_process_revokes_and_lifts_acts_here_once_this_one_looks(
    tmp_path: Path,
) -> None:
    mine, other = open_revocations(tmp_path), open_revocations(tmp_path)
    told: list[str] = []
    before = mine.revision
    with mine.watching("files.read", lambda: told.append("files.read")):
        theirs = await other.revoke("files.*", "a leak", "ann")
        await mine.look()
    revision = mine.revision
    assert revision != before
    await mine.look()
    assert (mine.blocks("files.read"), told, mine.revision) == (theirs, ["files.read"], revision)
    await other.lift("files.*")
    await mine.look()
    assert (mine.list(), mine.blocks("files.read")) == ((), None)
    assert mine.revision != revision


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


class HangingDisk(RevocationFile):
    """A file on a disk that answers nobody who looks until ``answers`` is set."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.asked, self.answers = threading.Semaphore(0), threading.Event()
        self.looks = 0

    def newer(self) -> Revoked | None:
        self.looks += 1
        self.asked.release()
        self.answers.wait()
        return super().newer()


@pytest.mark.requirement("REL-9")
async def test_a_disk_that_hangs_holds_nobody_up_and_what_it_says_late_acts_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_revocations(tmp_path).revoke("theirs")
    clock, disk = Clock(monkeypatch), HangingDisk(tmp_path)
    mine = Revocations(disk)
    looking = asyncio.create_task(mine.look())
    await asyncio.to_thread(disk.asked.acquire)
    clock.advance(ANSWERS_S)
    await looking
    for change in (mine.revoke("mine"), mine.lift("mine")):
        with pytest.raises(TransientError, match="the disk does not answer"):
            await change
    await mine.look()
    assert (disk.looks, mine.blocks("mine") is None) == (1, False), "it is not asked again"
    disk.answers.set()
    await until(lambda: mine.blocks("theirs") is not None)
    await mine.look()
    kept = open_revocations(tmp_path)
    assert [each.pattern for each in kept.list()] == ["theirs", "mine"]
    assert kept.list() == mine.list()


async def test_looking_again_and_again_reads_only_what_changed_and_in_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = open_revocations(tmp_path), open_revocations(tmp_path)
    read, start = Path.read_bytes, threading.Thread.start
    reads: list[Path] = []
    threads: list[threading.Thread] = []
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or read(path))
    monkeypatch.setattr(threading.Thread, "start", lambda it: threads.append(it) or start(it))
    await other.revoke("a")
    reads.clear()
    threads.clear()
    for _ in range(5):
        await mine.look()
    assert (len(reads), len(threads)) == (1, 1)
    assert mine.blocks("a") is not None
