"""Lines are appended whole, over crashes, full disks and several processes."""

import json
import os
import stat
from pathlib import Path

import pytest

from session_runtime.audit import store as store_module
from session_runtime.audit.head import Head, HeadError
from session_runtime.config.durable import UnconfirmedError
from tests.audit.logs import files, kind_of_fault, numbers, store_in, verified, write


@pytest.mark.requirement("RTE-13")
def test_records_of_several_runs_make_one_chain(tmp_path: Path) -> None:
    write(tmp_path, [1, 2], [3])
    write(tmp_path, [4])
    report = verified(tmp_path)
    assert numbers(tmp_path) == [1, 2, 3, 4]
    assert (report.records, report.first, report.sequence, report.notes) == (5, 1, 5, ())
    lines = [json.loads(line) for line in files(tmp_path)[0].read_bytes().splitlines()]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5]
    assert report.head == lines[-1]["hash"]


def test_nobody_else_can_read_key_end_or_records(tmp_path: Path) -> None:
    write(tmp_path, [1])
    for path in (tmp_path / "audit.key", tmp_path / "audit.head", *files(tmp_path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_key_is_in_no_other_file(tmp_path: Path) -> None:
    write(tmp_path, [1])
    key = (tmp_path / "audit.key").read_bytes()
    assert all(key not in path.read_bytes() for path in (tmp_path / "audit.head", *files(tmp_path)))


@pytest.mark.requirement("RTE-13")
def test_the_chain_goes_on_in_the_next_file(tmp_path: Path) -> None:
    write(tmp_path, *([n] for n in range(10)), max_bytes=300)
    assert len(files(tmp_path)) > 2
    assert numbers(tmp_path) == list(range(10))
    assert verified(tmp_path).files == len(files(tmp_path))


def test_the_oldest_files_go_and_what_is_left_can_be_verified(tmp_path: Path) -> None:
    write(tmp_path, *([n] for n in range(20)), max_bytes=300, keep=2)
    assert len(files(tmp_path)) == 3
    report = verified(tmp_path)
    assert report.first > 1
    assert numbers(tmp_path)[-1] == 19


def test_a_line_that_a_crash_left_unfinished_is_told_and_the_chain_goes_on(tmp_path: Path) -> None:
    write(tmp_path, [1])
    with files(tmp_path)[0].open("ab") as file:
        file.write(b'{"seq":3,"n":2')
    assert verified(tmp_path).notes == (
        "000000000001.jsonl:3: the last line is unfinished, as after a crash or during a write",
    )
    write(tmp_path, [3])
    assert verified(tmp_path).notes == (
        "000000000001.jsonl:3: 15 bytes that a crash left unfinished",
    )


def test_what_was_written_before_a_crash_took_the_end_stays_in_the_chain(tmp_path: Path) -> None:
    write(tmp_path, [1], [2], max_bytes=1)
    before = (tmp_path / "audit.head").read_bytes()
    write(tmp_path, [3], [4], max_bytes=1)
    (tmp_path / "audit.head").write_bytes(before)
    assert verified(tmp_path).notes == ()
    write(tmp_path, [5])
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]
    assert verified(tmp_path).notes == ()


def test_a_log_whose_files_were_taken_away_goes_on_and_the_loss_stays_visible(
    tmp_path: Path,
) -> None:
    write(tmp_path, [1], [2])
    files(tmp_path)[0].unlink()
    write(tmp_path, [3])
    assert numbers(tmp_path) == [3]
    assert kind_of_fault(tmp_path) == "removed"


def test_another_folder_goes_on_with_the_chain_and_says_where_it_began(tmp_path: Path) -> None:
    write(tmp_path, [1])
    write(tmp_path, [2], folder=tmp_path / "other")
    report = verified(tmp_path)
    assert (report.first, report.sequence) == (3, 4)
    assert report.notes == (f"records before 3 are in {tmp_path / 'audit'}",)


@pytest.mark.requirement("RTE-13")
def test_lines_and_the_folder_of_a_new_file_are_on_the_disk_before_the_end_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    def write_head(folder: int, key: bytes, head: Head) -> None:
        synced.append(f"end {head.sequence}")
        really(folder, key, head)

    really = store_module.write_head
    write(tmp_path, [1])
    monkeypatch.setattr(store_module, "write_head", write_head)
    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path, [2])
    assert synced[:2] == ["000000000001.jsonl", "end 3"]
    synced.clear()
    write(tmp_path, [3], max_bytes=1)
    assert synced[:3] == ["000000000004.jsonl", "audit", "end 5"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [1])
    before = files(tmp_path)[0].read_bytes()

    def half(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "_write_all", half)
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path, [2])
    assert files(tmp_path)[0].read_bytes() == before
    write(tmp_path, [3])
    assert numbers(tmp_path) == [1, 3]
    assert verified(tmp_path).notes == ()


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("audit.key", "its key .* is gone: put it back, or move the folder away"),
        ("audit.head", "the end of the audit log, audit.head in .* is gone: put it back"),
    ],
)
def test_a_log_without_its_key_or_end_is_not_gone_on_with(
    tmp_path: Path, lost: str, told: str
) -> None:
    write(tmp_path, [1])
    (tmp_path / lost).unlink()
    with pytest.raises(HeadError, match=told):
        store_in(tmp_path).head()
    with pytest.raises(HeadError, match=told):
        write(tmp_path, [2])


def test_an_end_that_was_edited_is_not_believed(tmp_path: Path) -> None:
    write(tmp_path, [1])
    head = tmp_path / "audit.head"
    head.write_bytes(head.read_bytes().replace(b'"sequence":2', b'"sequence":1'))
    with pytest.raises(HeadError, match=r"was not written with this audit\.key"):
        store_in(tmp_path).head()


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert store_in(tmp_path / "state").head() is None
    assert list(tmp_path.iterdir()) == []


def test_a_begin_that_was_cut_off_before_the_key_was_written_is_begun_again(tmp_path: Path) -> None:
    write(tmp_path, [1])
    for path in (tmp_path / "audit.key", *files(tmp_path)):
        path.unlink()
    write(tmp_path, [2])
    assert numbers(tmp_path) == [2]
    assert verified(tmp_path).first == 1


def test_an_end_that_may_not_be_on_the_disk_yet_takes_no_line_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unconfirmed(folder: int, key: bytes, head: Head) -> None:
        really(folder, key, head)
        raise UnconfirmedError(5, "Input/output error")

    really = store_module.write_head
    monkeypatch.setattr(store_module, "write_head", unconfirmed)
    write(tmp_path, [1], [2])
    assert numbers(tmp_path) == [1, 2]
    verified(tmp_path)
