"""Whoever changes anything without the key is found out, with the first line that is wrong."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.audit.chain import Link
from session_runtime.audit.verify import verify
from tests.audit.logs import files, kind_of_fault, verified, write

RECORDS = 6
LINES = RECORDS + 1  # the file begins with a line of its own
LINE = st.integers(0, LINES - 1)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    state = tmp_path_factory.mktemp("state")
    write(state, range(RECORDS))
    return state


@contextmanager
def copied(log: Path) -> Iterator[tuple[Path, list[bytes]]]:
    """A copy of a log whose end still names the original's folder, so that the copy is put in its place."""
    with tempfile.TemporaryDirectory() as keep:
        shutil.copytree(log, Path(keep) / "state")
        [file] = files(log)
        try:
            yield file, file.read_bytes().splitlines(keepends=True)
        finally:
            shutil.copytree(Path(keep) / "state", log, dirs_exist_ok=True)


@pytest.mark.requirement("RTE-13")
@given(data=st.data())
def test_any_edit_of_any_byte_is_found(log: Path, data: st.DataObject) -> None:
    with copied(log) as (file, lines):
        number = data.draw(LINE)
        line = lines[number]
        at = data.draw(st.integers(0, len(line) - 1))
        byte = data.draw(st.integers(0, 255).filter(lambda value: value != line[at]))
        lines[number] = line[:at] + bytes([byte]) + line[at + 1 :]
        file.write_bytes(b"".join(lines))
        fault = verify(log).fault
        assert fault is not None
        assert (fault.file, fault.line) == (file.name, number + 1)


@pytest.mark.requirement("RTE-13")
@given(first=LINE, count=st.integers(1, LINES))
def test_any_removal_is_found(log: Path, first: int, count: int) -> None:
    with copied(log) as (file, lines):
        del lines[first : first + count]
        file.write_bytes(b"".join(lines))
        assert kind_of_fault(log) == ("removed" if first < len(lines) else "cut")


@pytest.mark.requirement("RTE-13")
@given(one=LINE, other=LINE)
def test_any_swap_is_found(log: Path, one: int, other: int) -> None:
    with copied(log) as (file, lines):
        lines[one], lines[other] = lines[other], lines[one]
        file.write_bytes(b"".join(lines))
        assert kind_of_fault(log) == (None if one == other else "reordered")


@pytest.mark.requirement("RTE-13")
@given(data=st.data())
def test_any_cut_is_found(log: Path, data: st.DataObject) -> None:
    with copied(log) as (file, lines):
        whole = b"".join(lines)
        file.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
        assert kind_of_fault(log) in ("cut", "edited")


@pytest.mark.requirement("RTE-13")
@given(at=st.integers(0, LINES), which=LINE)
def test_any_line_that_stands_twice_is_found(log: Path, at: int, which: int) -> None:
    with copied(log) as (file, lines):
        lines.insert(at, lines[which])
        file.write_bytes(b"".join(lines))
        assert kind_of_fault(log) == "reordered"


@given(
    at=st.integers(0, LINES),
    line=st.binary(min_size=1).map(lambda b: b.replace(b"\n", b"") + b"\n"),
)
def test_any_line_that_was_put_in_is_found(log: Path, at: int, line: bytes) -> None:
    with copied(log) as (file, lines):
        lines.insert(at, line)
        file.write_bytes(b"".join(lines))
        assert kind_of_fault(log) == "edited"


def test_the_fault_says_where_and_what(log: Path) -> None:
    with copied(log) as (file, lines):
        del lines[2:4]
        file.write_bytes(b"".join(lines))
        fault = verify(log).to_json()["fault"]
    assert fault == {
        "kind": "removed",
        "file": "000000000001.jsonl",
        "line": 3,
        "message": "records 3 to 4 are missing in front of record 5",
    }


def test_a_file_in_the_middle_or_at_the_beginning_that_is_gone_is_found(tmp_path: Path) -> None:
    for number in range(3):
        state = tmp_path / str(number)
        write(state, [1], [2], [3], max_bytes=1)
        files(state)[number].unlink()
        assert kind_of_fault(state) == ("cut" if number == 2 else "removed")


def test_a_log_that_was_put_back_to_an_earlier_time_is_found_by_a_line_that_was_known(
    tmp_path: Path,
) -> None:
    write(tmp_path / "now", [1])
    shutil.copytree(tmp_path / "now", tmp_path / "before")
    write(tmp_path / "now", [2])
    known = Link(3, verified(tmp_path / "now").head)
    assert verify(tmp_path / "now", known).fault is None
    shutil.rmtree(tmp_path / "now")
    shutil.move(tmp_path / "before", tmp_path / "now")
    assert verify(tmp_path / "now").fault is None  # nothing in it can tell
    fault = verify(tmp_path / "now", known).fault
    assert fault is not None
    assert fault.message == "the log ends after record 2, and record 3 was known"


@pytest.mark.requirement("RTE-13")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_known_line_that_is_another_one_is_a_fault_the_newest_too(
    tmp_path: Path, number: int
) -> None:
    write(tmp_path, [1, 2])
    fault = verify(tmp_path, Link(number, "0" * 64)).fault
    assert fault is not None
    assert fault.message == f"record {number} is another than is known of it"


def test_a_known_line_right_in_front_of_what_is_kept_is_compared_too(tmp_path: Path) -> None:
    write(tmp_path, *([n] for n in range(20)), max_bytes=300, keep=2)
    first = verified(tmp_path).first
    fault = verify(tmp_path, Link(first - 1, "0" * 64)).fault
    assert fault is not None
    assert fault.message == f"record {first - 1} is another than is known of it"


def test_what_a_crash_left_is_a_fault_once_it_was_edited(tmp_path: Path) -> None:
    write(tmp_path, [1])
    with files(tmp_path)[0].open("ab") as file:
        file.write(b'{"seq":3,"left')
    write(tmp_path, [2])
    verified(tmp_path)
    [path] = files(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"left", b"Left"))
    assert kind_of_fault(tmp_path) == "edited"


def test_without_a_log_there_is_nothing_to_verify(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no key of an audit log"):
        verify(tmp_path)
