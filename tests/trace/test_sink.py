import json
import logging
import queue
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from session_runtime.trace import sink as sink_module
from session_runtime.trace.record import AskRecord
from session_runtime.trace.sink import TraceSink
from session_runtime.types import Identity
from tests.trace.test_record import RECORD

LINE_BYTES = 600  # more than half a record, less than a whole one


@asynccontextmanager
async def opened(
    path: Path, max_bytes: int = 10**9, keep: int = 3, max_queued: int = 1_000
) -> AsyncIterator[TraceSink]:
    sink = TraceSink(path, max_bytes, keep, max_queued=max_queued)
    try:
        yield sink
    finally:
        await sink.aclose()


def numbered(number: int) -> AskRecord:
    return replace(RECORD, ask_id=f"a{number}")


def files(folder: Path) -> dict[str, list[str]]:
    return {path.name: ids(path) for path in folder.iterdir()}


def ids(path: Path) -> list[str]:
    return [json.loads(line)["ask_id"] for line in path.read_text("utf-8").splitlines()]


@pytest.mark.requirement("OPS-1a")
async def test_every_record_becomes_one_json_line_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "trace.jsonl"
    async with opened(path) as sink:
        for number in range(20):
            sink.write(numbered(number))
    assert ids(path) == [f"a{number}" for number in range(20)]
    assert sink.dropped == 0


async def test_only_the_owner_can_read_a_trace(tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text("")
    old.chmod(0o644)
    for path in (old, tmp_path / "new.jsonl"):
        async with opened(path) as sink:
            sink.write(RECORD)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_later_run_appends(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for number in range(2):
        async with opened(path) as sink:
            sink.write(numbered(number))
    assert ids(path) == ["a0", "a1"]


async def test_a_torn_line_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"ask_id": "cut o')
    async with opened(path) as sink:
        sink.write(numbered(1))
    torn, whole = path.read_text("utf-8").splitlines()
    assert torn == '{"ask_id": "cut o'
    assert json.loads(whole)["ask_id"] == "a1"


async def test_full_files_are_numbered_and_the_oldest_go(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    async with opened(path, max_bytes=LINE_BYTES, keep=2) as sink:
        for number in range(5):
            sink.write(numbered(number))
    assert files(tmp_path) == {
        "trace.jsonl": ["a4"],
        "trace.jsonl.1": ["a3"],
        "trace.jsonl.2": ["a2"],
    }


async def test_without_earlier_files_a_full_one_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    async with opened(path, max_bytes=LINE_BYTES, keep=0) as sink:
        for number in range(3):
            sink.write(numbered(number))
    assert files(tmp_path) == {"trace.jsonl": ["a2"]}


async def test_a_file_moved_away_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    file = sink_module._TraceFile(path, 10**9, 3)
    file.append(b'{"ask_id": "a0"}\n')
    path.rename(tmp_path / "moved")
    file.append(b'{"ask_id": "a1"}\n')
    file.close()
    assert (ids(tmp_path / "moved"), ids(path)) == (["a0"], ["a1"])


async def test_a_path_that_cannot_be_written_is_told_once_and_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    async with opened(tmp_path / "file" / "trace.jsonl") as sink:
        for number in range(5):
            sink.write(numbered(number))
    assert sink.dropped == 5
    [told] = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert f"traces cannot be written to {tmp_path}/file/trace.jsonl" in told.getMessage()


async def test_a_full_disk_costs_records_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened(Path("/dev/full")) as sink:
        sink.write(RECORD)
        sink.write(RECORD)
    assert sink.dropped == 2
    assert len(caplog.records) == 1
    assert "No space left" in caplog.text


async def test_recovery_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    obstacle = tmp_path / "file"
    obstacle.write_text("in the way")
    file = sink_module._TraceFile(obstacle / "trace.jsonl", 10**9, 3)
    file.append(b"{}\n")
    obstacle.unlink()
    file.append(b"{}\n")
    file.append(b"{}\n")
    file.close()
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "1 records were lost" in caplog.text


async def test_a_record_that_is_no_json_data_is_told_once_and_costs_itself_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, user = tmp_path / "trace.jsonl", uuid4()
    odd = replace(RECORD, identity=Identity(user=user))  # type: ignore[arg-type]
    async with opened(path) as sink:
        for record in (numbered(0), odd, odd, numbered(1)):
            sink.write(record)
    assert (ids(path), sink.dropped) == (["a0", "a1"], 2)
    [told] = caplog.messages
    assert told.startswith("the trace of ask a1 is lost (TypeError: ")


async def test_a_disk_that_hangs_fills_the_queue_and_never_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hanging, reached = threading.Event(), queue.SimpleQueue[None]()

    def slow(record: AskRecord) -> dict[str, str]:
        reached.put(None)
        hanging.wait()
        return {"ask_id": record.ask_id}

    monkeypatch.setattr(sink_module, "record_to_json", slow)
    async with opened(tmp_path / "trace.jsonl", max_queued=2) as sink:
        sink.write(numbered(0))
        reached.get()
        for number in range(1, 6):
            sink.write(numbered(number))
        assert sink.dropped == 3
        assert caplog.messages == [
            "traces are lost: 2 wait for a slow disk; more like it are counted, not told"
        ]
        hanging.set()
    assert ids(tmp_path / "trace.jsonl") == ["a0", "a1", "a2"]


async def test_what_comes_after_closing_is_counted_as_dropped(tmp_path: Path) -> None:
    async with opened(tmp_path / "trace.jsonl") as sink:
        pass
    sink.write(RECORD)
    await sink.aclose()
    assert sink.dropped == 1


@pytest.mark.requirement("OPS-1a")
async def test_processes_that_share_a_trace_lose_nothing_when_it_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    sinks = [TraceSink(path, 4 * LINE_BYTES, 1_000) for _ in range(4)]
    numbers = range(120)
    for number in numbers:
        for at, sink in enumerate(sinks):
            sink.write(replace(RECORD, ask_id=f"a{at}_{number}"))
    for sink in sinks:
        await sink.aclose()
    assert [sink.dropped for sink in sinks] == [0, 0, 0, 0]
    written = sorted(each for names in files(tmp_path).values() for each in names)
    assert written == sorted(f"a{at}_{number}" for at in range(4) for number in numbers)


async def test_a_rotated_file_that_somebody_removes_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    async with opened(path, max_bytes=LINE_BYTES, keep=5) as sink:
        for number in range(3):
            sink.write(numbered(number))
    (tmp_path / "trace.jsonl.1").unlink()
    async with opened(path, max_bytes=LINE_BYTES, keep=5) as sink:
        sink.write(numbered(3))
    assert files(tmp_path) == {
        "trace.jsonl": ["a3"],
        "trace.jsonl.1": ["a2"],
        "trace.jsonl.3": ["a0"],
    }


@pytest.mark.requirement("REL-5")
async def test_a_link_in_the_state_folder_leads_to_no_other_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may write into the folder must not have another user's daemon write elsewhere."""
    state, other = tmp_path / "state", tmp_path / "other"
    state.mkdir()
    other.write_text("theirs\n")
    other.chmod(0o644)
    (state / "trace.jsonl").symlink_to(other)
    sink = TraceSink(state / "trace.jsonl", 10**9, 3, state_dir=state)
    sink.write(RECORD)
    await sink.aclose()
    assert (other.read_text(), stat.S_IMODE(other.stat().st_mode)) == ("theirs\n", 0o644)
    assert sink.dropped == 1
    assert (
        "trace.jsonl is a symbolic link, which is not followed in the state folder" in caplog.text
    )
    assert "remove it, or " in caplog.text


async def test_a_link_that_an_operator_named_outside_the_state_folder_is_followed(
    tmp_path: Path,
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "kept").mkdir()
    named = tmp_path / "trace.jsonl"
    named.symlink_to(tmp_path / "kept" / "mine.jsonl")
    (tmp_path / "kept" / "mine.jsonl").touch()
    sink = TraceSink(named, 10**9, 3, state_dir=tmp_path / "state")
    sink.write(RECORD)
    await sink.aclose()
    assert (ids(tmp_path / "kept" / "mine.jsonl"), sink.dropped) == ([RECORD.ask_id], 0)
