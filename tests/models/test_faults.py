"""What went wrong in a model call: its class, its code, how long to wait, and what is not told."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import PermanentError, TransientError
from session_runtime.models import faults
from session_runtime.models.faults import Api, Endpoint, RefusedError

KEY = "not-a-real-key-0123456789"
WHERE = Endpoint("http://model.test/v1", (KEY,), Api("chat completions", "/chat/completions"))
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def answered(status: int, body: Any = b"", **headers: str) -> TransientError | PermanentError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return faults.from_response(WHERE, status, headers, raw, NOW)


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, said("bad"), RefusedError, "model.refused"),
        (401, said("who?"), PermanentError, "model.unauthorized"),
        (402, said("pay"), PermanentError, "model.quota_exhausted"),
        (403, said("no"), PermanentError, "model.unauthorized"),
        (404, said("which?"), RefusedError, "model.refused"),
        (408, b"", TransientError, "model.unavailable"),
        (409, b"", TransientError, "model.unavailable"),
        (413, b"", RefusedError, "model.refused"),
        (422, {"detail": [{"loc": ["body"], "msg": "odd"}]}, RefusedError, "model.refused"),
        (425, b"", TransientError, "model.unavailable"),
        (429, said("slow"), TransientError, "model.rate_limited"),
        (
            429,
            said("no credit", code="insufficient_quota"),
            PermanentError,
            "model.quota_exhausted",
        ),
        (500, b"<html>", TransientError, "model.unavailable"),
        (503, said("busy"), TransientError, "model.unavailable"),
        (529, b"", TransientError, "model.unavailable"),
        (307, b"", PermanentError, "model.redirected"),
        (400, said("x", code="context_length_exceeded"), PermanentError, "model.context_too_long"),
        (
            400,
            said("This model's maximum context length is 4096 tokens"),
            PermanentError,
            "model.context_too_long",
        ),
        (
            400,
            said("the request exceeds the available context size"),
            PermanentError,
            "model.context_too_long",
        ),
        (413, said("prompt is too long: 9 > 8"), PermanentError, "model.context_too_long"),
        (500, said("input exceeds context window"), PermanentError, "model.context_too_long"),
    ],
)
def test_a_status_says_whether_trying_again_can_help(
    status: int, body: Any, kind: type[Exception], code: str
) -> None:
    error = answered(status, body)
    assert (type(error), error.code) == (kind, code)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (said("Not today."), "Not today."),
        ({"error": "plain"}, "plain"),
        ({"message": "top"}, "top"),
        ({"detail": "why"}, "why"),
        ({"detail": [{"msg": "odd"}]}, '[{"msg": "odd"}]'),
        ([said("in a list")], "in a list"),
        ({"error": {}}, '{"error": {}}'),
        (b"no JSON at all", "no JSON at all"),
        (b"", "no reason given"),
        (b"[" * 100_000, "[" * 299 + "…"),
    ],
)
def test_the_words_of_the_provider_are_found(body: Any, shown: str) -> None:
    assert str(answered(400, body)) == f"the model at http://model.test/v1 answered 400: {shown}"


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    "message",
    [
        f"Incorrect API key provided: {KEY}.",
        f"{'x' * 290} {KEY}",
        f"{' ' * 2390}{KEY}",
        "Incorrect API key provided: sk-0123456789abcdef",
        "Incorrect API key provided: abcd****6789",
        "header Authorization: Bearer 0123456789abcdef is wrong",
        "AIzaSy0123456789abcdef0123456789abcdef is no key of this project",
        "the token ghp_0123456789abcdef0123456789abcdef was revoked",
        "cannot reach https://user:pw0123456789@proxy.test/v1",
        '{"api_key": "0123456789abcdef"}',
    ],
)
def test_nothing_that_looks_like_a_key_is_told(message: str) -> None:
    told = str(answered(401, said(message)))
    assert KEY not in told
    assert "0123456789" not in told
    assert "6789" not in told


def test_what_a_provider_says_becomes_one_short_line() -> None:
    told = answered(400, said("a\n\x1b[31mred\x07  b" + "z" * 1000))
    assert str(told) == (
        "the model at http://model.test/v1 answered 400: a [31mred b" + "z" * 288 + "…"
    )


@given(st.text())
def test_no_words_of_a_provider_break_the_message(message: str) -> None:
    told = str(answered(400, said(message)))
    assert told.isprintable()
    assert len(told) < 400


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_understood(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert faults.retry_after_s(headers, NOW) == seconds


@given(st.text())
def test_no_retry_after_breaks_the_reading(text: str) -> None:
    seconds = faults.retry_after_s({"retry-after": text}, NOW)
    assert seconds is None or seconds >= 0


@pytest.mark.requirement("ASK-9")
def test_the_wait_travels_with_the_error() -> None:
    error = answered(429, said("slow"), **{"retry-after": "7"})
    assert isinstance(error, TransientError)
    assert error.retry_after_s == 7.0


@pytest.mark.parametrize("field", ["message", "code", "param", "type"])
def test_what_a_refusal_says_is_kept_only_as_far_as_it_can_matter(field: str) -> None:
    """All of it is searched for names of fields, more than once."""
    error = {"type": "invalid_request_error", field: "invalid " + "no " * 1_000_000}
    for fault in (answered(400, {"error": error}), faults.from_error_object(WHERE, error)):
        assert isinstance(fault, RefusedError)
        assert len(fault.said) <= 8_000
        assert len(str(fault)) < 400


def test_a_redirect_names_where_it_leads() -> None:
    assert str(answered(308, b"", location="https://other.test/v1/")) == (
        "the model at http://model.test/v1 answered 308: moved to https://other.test/v1/; "
        "redirects are not followed, set base_url to the final address"
    )


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (httpx2.ConnectError("refused"), TransientError, "model.unreachable"),
        (httpx2.ConnectTimeout("slow"), TransientError, "model.unreachable"),
        (httpx2.ReadTimeout(""), TransientError, "model.timeout"),
        (httpx2.ReadError("reset"), TransientError, "model.connection_lost"),
        (httpx2.RemoteProtocolError("cut"), TransientError, "model.connection_lost"),
        (httpx2.UnsupportedProtocol("ftp"), PermanentError, "model.bad_url"),
        (httpx2.LocalProtocolError(f"b'Bearer {KEY}\\n'"), PermanentError, "model.bad_request"),
    ],
)
def test_a_connection_that_fails_is_classified_and_names_the_server(
    error: httpx2.TransportError, kind: type[Exception], code: str
) -> None:
    fault = faults.from_transport(WHERE, error)
    assert (type(fault), fault.code) == (kind, code)
    assert "http://model.test/v1" in str(fault)
    assert KEY not in str(fault)


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (said("x", type="rate_limit_error"), TransientError, "model.rate_limited"),
        (said("x", type="overloaded_error"), TransientError, "model.unavailable"),
        (said("x", code=502), TransientError, "model.unavailable"),
        (said("x", type="authentication_error"), PermanentError, "model.unauthorized"),
        (said("x", code="model_not_found"), RefusedError, "model.refused"),
        ({"object": "error", "message": "x", "code": 400}, RefusedError, "model.refused"),
        ({"error": "something"}, TransientError, "model.unavailable"),
        ("something", TransientError, "model.unavailable"),
    ],
)
def test_an_error_object_says_what_its_status_would_have_said(
    error: object, kind: type[Exception], code: str
) -> None:
    fault = faults.from_error_object(WHERE, error)
    assert (type(fault), fault.code) == (kind, code)
