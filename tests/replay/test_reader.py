"""Trace files are read line by line, and what is no record is told and passed over."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime.errors import RequestError
from session_runtime.replay import Damaged, read_trace, record_from_json
from session_runtime.replay import reader as reader_module
from session_runtime.trace.record import (
    AgentRecord,
    AskRecord,
    RequestRecord,
    SearchRecord,
    ToolSearchRecord,
    TurnRecord,
    record_call,
    record_to_json,
)
from session_runtime.types import ErrorInfo, Identity, Principal, ToolResult, Usage

RAN = record_call(ToolResult("c1", "a.b", "ok", "text"), {"x": [1]}, counted=True)
SEARCHED = record_call(
    ToolResult("c2", "tool_search", "ok", "{}"),
    {"query": "q"},
    search=SearchRecord("q", ("a.b",), (), (), True, 3),
)
TURN = TurnRecord(1, "m", ("a.b",), 9, 1, 0.5, 0.25, Usage(3, 2, 1), "stop", (RAN, SEARCHED))
RECORD = AskRecord(
    ask_id="ask_1",
    started_at="2026-01-02T03:04:05+00:00",
    generation=2,
    config_digest="d",
    model="m",
    principal=Principal("bot"),
    identity=Identity("ann", frozenset({"staff"}), "web"),
    tool_search=ToolSearchRecord(True, "deferred", 4, 12),
    prefetch=(replace(RAN, counted=False, whole_chars=9_000),),
    confirmed=(RAN,),
    turns=(TURN,),
    outcome="limit",
    error=ErrorInfo("limit.steps", "no more"),
    usage=Usage(3, 2, 1),
    duration_s=1.5,
    daemon_s=0.25,
    tokens_full_list=40,
    tokens_exposed=21,
    agents=(AgentRecord("clerk", "c1", "answered", None, (TURN,)),),
    invoked=RAN,
    request=RequestRecord("m", True, Identity("bot"), (("a.b",),), ("c.d",), "a.b"),
)


@pytest.mark.requirement("OPS-2")
def test_what_was_written_is_read_again() -> None:
    written = json.loads(json.dumps(record_to_json(RECORD)))
    assert record_from_json(written) == RECORD


@pytest.mark.requirement("OPS-2")
def test_in_traces_of_earlier_versions_it_is_inferred_which_calls_counted() -> None:
    written = json.loads(json.dumps(record_to_json(RECORD)))
    del written["request"]
    for call in written["turns"][0]["calls"]:
        call.pop("counted", None)
    read = record_from_json(written)
    assert read.request is None
    assert [call.counted for call in read.turns[0].calls] == [True, False]


def test_damaged_lines_are_told_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    line = json.dumps(record_to_json(RECORD)).encode()
    wrong = line.replace(b'"limit"', b'"unheard"')
    path.write_bytes(b"\n".join([line[:99], line, b"\xff", b"", b"7", wrong]))
    read = [each.line if isinstance(each, Damaged) else each.ask_id for each in read_trace(path)]
    assert read == [1, "ask_1", 3, 5, 6]


def test_a_line_without_end_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"x" * (3 << 20) + b"\n" + json.dumps(record_to_json(RECORD)).encode())
    damaged, read = read_trace(path)
    assert damaged == Damaged(path, 1, "it is longer than 1 MiB")
    assert read == RECORD


@pytest.mark.requirement("OPS-2")
def test_no_more_than_a_line_is_held_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    line = json.dumps(record_to_json(replace(RECORD, config_digest="d" * 8_000))) + "\n"
    path.write_text(line * 1_000)
    tracemalloc.start()
    read = sum(1 for _ in read_trace(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read == 1_000
    assert peak < path.stat().st_size / 8


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read"):
        list(read_trace(tmp_path / "none.jsonl"))
