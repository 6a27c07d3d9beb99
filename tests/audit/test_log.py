"""Records come from the event loop and are written in order; a disk that refuses is told and waited for."""

import asyncio
import json
import shutil
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime.audit import log as log_module
from session_runtime.audit.entry import Entry, Subject
from session_runtime.audit.head import Head
from session_runtime.audit.log import AuditLog, open_audit
from session_runtime.audit.store import AuditStore
from session_runtime.audit.tail import last_lines
from session_runtime.config.audit import AuditSettings
from session_runtime.errors import StartError
from session_runtime.types import Identity, JsonObject
from tests.audit.logs import files, verified, write


def entry(call_id: str) -> Entry:
    return Entry(Subject(0.0, "a", call_id, "t", "here", "local", Identity(), b"{}", {}))


class Disk(AuditStore):
    """A log whose disk is full while ``fails``, and answers only once ``free`` is set."""

    def __init__(self, state: Path) -> None:
        super().__init__(state, None, 10**9, 0)
        self.fails = False
        self.free = threading.Event()
        self.free.set()
        self.wrote = threading.Event()
        self.times = 0

    def append(self, records: Sequence[JsonObject]) -> Head:
        self.free.wait()
        if self.fails:
            raise OSError(28, "No space left on device")
        head = super().append(records)
        self.times += 1
        self.wrote.set()
        return head


@asynccontextmanager
async def opened(
    disk: AuditStore, max_waiting: int = 100, together_s: float = 0.0
) -> AsyncIterator[AuditLog]:
    log = AuditLog(disk, max_waiting=max_waiting, together_s=together_s)
    try:
        yield log
    finally:
        await log.aclose()


def written(state: Path) -> list[str]:
    lines = [json.loads(line) for file in files(state) for line in file.read_bytes().splitlines()]
    return [line.get("call_id", line["event"]) for line in lines]


@pytest.mark.requirement("RTE-13")
async def test_records_are_written_in_order_and_the_end_is_known(tmp_path: Path) -> None:
    async with opened(Disk(tmp_path), max_waiting=1000) as log:
        for number in range(500):
            log.add(entry(f"c{number}"))
    assert written(tmp_path) == ["opened", *(f"c{number}" for number in range(500))]
    assert log.status() == {
        "sequence": 501,
        "head": verified(tmp_path).head,
        "file": "000000000001.jsonl",
        "folder": str(tmp_path / "audit"),
        "waiting": 0,
        "lost": 0,
        "trouble": None,
        "altered": None,
    }


async def test_records_that_nobody_waits_for_are_written_together_and_with_the_next_that_one_does(
    tmp_path: Path,
) -> None:
    disk = Disk(tmp_path)
    async with opened(disk, together_s=3600.0) as log:
        for number in range(5):
            log.add(entry(f"c{number}"))
        assert (disk.times, files(tmp_path)) == (0, [])
        await log.add_now(entry("c5"))
        assert written(tmp_path) == ["opened", *(f"c{number}" for number in range(6))]
        log.add(entry("c6"))
    assert written(tmp_path)[-1] == "c6"
    assert disk.times == 2


async def test_a_moment_later_records_are_written_without_more_of_them(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    async with opened(disk, together_s=0.001) as log:
        log.add(entry("c0"))
        await asyncio.to_thread(disk.wrote.wait, 20)
        assert written(tmp_path) == ["opened", "c0"]


async def test_a_whole_batch_waits_for_no_more(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    async with opened(disk, max_waiting=3, together_s=3600.0) as log:
        for number in range(3):
            log.add(entry(f"c{number}"))
        await asyncio.to_thread(disk.wrote.wait, 20)
        assert len(written(tmp_path)) == 4


async def test_nothing_is_made_before_the_first_record(tmp_path: Path) -> None:
    async with opened(Disk(tmp_path)) as log:
        pass
    assert files(tmp_path) == []
    assert AuditStore(tmp_path, None, 1, 0).head() is None
    assert (log.status()["sequence"], log.status()["head"]) == (0, None)


async def test_who_waits_for_its_record_finds_it_on_the_disk(tmp_path: Path) -> None:
    async with opened(Disk(tmp_path)) as log:
        await log.add_now(entry("c1"))
        assert written(tmp_path) == ["opened", "c1"]


async def test_a_hanging_disk_holds_up_nobody_and_the_records_beyond_the_room_are_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk(tmp_path)
    disk.free.clear()
    async with opened(disk, max_waiting=2) as log:
        for number in range(5):  # the first is being written, two wait
            log.add(entry(f"c{number}"))
        assert log.lost == 2
        with pytest.raises(OSError, match="too many records wait for a slow disk"):
            await log.add_now(entry("late"))
        disk.free.set()
    assert written(tmp_path) == ["opened", "c0", "lost", "c1", "c2"]
    assert caplog.messages[0] == "audit records are lost; more like this are counted, not told"


async def test_of_a_call_that_is_cancelled_before_its_turn_nothing_is_written(
    tmp_path: Path,
) -> None:
    disk = Disk(tmp_path)
    disk.free.clear()
    async with opened(disk) as log:
        log.add(entry("c0"))  # is being written
        waiting = asyncio.create_task(log.add_now(entry("gone")))
        await asyncio.sleep(0)
        log.add(entry("c1"))
        waiting.cancel()
        await asyncio.wait([waiting])
        disk.free.set()
    assert (written(tmp_path), log.lost) == (["opened", "c0", "c1"], 0)


async def test_what_a_full_disk_refused_is_written_when_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_module, "RETRY_S", 0.0)
    disk = Disk(tmp_path)
    disk.fails = True
    async with opened(disk) as log:
        log.add(entry("c1"))
        with pytest.raises(OSError, match="No space left"):
            await log.add_now(entry("refused"))
        assert log.trouble == "[Errno 28] No space left on device"
        log.add(entry("c2"))
        disk.fails = False
        await asyncio.to_thread(disk.wrote.wait)
    assert written(tmp_path) == ["opened", "c1", "c2"]
    assert (log.lost, log.trouble) == (0, "")
    told = [record.getMessage() for record in caplog.records if record.levelname != "INFO"]
    assert told == [
        "the audit log cannot be written: [Errno 28] No space left on device",
        "the audit log is written again; 0 records were lost so far",
    ]


async def test_who_waits_is_told_at_once_that_the_disk_refuses(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.fails = True
    async with opened(disk) as log:
        with pytest.raises(OSError, match="No space left"):
            await log.add_now(entry("c1"))
        assert log.status()["waiting"] == 0  # its call is not made, so that nothing is to be told
        disk.fails = False
        await log.add_now(entry("c2"))
    assert written(tmp_path) == ["opened", "c2"]


@pytest.mark.requirement("RTE-13")
async def test_that_an_earlier_copy_was_put_back_is_told_once_and_stays_in_the_status(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state, before = tmp_path / "state", tmp_path / "before"
    async with opened(Disk(state)) as log:
        await log.add_now(entry("c1"))
        shutil.copytree(state, before)
        await log.add_now(entry("c2"))
        shutil.copytree(before, state, dirs_exist_ok=True)
        for number in range(3):
            await log.add_now(entry(f"later{number}"))
        assert log.status()["altered"] == log.altered
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert told == [f"the audit log was altered: {log.altered}"]
    assert log.altered.startswith("record 3:")
    assert written(state) == ["opened", "c1", "altered", "later0", "later1", "later2"]


@pytest.mark.parametrize(
    "odd",
    [
        replace(entry("x").subject, arguments=b"[" * 100_000),
        replace(entry("x").subject, identity=Identity(user=5)),  # type: ignore[arg-type]
    ],
)
async def test_a_call_that_cannot_be_written_down_costs_its_particulars_alone(
    tmp_path: Path, odd: Subject
) -> None:
    async with opened(Disk(tmp_path)) as log:
        log.add(Entry(odd))
        log.add(entry("c1"))
    first, second = last_lines(tmp_path, 2)
    assert (first["tool"], "fault" in first, second["call_id"]) == ("t", True, "c1")
    assert first["event"] == "begun"
    verified(tmp_path)


async def test_what_still_waits_at_the_end_is_counted_as_lost(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.fails = True
    async with opened(disk) as log:
        log.add(entry("c1"))
    assert log.lost == 1
    log.add(entry("after"))
    assert log.lost == 2


def test_a_log_that_cannot_be_gone_on_with_hinders_the_start(tmp_path: Path) -> None:
    write(tmp_path, [1])
    (tmp_path / "audit.key").unlink()
    with pytest.raises(StartError, match=r"its key .*audit\.key is gone: put it back") as raised:
        open_audit(AuditSettings(), tmp_path)
    assert raised.value.code == "start.audit"
    assert open_audit(AuditSettings(enabled=False), tmp_path) is None
