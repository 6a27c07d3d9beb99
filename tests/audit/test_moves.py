"""A log whose folder was changed, back and forth, verifies where it is, and tells what is elsewhere."""

from pathlib import Path

import pytest

from session_runtime.audit.store import MOST_LEFT
from tests.audit.logs import fault, files, numbers, store_in, verified, write


def there_and_back(state: Path) -> None:
    """Records 1 to 4 in the own folder, 5 and 6 elsewhere, 7 and 8 in the own folder again."""
    write(state, [1, 2], [3])
    write(state, [10], folder=state / "other")
    write(state, [20])


@pytest.mark.requirement("RTE-13")
def test_a_folder_that_is_come_back_to_verifies_as_a_whole(tmp_path: Path) -> None:
    there_and_back(tmp_path)
    report = verified(tmp_path)
    assert (report.first, report.sequence, report.records) == (1, 8, 6)
    assert report.notes == (
        f"records 5 to 6 are elsewhere, the last of them in {tmp_path / 'other'}",
    )
    assert numbers(tmp_path) == [1, 2, 3, 20]


@pytest.mark.requirement("RTE-13")
def test_it_may_be_left_any_number_of_times(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, [number])
        write(tmp_path, [10], folder=tmp_path / "other")
        write(tmp_path, [20], folder=tmp_path / "third")
    write(tmp_path, [9])
    assert numbers(tmp_path) == [0, 1, 2, 3, 9]
    assert len(verified(tmp_path).notes) == 4


@pytest.mark.requirement("RTE-13")
def test_what_was_taken_from_a_folder_meanwhile_is_missing(tmp_path: Path) -> None:
    write(tmp_path, [1], [2], [3], max_bytes=1)
    write(tmp_path, [10], folder=tmp_path / "other")
    files(tmp_path)[-1].unlink()
    write(tmp_path, [20])
    assert fault(tmp_path).kind == "removed"


@pytest.mark.requirement("RTE-13")
def test_the_oldest_file_that_was_taken_meanwhile_is_missing(tmp_path: Path) -> None:
    write(tmp_path, [1], [2], [3], max_bytes=1)
    write(tmp_path, [10], folder=tmp_path / "other")
    files(tmp_path)[0].unlink()
    write(tmp_path, [20])
    assert fault(tmp_path).kind == "removed"


@pytest.mark.requirement("RTE-13")
def test_a_line_that_was_cut_off_meanwhile_is_missing(tmp_path: Path) -> None:
    write(tmp_path, [1], [2])
    write(tmp_path, [10], folder=tmp_path / "other")
    [file] = files(tmp_path)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    write(tmp_path, [20])
    assert fault(tmp_path).kind == "removed"


def test_what_a_crash_left_in_the_folder_that_was_left_is_told(tmp_path: Path) -> None:
    write(tmp_path, [1])
    [file] = files(tmp_path)
    with file.open("ab") as more:
        more.write(b'{"seq":3,"n')
    write(tmp_path, [10], folder=tmp_path / "other")
    write(tmp_path, [20])
    assert verified(tmp_path).notes == (
        f"{file.name}:3: 11 bytes that a crash left unfinished",
        f"records 3 to 4 are elsewhere, the last of them in {tmp_path / 'other'}",
    )
    with file.open("ab") as more:
        more.write(b"x")
    assert fault(tmp_path).kind == "edited"


def test_what_was_written_before_a_crash_took_the_end_is_not_written_twice(tmp_path: Path) -> None:
    write(tmp_path, [1])
    before = (tmp_path / "audit.head").read_bytes()
    write(tmp_path, [2])
    (tmp_path / "audit.head").write_bytes(before)
    write(tmp_path, [10], folder=tmp_path / "other")
    assert verified(tmp_path).first == 4
    write(tmp_path, [20])
    assert numbers(tmp_path) == [1, 2, 20]
    verified(tmp_path)


def test_the_files_may_move_along(tmp_path: Path) -> None:
    write(tmp_path, [1])
    (tmp_path / "audit").rename(tmp_path / "other")
    write(tmp_path, [2], folder=tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "audit")
    write(tmp_path, [3])
    assert numbers(tmp_path) == [1, 2, 3]
    assert verified(tmp_path).notes == ()


def test_old_files_of_a_folder_that_is_come_back_to_are_kept_as_many_as_ever(
    tmp_path: Path,
) -> None:
    write(tmp_path, [1], [2], [3], max_bytes=1, keep=2)
    write(tmp_path, [10], folder=tmp_path / "other")
    write(tmp_path, [20], max_bytes=1, keep=2)
    assert numbers(tmp_path) == [2, 3, 20]
    verified(tmp_path)


def test_an_end_of_before_folders_were_remembered_can_be_gone_on_with(tmp_path: Path) -> None:
    write(tmp_path, [1])
    assert b'"left"' not in (tmp_path / "audit.head").read_bytes()
    assert store_in(tmp_path).head() is not None


@pytest.mark.requirement("RTE-13")
def test_a_folder_that_was_left_too_long_ago_to_be_proved_is_told_and_no_fault(
    tmp_path: Path,
) -> None:
    come_back_after(tmp_path, MOST_LEFT + 1)
    report = verified(tmp_path)
    last = tmp_path / f"other{MOST_LEFT}"
    assert report.notes == (
        f"records 3 to {2 * MOST_LEFT + 4} are elsewhere, the last of them in {last}; that no record before"
        " them is missing here cannot be proved, as the log was in too many other folders since",
    )
    assert numbers(tmp_path) == [1, 20]
    write(tmp_path, [10], folder=tmp_path / "other")
    [*_, file] = files(tmp_path)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    write(tmp_path, [30])
    assert fault(tmp_path).kind == "removed"


def test_what_a_crash_left_in_a_folder_that_cannot_be_proved_is_told_too(tmp_path: Path) -> None:
    write(tmp_path, [1])
    [file] = files(tmp_path)
    with file.open("ab") as more:
        more.write(b'{"seq":3,"n')
    come_back_after(tmp_path, MOST_LEFT + 1)
    assert verified(tmp_path).notes[0] == f"{file.name}:3: 11 bytes that a crash left unfinished"
    file.write_bytes(file.read_bytes() + b"\nmore than a crash leaves\n")
    assert fault(tmp_path).kind == "edited"


@pytest.mark.requirement("RTE-13")
def test_as_many_folders_as_are_remembered_are_proved(tmp_path: Path) -> None:
    come_back_after(tmp_path, MOST_LEFT)
    assert "cannot be proved" not in verified(tmp_path).notes[0]


def come_back_after(state: Path, folders: int) -> None:
    """Write in the own folder, if it is empty, in so many others, and in the own one again."""
    if not (state / "audit").exists():
        write(state, [1])
    for number in range(folders):
        write(state, [10], folder=state / f"other{number}")
    write(state, [20])
