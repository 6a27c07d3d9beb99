"""Traces are read back as they were written, from all files, whatever else is in them."""

import json
import os
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime.errors import RequestError
from session_runtime.trace import lines, reading
from session_runtime.trace.reading import MAX_TOLD, Damaged, Traced, Traces, record_from_json
from session_runtime.trace.record import record_to_json
from session_runtime.trace.traceparent import AskTrace
from tests.trace.traced import NESTED, RECORD, line, named, write

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
    traced = replace(RECORD, trace=AskTrace("a" * 32, "b" * 16, True, False, "s=1"))
    for record in (RECORD, traced):
        assert record_from_json(json.loads(line(record))) == record


def test_fields_of_another_version_do_no_harm() -> None:
    data = json.loads(line(RECORD))
    data["new"] = data["turns"][0]["new"] = {"x": 1}
    del data["turns"][0]["at_s"], data["agents"]
    read = record_from_json(data)
    assert (read.turns[0].at_s, read.agents) == (0.0, ())


@pytest.mark.requirement("OPS-2")
def test_in_traces_of_earlier_versions_it_is_inferred_which_calls_counted() -> None:
    data = json.loads(line(RECORD))
    del data["request"], data["confirmed"]
    for call in data["turns"][0]["calls"]:
        call.pop("counted", None)
    read = record_from_json(data)
    assert (read.request, read.confirmed) == (None, ())
    assert [call.counted for call in read.turns[0].calls] == [False, True]
    assert [call.counted for call in read.agents[0].turns[0].calls] == [True]
    assert read.invoked == replace(NESTED, counted=True)
    data["invoked"]["error_code"] = "tool.not_loaded"
    assert record_from_json(data).invoked == replace(NESTED, error_code="tool.not_loaded")


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("ask_id", 1, "ask_id is no str"),
        ("usage", [], "usage is no object"),
        ("turns", {}, "turns is no list"),
        ("turns", [{"step": True}], r"turns\[\].step is no int"),
        ("duration_s", 10**400, "duration_s is no number"),
        ("generation", 10**20, "generation is larger than anything"),
        ("duration_s", float("inf"), "duration_s is no number"),
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
        assert isinstance(found, Traced)
        assert found.record == named(number)
    assert (traces.find("ask_0"), traces.find("ask_09"), traces.find("")) == (None, None, None)


def test_an_ask_is_found_wherever_a_block_ends(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in range(20, 60):
        monkeypatch.setattr(lines, "BLOCK_BYTES", size)
        found = traces.find("ask_04")
        assert isinstance(found, Traced)
        assert ids(traces.newest_first())[0] == "ask_06"


def test_an_id_that_stands_inside_of_another_ask_is_not_that_ask(tmp_path: Path) -> None:
    text = line(named(1)).replace(b'"city":"Berlin"', b'"ask_id":"ask_02"')
    (tmp_path / "t").write_bytes(text)
    assert Traces(tmp_path / "t").find("ask_02") is None


def test_ids_like_an_unknown_one_are_told(traces: Traces) -> None:
    assert traces.near("ask_", 2) == ["ask_06", "ask_05"]
    assert traces.near("ask_033", 1) == ["ask_03"]
    assert traces.near("nothing like it") == []


@pytest.mark.parametrize("read", [Traces.oldest_first, Traces.newest_first])
def test_damaged_lines_are_skipped_and_told_with_number_and_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Traces], Iterable[Traced]]
) -> None:
    for module in (lines, reading):
        monkeypatch.setattr(module, "MAX_LINE_BYTES", 6_000)
    path, earlier = tmp_path / "t", tmp_path / "t.1"
    long = b'{"ask_id":"long","' + b"x" * 8_000 + b'"}\n'
    path.write_bytes(b"".join([line(named(2)), b"\n", long, b"a\xff\n", line(named(3))]))
    earlier.write_bytes(b'{}\n{"n":NaN}\n' + line(named(1)) + b"[" * 5_000)
    traces = Traces(path)
    assert sorted(ids(read(traces))) == ["ask_01", "ask_02", "ask_03"]
    none = "it is no record of an ask: "
    assert traces.damaged == 5
    assert {(each.path, each.line): each.reason for each in traces.told} == {
        (earlier, 1): f"{none}ask_id is missing",
        (earlier, 2): f"{none}NaN is no number of JSON",
        (earlier, 4): f"{none}it is nested too deeply",
        (path, 3): f"{none}it has more than 6000 bytes",
        (path, 4): "it is not UTF-8 at byte 1",
    }


def test_of_many_damaged_lines_the_first_are_told_and_all_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"7\n" * (MAX_TOLD + 2))
    traces = Traces(path)
    assert ids(traces.oldest_first()) == []
    assert traces.damaged == MAX_TOLD + 2
    reason = "it is no record of an ask: the line is no object"
    assert traces.told == [Damaged(path, number, reason) for number in range(1, MAX_TOLD + 1)]


def test_a_last_line_without_end_is_a_record_if_it_is_whole(tmp_path: Path) -> None:
    path, whole = tmp_path / "t", line(named(2))[:-1]
    path.write_bytes(line(named(1)) + whole)
    traces = Traces(path)
    assert ids(traces.oldest_first()) == ids(traces.newest_first())[::-1] == ["ask_01", "ask_02"]
    path.write_bytes(line(named(1)) + whole[:-20])
    assert ids(traces.oldest_first()) == ids(traces.newest_first()) == ["ask_01"]
    assert isinstance(traces.find("ask_02"), Damaged)
    assert traces.damaged == 3
    assert {each.line for each in traces.told} == {2}


@pytest.mark.requirement("OPS-2")
def test_no_more_than_a_line_is_held_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64 * 1024)
    path = tmp_path / "t"
    path.write_bytes(line(replace(RECORD, config_digest="d" * 8_000)) * 500)
    for read in (Traces.oldest_first, Traces.newest_first):
        tracemalloc.start()
        count = sum(1 for _ in read(Traces(path)))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count == 500
        assert peak < path.stat().st_size / 8


def test_a_trace_that_cannot_be_read_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "t"
    with pytest.raises(RequestError, match="file/t cannot be read: Not a directory"):
        [*Traces(path).oldest_first()]
    with pytest.raises(RequestError, match="cannot be read"), Traces(path).growing():
        pass


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


def test_an_ask_that_is_being_written_when_following_begins_is_followed(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(line(named(1)) + line(named(2))[:50])
    traces = Traces(tmp_path / "t")
    with traces.growing() as growing:
        append(tmp_path / "t", line(named(2))[50:])
        assert ids(growing.new()) == ["ask_02"]
    assert traces.damaged == 0


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


@pytest.mark.parametrize("number", [f"1{'0' * 400}", "1e999", "-1e999"])
def test_a_number_that_is_too_large_damages_its_line_alone(tmp_path: Path, number: str) -> None:
    path = tmp_path / "t.jsonl"
    for field in ("duration_s", "of_another_version"):
        large = line(named(2)).replace(b'{"ask_id"', f'{{"{field}":{number},"ask_id"'.encode())
        large = large.replace(b'"duration_s":1.5,', b"") if field == "duration_s" else large
        path.write_bytes(line(named(1)) + large + line(named(3)))
        traces = Traces(path)
        whole = field != "duration_s" and "e" not in number
        assert ids(traces.oldest_first()) == ["ask_01", *["ask_02"] * whole, "ask_03"]
        assert traces.damaged == (not whole)


def test_an_ask_whose_last_line_is_damaged_is_found_in_one_before(tmp_path: Path) -> None:
    path = tmp_path / "t"
    damaged = line(named(1)).replace(b'"outcome":"failed"', b'"outcome":"won"')
    path.write_bytes(line(named(1)) + damaged + line(named(2)))
    found = Traces(path).find("ask_01")
    assert isinstance(found, Traced)
    assert found.record == named(1)


def test_of_an_ask_of_which_no_line_is_whole_it_is_told_where_and_why(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"7\n" + line(named(2)) + b'{"ask_id":"ask_01"}\n{"ask_id":"ask_01",\n')
    assert Traces(path).find("ask_01") == Damaged(
        path,
        4,
        "it is no record of an ask: Expecting property name enclosed in double quotes at"
        " character 20",
    )
    assert Traces(path).near("ask_0") == ["ask_01", "ask_02"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"ask_id":', b'{"ask_id": '),
        (b'{"ask_id":', b'\xef\xbb\xbf{"ask_id":'),
        (b'{"ask_id":', b'{"new": 1, "ask_id" : '),
    ],
    ids=["spaces", "a byte order mark", "another order"],
)
def test_an_ask_is_found_in_a_copy_that_was_written_otherwise(
    tmp_path: Path, old: bytes, new: bytes
) -> None:
    path = tmp_path / "t"
    path.write_bytes(line(named(1)).replace(old, new, 1) + line(named(12)).replace(old, new, 1))
    for number in (1, 12):
        found = Traces(path).find(f"ask_{number:02}")
        assert isinstance(found, Traced)
        assert found.record == named(number)
    assert Traces(path).find("ask_1") is None
