"""What somebody else put into the folder is found, and costs no record of the log's own."""

import os
import shutil
import tracemalloc
from pathlib import Path

import pytest

from session_runtime.audit import chain
from tests.audit.logs import fault, files, last_file, numbers, store_in, verified, write

FULL = {"max_bytes": 1, "keep": 3}
RECORD = b'{"seq":3,"event":"call","tool":"forged"}'


@pytest.mark.requirement("RTE-13")
@pytest.mark.parametrize("content", [b"", b"garbage\n"])
@pytest.mark.parametrize("first", [999_999_999_990, 12])
def test_files_of_somebody_else_make_no_file_go(tmp_path: Path, content: bytes, first: int) -> None:
    write(tmp_path, *([n] for n in range(6)), **FULL)
    for number in range(5):
        (tmp_path / "audit" / f"{first + number:012}.jsonl").write_bytes(content)
    write(tmp_path, [6], **FULL)
    assert numbers(tmp_path) == [3, 4, 5, 6]
    if content or first > 12:
        assert fault(tmp_path).kind == "edited"


@pytest.mark.requirement("RTE-13")
def test_the_oldest_files_still_go_beside_files_of_somebody_else(tmp_path: Path) -> None:
    strange = tmp_path / "audit" / "000000000000.jsonl"
    write(tmp_path, [0], **FULL)
    strange.write_bytes(b"garbage\n")
    write(tmp_path, *([n] for n in range(1, 9)), **FULL)
    assert numbers(tmp_path) == [5, 6, 7, 8]
    assert fault(tmp_path).file == strange.name
    strange.unlink()
    verified(tmp_path)


@pytest.mark.requirement("RTE-13")
@pytest.mark.parametrize(
    "added",
    [
        b"garbage",
        b"garbage\n",
        b"\n",
        RECORD,
        RECORD + b"\n",
        RECORD + b"x",
        b'{"seq":3,"event":"call"\n',
        b'{"seq":3,"event":"call"\n{"seq":3,"event":"call"',
        b'{"seq":4,"event":"call"',
    ],
)
def test_what_no_crash_leaves_is_a_fault_before_and_after_the_next_record(
    tmp_path: Path, added: bytes
) -> None:
    write(tmp_path, [1])
    with last_file(tmp_path).open("ab") as file:
        file.write(added)
    assert fault(tmp_path).line == 3
    store = store_in(tmp_path)
    store.append([{"n": 2}])
    assert numbers(tmp_path) == [1, 2]
    assert fault(tmp_path).line == 3
    assert (
        store.altered == f"{last_file(tmp_path).name} holds lines that were not written by this log"
    )


@pytest.mark.requirement("RTE-13")
def test_a_copied_record_at_the_end_is_a_fault(tmp_path: Path) -> None:
    write(tmp_path, [1], [2])
    file = last_file(tmp_path)
    file.write_bytes(file.read_bytes() + file.read_bytes().splitlines(keepends=True)[-1])
    write(tmp_path, [3])
    assert fault(tmp_path).kind == "reordered"


@pytest.mark.parametrize(
    "left",
    [
        b"{",
        b'{"seq":3,"n":"\xe4\xb8',
        b'{"seq":3,"n\0\0\0\0',
        b'{"seq":3,"n\n{"seq":3,"event":"recovered","torn',
    ],
)
def test_what_a_crash_leaves_is_none(tmp_path: Path, left: bytes) -> None:
    write(tmp_path, [1])
    with last_file(tmp_path).open("ab") as file:
        file.write(left)
    verified(tmp_path)
    store = store_in(tmp_path)
    store.append([{"n": 2}])
    assert store.altered == ""
    assert len(verified(tmp_path).notes) == 1


@pytest.mark.requirement("RTE-13")
def test_a_line_without_an_end_is_held_nowhere(tmp_path: Path) -> None:
    write(tmp_path, [1])
    with last_file(tmp_path).open("ab") as file:
        file.truncate(file.tell() + 64 * chain.LINE_BYTES)
    tracemalloc.start()
    try:
        assert fault(tmp_path).kind == "edited"
        write(tmp_path, [2])
        assert numbers(tmp_path) == [1, 2]
        assert fault(tmp_path).line == 3
        assert tracemalloc.get_traced_memory()[1] < 16 * chain.LINE_BYTES
    finally:
        tracemalloc.stop()


def test_a_record_that_no_line_can_hold_is_told_as_lost(tmp_path: Path) -> None:
    store_in(tmp_path).append([{"n": 1}, {"n": "x" * chain.LINE_BYTES}, {"n": 3}])
    assert numbers(tmp_path) == [1, 3]
    assert b'"event":"lost","records":1' in last_file(tmp_path).read_bytes()
    verified(tmp_path)


@pytest.mark.requirement("RTE-13")
@pytest.mark.parametrize("what", ["the folder and the end", "all", "one file"])
def test_a_log_that_was_put_back_under_a_running_process_is_told_for_good(
    tmp_path: Path, what: str
) -> None:
    state, before = tmp_path / "state", tmp_path / "before"
    store = store_in(state)
    store.append([{"n": 1}])
    shutil.copytree(state, before)
    known = store.append([{"n": 2}])
    if what == "all":
        shutil.rmtree(state)
    elif what == "one file":
        files(state)[0].unlink()
    else:
        shutil.copytree(before, state, dirs_exist_ok=True)
    store.append([{"n": 3}])
    assert store.altered == (
        f"record {known.sequence}:{known.hash} is not there any more: an earlier copy was put back, "
        "or the log was cut or taken away"
    )
    found = fault(state)
    assert found.kind == ("removed" if what == "one file" else "cut")
    store.append([{"n": 4}])
    assert numbers(state)[-2:] == [3, 4]


@pytest.mark.requirement("RTE-13")
def test_a_log_that_went_on_from_an_earlier_copy_is_told(tmp_path: Path) -> None:
    state, before = tmp_path / "state", tmp_path / "before"
    store = store_in(state)
    store.append([{"n": 1}])
    shutil.copytree(state, before)
    store.append([{"n": 2}])
    shutil.copytree(before, state, dirs_exist_ok=True)
    write(state, [3], [4], [5])  # another process, which knows nothing of it
    store.append([{"n": 6}])
    assert "is not there any more" in store.altered
    assert fault(state).message.startswith("record 3 was there once, and was not when record 6 was")


@pytest.mark.requirement("RTE-13")
def test_a_log_that_was_cut_while_nothing_ran_is_told_with_the_next_record(tmp_path: Path) -> None:
    write(tmp_path, [1], [2])
    with last_file(tmp_path).open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 10)
    store = store_in(tmp_path)
    store.head()
    store.append([{"n": 3}])
    assert "is not there any more" in store.altered


def test_files_that_another_process_did_not_keep_are_no_alteration(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.append([{"n": 1}])
    write(tmp_path, *([n] for n in range(9)), max_bytes=1, keep=1)
    store.append([{"n": 10}])
    assert store.altered == ""
    verified(tmp_path)


@pytest.mark.requirement("RTE-13")
def test_a_pipe_where_the_next_file_belongs_holds_up_nobody(tmp_path: Path) -> None:
    write(tmp_path, [1])
    os.mkfifo(tmp_path / "audit" / "000000000003.jsonl")
    with pytest.raises(OSError, match="No such device"):
        write(tmp_path, [2], max_bytes=1)
    assert numbers(tmp_path) == [1]
    verified(tmp_path)
