"""Traces are read back as they were written, from all files, whatever else is in them."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from session_runtime.trace import lines
from session_runtime.trace.reading import Traced, Traces, record_from_json
from session_runtime.trace.record import record_to_json
from tests.trace.traced import RECORD, line, named, write

pytestmark = pytest.mark.requirement("OPS-1a")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 61)


def ids(found: Iterable[Traced]) -> list[str]:
    return [each.record.ask_id for each in found]


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    """Six asks in three files, of which the third is numbered as if one had been removed."""
    path = tmp_path / "t.jsonl"
    write(path, 5, 6)
    write(tmp_path / "t.jsonl.1", 3, 4)
    write(tmp_path / "t.jsonl.3", 1, 2)
    write(tmp_path / "t.jsonl.old", 9)
    return Traces(path)


def test_a_record_is_read_as_it_was_written() -> None:
    data = record_to_json(RECORD)
    assert record_to_json(record_from_json(json.loads(line(RECORD)))) == data
    assert record_from_json(data) == RECORD


def test_fields_of_another_version_do_no_harm() -> None:
    data = json.loads(line(RECORD))
    data["new"] = data["turns"][0]["new"] = {"x": 1}
    del data["turns"][0]["at_s"], data["agents"]
    read = record_from_json(data)
    assert (read.turns[0].at_s, read.agents) == (0.0, ())


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("ask_id", 1, "ask_id is no str"),
        ("usage", [], "usage is no object"),
        ("turns", {}, "turns is no list"),
        ("turns", [{"step": True}], r"turns\[\].step is no int"),
        ("outcome", "won", "outcome is 'won', none of its values"),
    ],
)
def test_what_is_no_record_is_refused_with_its_place(field: str, value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        record_from_json({**record_to_json(RECORD), field: value})
    without = {name: held for name, held in record_to_json(RECORD).items() if name != "model"}
    with pytest.raises(ValueError, match="model is missing"):
        record_from_json(without)


def test_all_files_are_one_trace_in_both_directions(traces: Traces) -> None:
    in_order = [f"ask_{number:02}" for number in range(1, 7)]
    assert ids(traces.oldest_first()) == in_order
    assert ids(traces.newest_first()) == in_order[::-1]
    assert ids(traces.last(3)) == in_order[3:]
    assert ids(traces.last(99)) == in_order


def test_one_ask_is_found_in_any_file_and_no_other_is_taken_for_it(traces: Traces) -> None:
    for number in range(1, 7):
        found = traces.find(f"ask_{number:02}")
        assert found is not None
        assert found.record == named(number)
    assert (traces.find("ask_0"), traces.find("ask_09"), traces.find("")) == (None, None, None)


def test_an_ask_is_found_wherever_a_block_ends(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in range(20, 60):
        monkeypatch.setattr(lines, "BLOCK_BYTES", size)
        found = traces.find("ask_04")
        assert found is not None
        assert ids(traces.newest_first())[0] == "ask_06"


def test_an_id_that_stands_inside_of_another_ask_is_not_that_ask(tmp_path: Path) -> None:
    text = line(named(1)).replace(b'"city":"Berlin"', b'"ask_id":"ask_02"')
    (tmp_path / "t").write_bytes(text)
    assert Traces(tmp_path / "t").find("ask_02") is None


def test_ids_like_an_unknown_one_are_told(traces: Traces) -> None:
    assert traces.near("ask_", 2) == ["ask_06", "ask_05"]
    assert traces.near("ask_033", 1) == ["ask_03"]
    assert traces.near("nothing like it") == []


def test_damaged_lines_are_counted_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = b'{"ask_id":"long","' + b"x" * 8_000 + b'"}\n'
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 6_000)
    wrong = (
        b"\xff\xfe\n",
        b"{}\n",
        b'{"ask_id":"a"\n',
        b"[" * 5_000 + b"\n",
        b'{"n":NaN}\n',
        b"\n",
    )
    (tmp_path / "t").write_bytes(b"".join([line(named(1)), *wrong, long, line(named(2))]))
    for read in (Traces.oldest_first, Traces.newest_first):
        traces = Traces(tmp_path / "t")
        assert sorted(ids(read(traces))) == ["ask_01", "ask_02"]
        assert traces.damaged == 6


def test_a_line_that_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    half = line(named(2))[:-20]
    (tmp_path / "t").write_bytes(line(named(1)) + half)
    traces = Traces(tmp_path / "t")
    assert ids(traces.oldest_first()) == ids(traces.newest_first()) == ["ask_01"]
    assert (traces.find("ask_02"), traces.damaged) == (None, 1)


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t")
    assert [*Traces(tmp_path / "t").oldest_first()] == []
    assert not Traces(tmp_path / "none" / "t").exists()


def test_asks_are_followed_across_rotations(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write(path, 1)
    with Traces(path).growing() as growing:
        assert ids(growing.new()) == []
        append(path, line(named(2))[:50])
        assert ids(growing.new()) == []
        append(path, line(named(2))[50:] + line(named(3)))
        rotate(path)
        write(path, 4)
        rotate(path)
        write(path, 5)
        assert ids(growing.new()) == ["ask_02", "ask_03", "ask_04", "ask_05"]
        assert ids(growing.new()) == []
        path.write_bytes(b"")
        assert ids(growing.new()) == []
        append(path, line(named(6)))
        assert ids(growing.new()) == ["ask_06"]


def test_asks_are_followed_into_a_file_that_comes_later(tmp_path: Path) -> None:
    with Traces(tmp_path / "t").growing() as growing:
        assert ids(growing.new()) == []
        write(tmp_path / "t", 1)
        assert ids(growing.new()) == ["ask_01"]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def rotate(path: Path) -> None:
    if (earlier := path.with_name(f"{path.name}.1")).exists():
        earlier.replace(path.with_name(f"{path.name}.2"))
    path.replace(earlier)
