"""The JSON of tools that are called by their names, and of requests as a client writes them (NET-1)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.direct import Called, DirectCall
from session_runtime.errors import RequestError
from session_runtime.types import AskRequest, AskResult, ErrorInfo, Identity, PendingCall
from session_runtime.wire import (
    callback_from_json,
    invoke_from_json,
    invoked_to_json,
    parse_json,
    request_from_json,
    request_to_json,
    result_to_json,
    to_bytes,
)
from tests.wire.test_incoming import MESSAGES

NAME = st.text(min_size=1, max_size=12).filter(lambda text: text.strip() != "")
MAYBE = st.none() | NAME
TOKENS = st.lists(NAME, max_size=3).map(tuple)
LIST = st.lists(MESSAGES, max_size=2).map(tuple)
WHO = st.builds(Identity, MAYBE, st.none() | st.frozensets(NAME, max_size=2), MAYBE, MAYBE)
REQUESTS = st.builds(
    AskRequest,
    text=NAME,
    history=LIST,
    instructions=MAYBE,
    identity=WHO,
    conversation=MAYBE,
    model=MAYBE,
    deadline_s=st.none() | st.floats(0.1, 1e6),
    metadata=st.dictionaries(NAME, st.integers()),
    silent=st.booleans(),
    confirmations=TOKENS,
    declined=TOKENS,
)


@given(REQUESTS)
@pytest.mark.requirement("NET-1g")
def test_a_request_that_a_client_writes_is_read_back_unchanged(request: AskRequest) -> None:
    assert request_from_json(parse_json(to_bytes(request_to_json(request)))) == request


@pytest.mark.requirement("NET-1f")
def test_a_call_is_read_with_whom_it_is_for() -> None:
    call = DirectCall("a.b", {}, ("a.*",))
    data = {"arguments": {"n": 1}, "identity": {"user": "u"}, "deadline_s": 2, "detach": True}
    assert invoke_from_json(
        {**data, "confirmations": ["t"], "callback": "bot"}, call
    ) == AskRequest(
        identity=Identity("u"),
        deadline_s=2.0,
        confirmations=("t",),
        call=DirectCall("a.b", {"n": 1}, ("a.*",)),
    )
    assert callback_from_json({**data, "callback": "bot"}) == "bot"


@pytest.mark.requirement("NET-1f")
@pytest.mark.parametrize("data", [[], {"text": "hi"}, {"arguments": 1}, {"deadline_s": 0}])
def test_what_is_no_call_is_refused(data: Any) -> None:
    with pytest.raises(RequestError):
        invoke_from_json(data, DirectCall("a.b", {}))


GOOD = Called("a.b", True, '{"n":1}', {"n": 1}, None, 2, 0.0123456)
BAD = Called("a.b", False, "no", None, None, 1, 0.5)


@pytest.mark.requirement("NET-1f")
def test_what_came_of_a_call_is_written_as_a_result_or_an_error() -> None:
    call = {
        "ok": True,
        "tool": "a.b",
        "attempts": 2,
        "duration_ms": 12.346,
        "result": '{"n":1}',
        "structured": {"n": 1},
    }
    good = AskResult("ask_1", "answered", generation=3, called=GOOD)
    assert invoked_to_json(good) == {"ask_id": "ask_1", "generation": 3, **call}
    assert result_to_json(good)["call"] == call
    error, pending = ErrorInfo("tool.failed", "no"), PendingCall("t", "a.b", {}, "c", 9.0)
    bad = AskResult("ask_1", "failed", error=error, pending=(pending,), called=BAD)
    assert invoked_to_json(bad) == {
        "ok": False,
        "ask_id": "ask_1",
        "generation": 0,
        "tool": "a.b",
        "attempts": 1,
        "duration_ms": 500.0,
        "error": {"code": "tool.failed", "message": "no", "retryable": False},
        "pending": [
            {"token": "t", "tool": "a.b", "arguments": {}, "call_id": "c", "expires_at": 9.0}
        ],
    }
    gone = AskResult("ask_1", "cancelled", error=error)
    assert invoked_to_json(gone)["ok"] is False
    assert "tool" not in invoked_to_json(gone)
