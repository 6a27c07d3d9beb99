"""Answers on the wire ``responses`` that are none: cut, failed, refused, nonsense."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_runtime.errors import PermanentError, SessionRuntimeError, TransientError
from session_runtime.models.faults import RefusedError
from tests.models.response_events import (
    NAMES,
    added,
    completed,
    done,
    gathered,
    piece,
    read,
    sse,
    text,
    whole,
)

BROKEN: dict[str, tuple[bytes, type[SessionRuntimeError], str]] = {
    "cut before the response": (sse(text("H")), TransientError, "model.broken_reply"),
    "an end mark without a response": (
        sse(text("H")) + b"data: [DONE]\n\n",
        TransientError,
        "model.broken_reply",
    ),
    "a failure without a reason": (
        sse({"type": "response.failed", "response": {"error": None}}),
        TransientError,
        "model.broken_reply",
    ),
    "a response that was cancelled": (
        json.dumps(completed(status="cancelled")["response"]).encode(),
        TransientError,
        "model.broken_reply",
    ),
    "a response that has only begun": (
        json.dumps(completed(status="queued")["response"]).encode(),
        TransientError,
        "model.broken_reply",
    ),
    "another API": (b'{"choices": []}', PermanentError, "model.not_an_api"),
}


def failed(code: str) -> bytes:
    error = {"code": code, "message": "sorry"}
    response = {"status": "failed", "error": error, "output": []}
    return sse({"type": "response.failed", "response": response})


for _code, _kind, _name in (
    ("rate_limit_exceeded", TransientError, "model.rate_limited"),
    ("server_error", TransientError, "model.unavailable"),
    ("vector_store_timeout", TransientError, "model.unavailable"),
    ("invalid_prompt", RefusedError, "model.refused"),
    ("insufficient_quota", PermanentError, "model.quota_exhausted"),
):
    BROKEN[f"failed with {_code}"] = (failed(_code), _kind, _name)


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize("fault", BROKEN)
def test_what_is_no_answer_is_classified(fault: str) -> None:
    body, kind, code = BROKEN[fault]
    with pytest.raises(SessionRuntimeError) as caught:
        read(body)
    assert (type(caught.value), caught.value.code) == (kind, code)


def test_a_refusal_behind_text_invites_no_other_attempt() -> None:
    with pytest.raises(PermanentError) as caught:
        read(sse(text("H")) + failed("invalid_prompt"))
    assert type(caught.value) is PermanentError


EVENTS = st.lists(
    st.dictionaries(
        st.sampled_from(["type", "item", "delta", "arguments", "output_index", "response"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5)
            | st.sampled_from(
                [event["type"] for event in (text(""), added(0), done(0), piece(0), whole(0))]
                + ["response.completed", "function_call", "message", "reasoning"]
            ),
            lambda inner: st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "id", "call_id", "name", "arguments", "output", "content", "status",
                     "incomplete_details", "reason", "phase", "summary", "usage", "store"]),
                inner,
                max_size=4,
            ),
            max_leaves=8,
        ),
    ),
    max_size=8,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(events=EVENTS)
def test_any_events_make_a_reply_or_a_fault_that_is_classified(events: list[Any]) -> None:
    try:
        assembly, _ = gathered(sse(*events, completed()))
        assembly.reply(NAMES, frozenset(), "origin")
        assembly.renamed(frozenset())
    except (TransientError, PermanentError):
        pass
