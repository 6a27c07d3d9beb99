import pytest

from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskResult,
    AskStarted,
    ConfirmationRequired,
    ErrorInfo,
    Message,
    MessageSent,
    Notice,
    PendingCall,
    PrefetchFinished,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolsLoaded,
    ToolStarted,
    TurnStarted,
    Usage,
)
from session_runtime.wire import event_to_json, result_to_json

NO_USAGE = {
    "input_tokens": 0,
    "output_tokens": 0,
    "total_tokens": 0,
    "cached_tokens": 0,
    "reasoning_tokens": 0,
    "model_calls": 0,
    "estimated": False,
}
PENDING = PendingCall("t1", "mail.delete", {"id": 7}, "c1", 1_700_000_600.5)
PENDING_JSON = {
    "token": "t1",
    "tool": "mail.delete",
    "arguments": {"id": 7},
    "call_id": "c1",
    "expires_at": 1_700_000_600.5,
}


@pytest.mark.requirement("INT-2a")
def test_a_result_has_every_field() -> None:
    result = AskResult(
        ask_id="a1",
        outcome="limit",
        text="so far",
        messages=("one moment",),
        new_messages=(Message("user", "hi"), Message("assistant", "so far")),
        usage=Usage(10, 4, 6, 1, 2),
        steps=2,
        loaded_tools=("weather.now",),
        generation=3,
        error=ErrorInfo("limit.steps", "the limit is reached"),
    )
    assert result_to_json(result) == {
        "ask_id": "a1",
        "outcome": "limit",
        "text": "so far",
        "messages": ["one moment"],
        "new_messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "so far"},
        ],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 4,
            "total_tokens": 14,
            "cached_tokens": 6,
            "reasoning_tokens": 1,
            "model_calls": 2,
            "estimated": False,
        },
        "steps": 2,
        "loaded_tools": ["weather.now"],
        "generation": 3,
        "error": {"code": "limit.steps", "message": "the limit is reached", "retryable": False},
    }


def test_a_result_without_an_error_has_no_such_field() -> None:
    assert "error" not in result_to_json(AskResult("a1", "answered"))


@pytest.mark.requirement("INT-2b")
def test_a_result_says_what_waits_for_consent_if_anything_does() -> None:
    result = AskResult("a1", "needs_confirmation", pending=(PENDING,))
    assert result_to_json(result)["pending"] == [PENDING_JSON]
    assert "pending" not in result_to_json(AskResult("a1", "answered"))


@pytest.mark.requirement("INT-2b")
def test_a_result_says_if_the_last_reply_was_cut_off() -> None:
    whole = result_to_json(AskResult("a1", "answered", "Sun an"))
    assert result_to_json(AskResult("a1", "answered", "Sun an", cut_off="length")) == {
        **whole,
        "cut_off": "length",
    }


def test_a_known_wait_is_told() -> None:
    error = ErrorInfo("busy.capacity", "full", retryable=True, retry_after_s=2.5)
    assert result_to_json(AskResult("a", "failed", error=error))["error"] == {
        "code": "busy.capacity",
        "message": "full",
        "retryable": True,
        "retry_after_s": 2.5,
    }


@pytest.mark.requirement("INT-3a")
@pytest.mark.requirement("INT-3b")
@pytest.mark.parametrize(
    ("event", "body"),
    [
        (AskStarted(generation=1, model="m"), {"generation": 1, "model": "m"}),
        (
            PrefetchFinished(ok=("a",), failed={"b": "tool.timeout"}),
            {"ok": ["a"], "failed": {"b": "tool.timeout"}},
        ),
        (
            TurnStarted(step=1, exposed=("a.b",), model="fast", attempt=2),
            {"step": 1, "exposed": ["a.b"], "model": "fast", "attempt": 2},
        ),
        (TextDelta(text="hel"), {"text": "hel"}),
        (ToolsLoaded(names=("a.b", "c")), {"names": ["a.b", "c"]}),
        (
            ToolStarted(call_id="c1", name="a.b", arguments={"x": 1}),
            {"call_id": "c1", "name": "a.b", "arguments": {"x": 1}},
        ),
        (
            ToolProgress(call_id="c1", done=1.0, total=None, message="half"),
            {"call_id": "c1", "done": 1.0, "total": None, "message": "half"},
        ),
        (
            ToolFinished(call_id="c1", name="a.b", status="ok"),
            {"call_id": "c1", "name": "a.b", "status": "ok"},
        ),
        (
            ToolFinished(call_id="c1", name="a.b", status="error", error_code="tool.timeout"),
            {"call_id": "c1", "name": "a.b", "status": "error", "error_code": "tool.timeout"},
        ),
        (ConfirmationRequired(pending=PENDING), PENDING_JSON),
        (Notice(text="calling a"), {"text": "calling a"}),
        (MessageSent(text="one moment"), {"text": "one moment"}),
        (
            AskFinished(result=AskResult("a1", "answered", "done")),
            {
                "result": {
                    "ask_id": "a1",
                    "outcome": "answered",
                    "text": "done",
                    "messages": [],
                    "new_messages": [],
                    "usage": NO_USAGE,
                    "steps": 0,
                    "loaded_tools": [],
                    "generation": 0,
                }
            },
        ),
    ],
    ids=lambda value: value.type if not isinstance(value, dict) else "",
)
def test_an_event_is_its_type_ask_number_and_fields(
    event: AskEvent, body: dict[str, object]
) -> None:
    assert event_to_json(event) == {"type": event.type, "ask_id": "", "seq": 0, **body}


def test_an_event_tells_how_many_were_lost_before_it() -> None:
    event = TextDelta(ask_id="a1", seq=9, text="x")
    assert event_to_json(event, lost=4) == {
        "type": "text.delta",
        "ask_id": "a1",
        "seq": 9,
        "text": "x",
        "lost": 4,
    }
