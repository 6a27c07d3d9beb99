"""What the HTTP client tells of an ask once an attempt at it is out, and that it ends it (NET-1)."""

from collections.abc import Callable, Coroutine
from typing import Any

import httpx2
import pytest

from session_runtime.client.http import HttpClient
from session_runtime.errors import SessionRuntimeError, TransientError
from tests.client.wiring import Wire

BUSY = {"code": "busy.queue", "message": "full", "retryable": True, "retry_after_s": 3_600.0}
BAD_KEY = {"code": "auth.invalid", "message": "no such key", "retryable": False}
ENDS = [
    pytest.param(httpx2.Response(503, json={"error": BUSY}), "daemon.no_answer", id="busy"),
    pytest.param(httpx2.Response(500, text="<html>"), "daemon.bad_answer", id="no daemon"),
    pytest.param(httpx2.Response(401, json={"error": BAD_KEY}), "auth.invalid", id="bad key"),
]


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize(("end", "code"), ENDS)
async def test_an_ask_that_was_cut_may_have_run_and_is_left_whatever_is_said_of_it_later(
    end: httpx2.Response, code: str
) -> None:
    wire = Wire(None, end)
    async with wire.client() as client:
        with pytest.raises(SessionRuntimeError) as told:
            await client.ask("go")
    assert (told.value.code, told.value.may_have_run) == (code, True)
    assert wire.sent == [*["POST /v1/ask"] * 3, "DELETE /v1/asks/a1"]


KEYED: list[Callable[[HttpClient], Coroutine[Any, Any, Any]]] = [
    lambda c: c.ask("go", idempotency_key="order-1"),
    lambda c: c.invoke("a.note", idempotency_key="order-1"),
    lambda c: c.confirm("a0", confirmations=["t"], idempotency_key="order-1"),
]


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("call", KEYED)
@pytest.mark.parametrize(("end", "code"), ENDS)
async def test_what_has_a_key_of_its_caller_is_never_ended_since_others_may_wait_for_it(
    end: httpx2.Response, code: str, call: Callable[[HttpClient], Coroutine[Any, Any, Any]]
) -> None:
    wire = Wire(None, end)
    async with wire.client() as client:
        with pytest.raises(SessionRuntimeError) as told:
            await call(client)
    assert (told.value.code, told.value.may_have_run) == (code, True)
    assert [each.partition(" ")[0] for each in wire.sent] == ["POST", "POST"]


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize(("end", "code"), ENDS)
async def test_a_start_that_was_cut_may_have_run_whatever_is_said_of_it_later(
    end: httpx2.Response, code: str
) -> None:
    async with Wire(None, end).client() as client:
        with pytest.raises(SessionRuntimeError) as told:
            await client.start("go")
    assert (told.value.code, told.value.may_have_run) == (code, True)


@pytest.mark.requirement("NET-1g")
async def test_the_last_word_on_an_ask_that_may_have_run_is_told_with_it() -> None:
    async with Wire(None, httpx2.Response(503, json={"error": BUSY})).client() as client:
        with pytest.raises(TransientError, match=r"may have run.*full") as told:
            await client.ask("go")
    assert isinstance(told.value.__cause__, TransientError)
    assert told.value.__cause__.code == "busy.queue"


@pytest.mark.requirement("NET-1g")
async def test_a_refusal_of_the_only_attempt_says_that_it_did_not_run() -> None:
    for end in (BUSY, BAD_KEY):
        status = 503 if end is BUSY else 401
        wire = Wire(httpx2.Response(status, json={"error": end}))
        async with wire.client() as client:
            with pytest.raises(SessionRuntimeError) as told:
                await client.ask("go")
        assert (told.value.code, told.value.may_have_run) == (end["code"], False)
        assert wire.sent == ["POST /v1/ask"]


@pytest.mark.requirement("NET-1g")
async def test_what_has_no_more_time_says_how_long_the_daemon_asks_to_wait_and_no_false_time() -> (
    None
):
    async with Wire(None, httpx2.Response(503, json={"error": BUSY})).client() as client:
        with pytest.raises(TransientError) as told:
            await client.start("go")
    assert told.value.retry_after_s == 3_600.0
    assert str(told.value) == (
        "no answer came, and another attempt would come after the 300 s that there were; the request may"
        " have run; the last attempt: full"
    )


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("call", [lambda c: c.get("a1"), lambda c: c.models(), lambda c: c.tools()])
async def test_what_only_looks_has_run_nothing_however_it_ends(
    call: Callable[[HttpClient], Coroutine[Any, Any, Any]],
) -> None:
    for end in (BUSY, BAD_KEY):
        status = 503 if end is BUSY else 401
        async with Wire(None, httpx2.Response(status, json={"error": end})).client() as client:
            with pytest.raises(SessionRuntimeError) as told:
                await call(client)
        assert (told.value.code, told.value.may_have_run) == (end["code"], False)


ENDED = {"state": "ended", "result": {"outcome": "cancelled"}}
CANCELS: list[tuple[dict[str, Any], bool]] = [
    ({"state": "model", "cancelling": True}, True),
    (ENDED, True),
    ({"state": "model", "cancelling": False}, False),
    ({"state": "ended", "result": {"outcome": "answered"}}, False),
    ({"state": "ended"}, False),
]


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize(("shown", "ended"), CANCELS)
async def test_an_end_whose_answer_was_cut_is_looked_for_in_the_ask(
    shown: dict[str, Any], ended: bool
) -> None:
    told = httpx2.Response(200, json={"cancelled": 0})
    wire = Wire(None, told, httpx2.Response(200, json=shown))
    async with wire.client() as client:
        assert await client.cancel("a1") is ended
    assert wire.sent == [*["DELETE /v1/asks/a1"] * 2, "GET /v1/asks/a1"]


@pytest.mark.requirement("NET-1g")
async def test_an_ask_that_had_ended_before_is_not_said_to_be_ended_by_whoever_came_too_late() -> (
    None
):
    wire = Wire(httpx2.Response(200, json={"cancelled": 0}), httpx2.Response(200, json=ENDED))
    async with wire.client() as client:
        assert not await client.cancel("a1")
    assert wire.sent == ["DELETE /v1/asks/a1"]
