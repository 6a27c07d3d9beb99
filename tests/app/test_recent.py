"""The asks that ended last are remembered within bounds (OPS-3)."""

from typing import Any

import pytest

from session_runtime.app.recent import KEPT, LONGEST_ARGUMENTS, TOO_LONG, RecentAsks
from session_runtime.errors import RequestError
from session_runtime.trace.record import AskRecord, CallRecord, ToolSearchRecord, TurnRecord
from session_runtime.types import LOCAL, ErrorInfo, Identity, Usage

pytestmark = pytest.mark.requirement("OPS-3")


def record_of(number: int, arguments: object = None, error: ErrorInfo | None = None) -> AskRecord:
    call = CallRecord("c", "a.b", arguments, "ok", None, "0", 1, 1, 0.1)
    turn = TurnRecord(1, "m", ("a.b",), 10, 1, 0.2, 0.1, Usage(), "stop", (call,))
    return AskRecord(
        ask_id=f"ask_{number}",
        started_at="2026-01-01T00:00:00+00:00",
        generation=1,
        config_digest="d",
        model="m",
        principal=LOCAL,
        identity=Identity("u"),
        tool_search=ToolSearchRecord(False, "off"),
        prefetch=(),
        confirmed=(),
        turns=(turn,),
        outcome="answered" if error is None else "failed",
        error=error,
        usage=Usage(3, 2),
        duration_s=0.5,
        daemon_s=0.2,
        tokens_full_list=20,
        tokens_exposed=15,
    )


def arguments_of(recent: RecentAsks, ask_id: str) -> Any:
    return recent.one(ask_id)["turns"][0]["calls"][0]["arguments"]


def test_an_ask_is_told_in_a_few_words() -> None:
    recent = RecentAsks()
    recent.add(record_of(1))
    recent.add(record_of(2, error=ErrorInfo("model.gone", "Bearer sr_" + "x" * 43)))
    assert recent.newest(1) == [
        {
            "ask_id": "ask_2",
            "started_at": "2026-01-01T00:00:00+00:00",
            "generation": 1,
            "model": "m",
            "principal": "local",
            "user": "u",
            "outcome": "failed",
            "error_code": "model.gone",
            "error": recent.one("ask_2")["error"]["message"],
            "duration_s": 0.5,
            "daemon_s": 0.2,
            "steps": 1,
            "tool_calls": 1,
            "tokens": 5,
            "tokens_saved": 5,
        }
    ]
    assert "x" * 43 not in recent.newest(1)[0]["error"]


def test_the_oldest_of_many_is_forgotten() -> None:
    recent = RecentAsks()
    for number in range(KEPT + 1):
        recent.add(record_of(number))
    with pytest.raises(RequestError) as caught:
        recent.one("ask_0")
    assert caught.value.code == "request.unknown_ask"
    assert [each["ask_id"] for each in recent.newest(2)] == [f"ask_{KEPT}", f"ask_{KEPT - 1}"]
    assert len(recent.newest(KEPT + 1)) == KEPT


@pytest.mark.parametrize(
    "long",
    [
        {"a": "x" * LONGEST_ARGUMENTS},
        {"a": [0] * LONGEST_ARGUMENTS},
        {f"name {number}": None for number in range(LONGEST_ARGUMENTS)},
        {"a": [["x" * 100] * 9] * 9},
    ],
)
def test_arguments_that_would_fill_the_memory_are_left_to_the_trace(long: object) -> None:
    recent = RecentAsks()
    recent.add(record_of(1, long))
    recent.add(record_of(2, {"a": ["b", 1, None]}))
    assert arguments_of(recent, "ask_1") == TOO_LONG
    assert arguments_of(recent, "ask_2") == {"a": ["b", 1, None]}
