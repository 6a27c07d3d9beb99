"""Records that tests write to a trace, as the daemon would."""

from dataclasses import replace
from pathlib import Path

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
from session_runtime.wire import to_bytes

FOUND = SearchRecord("rain", ("weather.now",), ("clock.now",), ("tide",), True, 3)
SEARCH = record_call(ToolResult("c1", "tool_search", "ok", "{}"), None, search=FOUND)
REPAIRED = record_call(
    ToolResult("c2", "weather.now", "error", "no\nstation", "tool.failed", 2, 0.25, 900),
    {"city": "Berlin"},
    repairs=("trailing comma",),
    counted=True,
)
NESTED = record_call(ToolResult("c2", "helper.sub", "ok", "done", latency_s=0.3), None)
USED = Usage(100, 20, 60, 5, 1)
TURN = TurnRecord(
    1,
    "fast",
    ("tool_search", "clock.now"),
    90,
    1,
    0.5,
    0.25,
    USED,
    "tool_calls",
    (SEARCH, REPAIRED),
    0.01,
)
INNER = TurnRecord(1, "fast", ("a.b",), 10, 2, 0.1, 0.3, USED, "stop", (NESTED,), 0.6)
RECORD = AskRecord(
    ask_id="ask_00",
    started_at="2026-01-02T03:04:05+00:00",
    generation=3,
    config_digest="d1",
    model="fast",
    principal=Principal("bot"),
    identity=Identity("u1", frozenset({"b", "a"}), "web"),
    tool_search=ToolSearchRecord(True, "deferred", 40, 120),
    prefetch=(record_call(ToolResult("p", "clock.now", "ok", "12:00"), {}),),
    confirmed=(),
    turns=(TURN, replace(TURN, step=2, exposed=(*TURN.exposed, "weather.now"), calls=())),
    outcome="failed",
    error=ErrorInfo("model.overloaded", "503", True, 2.0),
    usage=Usage(300, 60, 180, 15, 3),
    duration_s=1.5,
    daemon_s=0.004,
    tokens_full_list=4_000,
    tokens_exposed=700,
    agents=(
        AgentRecord("helper", "c2", "answered", None, (INNER,)),
        AgentRecord("helper/sub", "c2/c2", "limit", "limit.steps", ()),
    ),
    invoked=NESTED,
    request=RequestRecord("fast", True, Identity("bot"), (("a.b",),), ("c.d",), "a.b"),
)


def named(number: int) -> AskRecord:
    return replace(RECORD, ask_id=f"ask_{number:02}")


def line(record: AskRecord) -> bytes:
    return to_bytes(record_to_json(record)) + b"\n"


def write(path: Path, *numbers: int) -> None:
    """Write the records of these numbers as a file of their own."""
    path.write_bytes(b"".join(line(named(number)) for number in numbers))
