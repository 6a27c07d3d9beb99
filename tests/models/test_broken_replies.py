"""Replies that cannot be used: which fault each stands for, and what it says."""

import pytest

from session_runtime.errors import PermanentError, SessionRuntimeError, TransientError
from session_runtime.models.faults import RefusedError
from tests.models.test_reading import EVENTS, A, piece, read, stream


def problem(*pieces: bytes, content_type: str = EVENTS) -> SessionRuntimeError:
    try:
        reply = read(*pieces, content_type=content_type)
    except SessionRuntimeError as error:
        return error
    raise AssertionError(f"the bytes gave {reply}")


BROKEN: dict[str, tuple[bytes, str, type[SessionRuntimeError], str]] = {
    "a stream that stops in the middle": (
        stream({"content": "H"}, reason=None, done=False),
        EVENTS,
        TransientError,
        "model.broken_reply",
    ),
    "a stream without an event": (b": ping\n\n", EVENTS, TransientError, "model.broken_reply"),
    "an empty body": (b"", "application/json", TransientError, "model.broken_reply"),
    "an event that is no JSON": (b"data: {\n\n", EVENTS, TransientError, "model.broken_reply"),
    "JSON that is cut off": (b'{"cho', "application/json", TransientError, "model.broken_reply"),
    "JSON that is too deep": (
        b"[" * 100_000,
        "application/json",
        TransientError,
        "model.broken_reply",
    ),
    "a web page": (b"\n<!doctype html>", "text/html", PermanentError, "model.not_an_api"),
    "plain words": (b"It works!", "text/plain", PermanentError, "model.not_an_api"),
    "another API": (b'{"status": "ok"}', "application/json", PermanentError, "model.not_an_api"),
    "a list": (b"[]", "application/json", PermanentError, "model.not_an_api"),
    "an error of the server in a success": (
        b'{"error": {"message": "oops", "type": "server_error"}}',
        "application/json",
        TransientError,
        "model.unavailable",
    ),
    "a refusal in a success": (
        b'{"error": {"message": "no such field", "type": "invalid_request_error"}}',
        "application/json",
        RefusedError,
        "model.refused",
    ),
    "a list with an error": (
        b'[{"error": {"message": "key", "code": 401}}]',
        "application/json",
        PermanentError,
        "model.unauthorized",
    ),
    "too many requests in a stream": (
        stream({"content": "H"}, reason=None, done=False)
        + b'data: {"error": {"message": "slow down", "code": 429}}\n\n',
        EVENTS,
        TransientError,
        "model.rate_limited",
    ),
    "an error event in a stream": (
        b'event: error\ndata: {"message": "bye"}\n\n',
        EVENTS,
        TransientError,
        "model.unavailable",
    ),
    "an error inside of the choice, in a stream": (
        stream({"content": "Hel"}, reason=None, done=False)
        + b'data: {"choices": [{"delta": {"content": ""}, "finish_reason": "error", "error": '
        b'{"code": 502, "message": "Provider returned error"}}]}\n\ndata: [DONE]\n\n',
        EVENTS,
        TransientError,
        "model.unavailable",
    ),
    "an error inside of the choice of a whole answer": (
        b'{"choices": [{"message": {"content": "Hel"}, "finish_reason": "error", '
        b'"error": {"code": 429, "message": "slow down"}}]}',
        "application/json",
        TransientError,
        "model.rate_limited",
    ),
    "a refusal inside of the choice, before any text": (
        b'data: {"choices": [{"delta": {}, "error": {"code": 400, "message": "no"}}]}\n\n',
        EVENTS,
        RefusedError,
        "model.refused",
    ),
    "a refusal inside of the choice, behind text": (
        stream({"content": "Hel"}, reason=None, done=False)
        + b'data: {"choices": [{"delta": {}, "error": {"code": 400, "message": "no"}}]}\n\n',
        EVENTS,
        PermanentError,
        "model.refused",
    ),
    "an error as the reason to stop": (
        stream({"content": "Hel"}, reason="error"),
        EVENTS,
        TransientError,
        "model.broken_reply",
    ),
    "an error as the reason to stop, beside a call": (
        stream([piece("web__search", A, index=0, id="x")], reason="ERROR"),
        EVENTS,
        TransientError,
        "model.broken_reply",
    ),
    "a context that is too long, in a stream": (
        b'data: {"error": {"message": "exceeds the context window", "code": 400}}\n\n',
        EVENTS,
        PermanentError,
        "model.context_too_long",
    ),
}


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize("fault", BROKEN)
def test_what_cannot_be_used_is_classified(fault: str) -> None:
    body, content_type, kind, code = BROKEN[fault]
    error = problem(body, content_type=content_type)
    assert (type(error), error.code) == (kind, code)
    assert "http://model.test/v1" in str(error)


def test_what_is_no_api_names_the_base_url_and_the_way_out() -> None:
    assert str(problem(b"<html>", content_type="text/html")) == (
        "base_url http://model.test/v1 does not answer like a chat completions API: it sent a web "
        "page; base_url ends where '/chat/completions' begins, usually in '/v1'"
    )
