"""How streams end: without an end mark, without an end, in the middle of what follows a whole reply."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from session_runtime.models.base import Model, ModelReply, ModelRequest
from session_runtime.testing.replies import Pace, Reply, reply_bytes
from session_runtime.types import Usage
from tests.models.building import ask, chat, failure, request, responses
from tests.models.clock import Clock, hurried

HI = ModelReply("Hi", finish_reason="stop")
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
DONE = b"data: [DONE]\n\n"


def event(**fields: Any) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


def text(said: str, reason: str | None = "stop") -> bytes:
    return event(choices=[{"delta": {"content": said}, "finish_reason": reason}])


def endless(*pieces: bytes) -> Reply:
    """A stream whose last piece never comes."""
    return reply_bytes(*pieces, b"", pace=Pace(step=asyncio.Semaphore(len(pieces))))


async def reply_to(
    model: Model, after_each_text: Callable[[], None], asked: ModelRequest | None = None
) -> ModelReply:
    """The reply; each time text was told and its reader waits again, something happens."""
    loop = asyncio.get_running_loop()
    asked = asked or request()
    async with asyncio.timeout_at(asked.until or loop.time() + 20):
        return await model.reply(asked, lambda _: (loop.call_soon(after_each_text), None)[1])


@pytest.mark.requirement("ASK-3")
async def test_a_stream_without_an_end_ends_soon_behind_the_reason_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    async with chat([endless(text("Hi"))]) as (model, _):
        assert await reply_to(model, lambda: clock.advance(2.0)) == HI


@pytest.mark.requirement("ASK-3")
async def test_usage_is_waited_for_no_longer_than_half_of_the_time_that_is_left_to_the_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    soon = replace(request(), until=clock.now() + 1.5)
    async with chat([endless(text("Hi"))]) as (model, _):
        assert await reply_to(model, lambda: clock.advance(0.76), soon) == HI


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("ending", [DONE, b"", b": ping\n\n"])
async def test_usage_that_comes_late_behind_the_reason_to_stop_is_waited_for(
    ending: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, steps = Clock(monkeypatch), asyncio.Semaphore(1)

    def go_on() -> None:
        clock.advance(1.5)
        steps.release()
        steps.release()

    late = reply_bytes(text("Hi"), event(choices=[], usage=USAGE), ending, pace=Pace(step=steps))
    async with chat([late]) as (model, _):
        reply = await reply_to(model, go_on)
    assert reply == ModelReply("Hi", usage=Usage(7, 3, model_calls=1), finish_reason="stop")


async def test_pings_behind_the_reason_to_stop_do_not_hold_up_the_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = asyncio.Semaphore(0)

    async def ping() -> None:
        while True:
            steps.release()
            await asyncio.sleep(0)

    pings = reply_bytes(text("Hi"), *[b": ping\n\n"] * 100_000, pace=Pace(step=steps))
    async with chat([pings]) as (model, _), hurried(monkeypatch):
        pinging = asyncio.create_task(ping())
        reply, _ = await ask(model)
        pinging.cancel()
    assert reply == HI


async def test_a_reason_to_stop_in_every_piece_cuts_no_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, steps = Clock(monkeypatch), asyncio.Semaphore(1)

    def go_on() -> None:
        clock.advance(1.5)
        steps.release()

    words = [text(f"{number} ") for number in range(5)]
    async with chat([reply_bytes(*words, DONE, pace=Pace(step=steps))]) as (model, _):
        reply = await reply_to(model, go_on)
    assert reply == ModelReply("0 1 2 3 4 ", finish_reason="stop")


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize(
    "half", [b'data: {"usage": {"prompt', b"data: ", b"dat", b'event: error\ndata: {"mess']
)
async def test_half_an_event_behind_a_whole_reply_does_no_harm(half: bytes, cut: bool) -> None:
    pace = Pace(cut_after=1) if cut else Pace()
    async with chat([reply_bytes(text("Hi") + half, b"", pace=pace)]) as (model, _):
        reply, _ = await ask(model)
    assert reply == HI


async def test_a_response_that_is_over_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = event(type="response.completed", response={"id": "r", "output": []})
    async with responses([endless(whole)]) as (model, _), hurried(monkeypatch):
        reply, _ = await ask(model)
    assert reply.finish_reason == "stop"


async def test_an_end_mark_without_a_response_is_a_cut_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with responses([endless(DONE)]) as (model, _), hurried(monkeypatch):
        error = await failure(model)
    assert error.code == "model.broken_reply"


async def test_a_burst_of_small_events_lets_others_have_their_turn() -> None:
    burst = b'data: {"choices":[]}\n\n' * 100_000
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with chat([reply_bytes(burst + text("Hi"))]) as (model, _):
        other = asyncio.create_task(others())
        await ask(model)
        other.cancel()
    assert turns >= len(burst) // (16 * 1024)
