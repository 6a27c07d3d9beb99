"""The HTTP client where what answers is no daemon, or says what no daemon says (NET-1)."""

from collections.abc import Callable, Coroutine
from typing import Any

import httpx2
import pytest

from session_runtime.client.http import HttpClient
from session_runtime.errors import PermanentError, RequestError, TransientError
from tests.client.wiring import Wire, finished, streamed

Call = Callable[[HttpClient], Coroutine[Any, Any, Any]]

GATEWAY = {"code": "gateway_timeout", "message": "the upstream timed out"}
DEEP = b"[" * 100_000


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("status", [502, 504, 520, 524])
async def test_what_a_gateway_lost_sight_of_is_sent_again_in_whatever_words_it_says_so(
    status: int,
) -> None:
    for said in ({"json": {"error": GATEWAY}}, {"text": "<html>"}):
        lost = httpx2.Response(status, **said)
        wire = Wire(lost, streamed(finished()))
        async with wire.client() as client:
            answer = await client.ask("go")
        assert (answer.text, answer.may_have_run_twice) == ("hello", True)
        assert wire.sent == ["POST /v1/ask"] * 2


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("status", [429, 503])
async def test_what_a_gateway_has_no_room_for_is_sent_again_no_sooner_than_it_says(
    status: int,
) -> None:
    busy = httpx2.Response(status, headers={"retry-after": "2"}, json={"error": GATEWAY})
    wire = Wire(busy, streamed(finished()))
    async with wire.client() as client:
        answer = await client.ask("go")
    assert (answer.text, answer.may_have_run_twice, wire.waited) == ("hello", False, [2.5])


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize(
    ("answer", "may_have_run"),
    [
        (httpx2.Response(200, text="<html>"), True),
        (httpx2.Response(202, text=""), True),
        (httpx2.Response(202, json={}), True),
        (httpx2.Response(202, json={"ask_id": 7}), True),
        (httpx2.Response(202, content=DEEP), True),
        (httpx2.Response(500, text="oops"), True),
        (httpx2.Response(501, json={"error": GATEWAY}), True),
        (httpx2.Response(301, headers={"location": "/v1/ask/"}), False),
        (httpx2.Response(401, json={"error": GATEWAY}), False),
        (httpx2.Response(404, text="<html>"), False),
    ],
)
async def test_a_start_whose_answer_nobody_understands_may_have_run_unless_that_turns_it_away(
    answer: httpx2.Response, may_have_run: bool
) -> None:
    async with Wire(answer).client() as client:
        with pytest.raises(PermanentError) as told:
            await client.start("go")
    assert (told.value.code, told.value.may_have_run) == ("daemon.bad_answer", may_have_run)


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda c: c.cancel("a1"), {}),
        (lambda c: c.cancel("a1"), {"cancelled": "yes"}),
        (lambda c: c.models(), {}),
        (lambda c: c.models(), {"data": [7]}),
        (lambda c: c.models(), {"data": [{}]}),
        (lambda c: c.tools(), {"tools": {}}),
        (lambda c: c.tools(), {"tools": ["a"]}),
        (lambda c: c.tools(), {"tools": [], "next": 7}),
    ],
)
async def test_an_answer_without_what_was_asked_for_is_no_daemons(
    call: Call, answer: dict[str, Any]
) -> None:
    async with Wire(httpx2.Response(200, json=answer)).client() as client:
        with pytest.raises(PermanentError) as told:
            await call(client)
    assert told.value.code == "daemon.bad_answer"


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize(
    "event",
    [
        [1],
        7,
        DEEP,
        b"{",
        {"type": "x", "ask_id": "a1"},
        {"type": "x", "ask_id": "a1", "seq": "abc"},
        {"type": "x", "seq": 1},
        {"ask_id": "a1", "seq": 1},
        {"type": "ask.finished", "ask_id": "a1", "seq": 1},
        {"type": "ask.finished", "ask_id": "a1", "seq": 1, "result": "hello"},
        finished(text=None),
        finished(error="no"),
        finished(pending={}),
        finished(pending=["t"]),
        finished(call=[]),
    ],
    ids=lambda event: repr(event)[:60],
)
async def test_an_event_that_is_none_is_as_a_cut_connection(event: object) -> None:
    wire = Wire(streamed(event), streamed(finished()))
    async with wire.client() as client:
        answer = await client.ask("go")
    assert (answer.text, answer.may_have_run_twice) == ("hello", False)
    assert wire.sent == ["POST /v1/ask", "GET /v1/asks/a1/events"]


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("error", [None, {}, {"code": 7, "message": "no", "retryable": True}])
async def test_a_refusal_that_does_not_say_why_is_no_daemons(error: object) -> None:
    wire = Wire(streamed(finished(outcome="failed", refused=True, error=error)))
    async with wire.client() as client:
        with pytest.raises(PermanentError) as told:
            await client.ask("go")
    assert (told.value.code, told.value.may_have_run) == ("daemon.bad_answer", False)


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("wait", [b"1" + b"0" * 400, b"1e999", b"1e300"])
async def test_a_wait_that_no_clock_can_count_is_longer_than_anybody_waits(wait: bytes) -> None:
    body = b'{"error":{"code":"busy.queue","message":"full","retryable":true,"retry_after_s":%s}}'
    async with Wire(httpx2.Response(503, content=body % wait)).client() as client:
        with pytest.raises(TransientError, match="full") as told:
            await client.ask("go")
    assert told.value.code == "busy.queue"


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("wait", [b"NaN", b"-1", b'"soon"', b"true", b"[]"])
async def test_a_wait_that_is_none_is_not_waited_for(wait: bytes) -> None:
    body = b'{"error":{"code":"busy.queue","message":"full","retryable":true,"retry_after_s":%s}}'
    wire = Wire(httpx2.Response(503, content=body % wait), streamed(finished()))
    async with wire.client() as client:
        assert (await client.ask("go")).text == "hello"
    assert wire.waited == [0.2]


@pytest.mark.requirement("NET-1g")
async def test_an_error_in_the_form_of_openai_is_told_by_the_code_of_ours() -> None:
    own = {"code": "auth.unknown", "message": "no such key", "retryable": False}
    theirs = {"message": "no such key", "type": "x", "param": None, "code": "invalid_api_key"}
    body = {"error": {**theirs, "session_runtime": own}}
    async with Wire(httpx2.Response(401, json=body)).client() as client:
        with pytest.raises(RequestError) as told:
            await client.models()
    assert told.value.code == "auth.unknown"
