"""The HTTP client of backends where it can send nothing: told at once, in words that say what is wrong."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from session_runtime.client.http import HttpClient, Pauses
from session_runtime.errors import RequestError, TransientError
from session_runtime.types import AskFinished, AskRequest, AskResult
from tests.client.cutting import way
from tests.transports.stub import Emit, StubDoor, serving

NOBODY = "http://127.0.0.1:1"


async def no_pause(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)


def client(url: str = NOBODY, **options: Any) -> HttpClient:
    return HttpClient(url, pauses=Pauses(no_pause, lambda: 1.0), **options)


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize(
    "url", ["127.0.0.1:8040", "localhost:8040", "ftp://x", "http://", "http://x:99999", ""]
)
def test_an_address_that_is_none_is_told_at_once(url: str) -> None:
    with pytest.raises(RequestError, match="url is"):
        client(url)


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("key", ["sr_abc\n", "sr abc", "schlüssel", ""])
async def test_a_key_that_no_header_can_hold_is_told_at_once(key: str) -> None:
    with pytest.raises(RequestError, match="key has"):
        client(key=key)
    async with client() as there:
        with pytest.raises(RequestError, match="idempotency_key has"):
            await there.ask("hi", idempotency_key=key or "k" * 256)
        with pytest.raises(RequestError, match="idempotency_key has"):
            await there.start("hi", idempotency_key=key or "k" * 256)


WRONG: list[Callable[[HttpClient], Coroutine[Any, Any, Any]]] = [
    lambda c: c.ask("hi", deadline_s=0.0),
    lambda c: c.ask({"text": "hi"}, deadline_s=float("nan")),
    lambda c: c.invoke("a.note", deadline_s=-1.0),
    lambda c: c.invoke(""),
    lambda c: c.invoke(".."),
    lambda c: c.get(".."),
    lambda c: c.cancel("."),
    lambda c: c.confirm("", confirmations=["t"]),
]


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("call", WRONG)
async def test_what_would_go_elsewhere_or_mean_nothing_is_not_sent(
    call: Callable[[HttpClient], Coroutine[Any, Any, Any]],
) -> None:
    async with way(None) as there, client(there.url) as backend:
        with pytest.raises(RequestError):
            await call(backend)
        assert there.connections == 0


@pytest.mark.requirement("NET-1g")
async def test_what_never_arrived_is_said_not_to_have_run_and_why() -> None:
    async with client(timeout_s=0.3) as there:
        for call in (there.ask("hi"), there.start("hi"), there.get("ask_1")):
            with pytest.raises(TransientError, match="did not arrive; the last attempt") as none:
                await call
            assert (none.value.code, none.value.may_have_run) == ("daemon.no_answer", False)


@pytest.mark.requirement("NET-1g")
async def test_events_of_a_daemon_that_is_gone_end_with_an_error() -> None:
    async with client(timeout_s=0.3) as there, asyncio.timeout(30):
        with pytest.raises(TransientError, match="did not arrive") as none:
            [event async for event in there.events("ask_1")]
    assert none.value.code == "daemon.no_answer"


@pytest.mark.requirement("NET-1g")
async def test_events_after_the_last_one_of_an_ended_ask_are_none() -> None:
    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        result = AskResult("a1", "answered", "hi")
        emit(AskFinished(ask_id="a1", seq=1, result=result))
        return result

    async with serving(StubDoor(ask)) as served, asyncio.timeout(30):
        async with client(f"http://127.0.0.1:{served.port}") as there:
            ask_id = await there.start("hi")
            seen = [event["seq"] async for event in there.events(ask_id)]
            again = [event async for event in there.events(ask_id, after=seen[-1])]
    assert (seen, again) == ([1], [])
