"""Chat completions over HTTP as streams."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from session_runtime.transports.http.door import HttpLimits
from session_runtime.types import (
    AskEvent,
    AskRequest,
    AskResult,
    ErrorInfo,
)
from tests.transports.completing import (
    PATH,
    PLAIN,
    STARTED,
    STREAM,
    TOOL,
    USAGE,
    USED,
    pieces,
    playing,
    post,
    said,
    sent,
    streamed,
    turn,
    without_time,
)
from tests.transports.stub import (
    Emit,
    StubDoor,
    finish,
    serving,
)


@pytest.mark.requirement("NET-1e")
async def test_a_stream_begins_with_the_role_and_ends_with_usage_and_done() -> None:
    result = AskResult("a1", "answered", "Sun, rain", usage=USED)
    events = (STARTED, turn(), said("Sun, "), said("rain"))
    response = await post(
        playing(result, *events), {**STREAM, "stream_options": {"include_usage": True}}
    )
    assert response.headers["content-type"] == "text/event-stream"

    def piece(delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**head, "choices": [choice], "usage": None}

    head = {"id": "a1", "object": "chat.completion.chunk", "model": "fast"}
    extension = {**PLAIN, "outcome": "answered", "text": "Sun, rain", "ignored": []}
    assert [without_time(data) for data in pieces(response.text)] == [
        piece({"role": "assistant", "content": "Sun, "}),
        piece({"content": "rain"}),
        {**piece({}, "stop"), "session_runtime": extension},
        {**head, "choices": [], "usage": USAGE},
    ]


async def test_usage_is_streamed_only_to_those_who_want_it() -> None:
    response = await post(playing(AskResult("a1", "answered", "x"), STARTED), STREAM)
    assert [set(data) & {"usage"} for data in pieces(response.text)] == [set(), set()]


@pytest.mark.parametrize(
    ("events", "text", "content"),
    [
        ((turn(), sent("One."), turn(step=2), said("Two.")), "Two.", "One.\n\nTwo."),
        ((turn(), said("Let me look."), TOOL, turn(step=2), said("4")), "4", "Let me look.\n\n4"),
        ((turn(), said("Bye.")), "Bye.", "Bye."),
        ((turn(), said("May I?"), sent("Wait.")), "May I?", "May I?\n\nWait."),
        ((turn(), said("Sun "), turn(2), said("Sun and")), "Sun and rain", "Sun and rain"),
        ((turn(), said("Snow"), turn(2), said("Sun")), "Sun", "Snow\n\nSun"),
        ((turn(), turn(2), said("Sun")), "Sun", "Sun"),
        ((turn(), said("Look."), turn(step=2), said("Half")), "Look.", "Look.\n\nHalf"),
        ((), "", ""),
        ((), "Only at the end.", "Only at the end."),
    ],
    ids=[
        *("messages", "beside calls", "all streamed", "text before a message", "asked again"),
        *("begun otherwise", "nothing said yet", "cut off", "nothing", "unstreamed"),
    ],
)
async def test_a_stream_tells_text_while_it_is_written_and_nothing_twice(
    events: Sequence[AskEvent], text: str, content: str
) -> None:
    assert await streamed(playing(AskResult("a1", "answered", text), STARTED, *events)) == content


async def test_prose_that_may_be_sent_back_to_the_model_is_not_streamed_before_it_is_final() -> (
    None
):
    events = (turn(), said("I think"), turn(step=2), sent("4"), said("Bye"))
    ask = playing(AskResult("a1", "ended", "Bye", ("4",)), STARTED, *events)
    assert await streamed(ask, ask={"require_end": True}) == "4\n\nBye"


@pytest.mark.requirement("ASK-1")
async def test_a_slow_reader_of_a_stream_gets_the_whole_text_all_the_same() -> None:
    words = [f"{number} " for number in range(5_000)]

    async def flood(request: AskRequest, emit: Emit) -> AskResult:
        for event in (STARTED, turn(), *map(said, words)):
            emit(event)
        return finish(AskResult("a1", "answered", "".join(words)), emit)

    assert await streamed(flood) == "".join(words)


async def test_a_stream_that_fails_in_the_middle_ends_with_the_error_and_is_not_done() -> None:
    error = ErrorInfo("model.connection_lost", "gone", True)
    ask = playing(AskResult("a1", "failed", error=error), STARTED, turn(), said("Sun"))
    response = await post(ask, STREAM)
    first, last, rest = response.text.split("\n\n")
    assert json.loads(first.removeprefix("data: "))["choices"][0]["delta"]["content"] == "Sun"
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "model.connection_lost"
    assert rest == ""


async def test_a_silent_stream_is_kept_alive_by_comment_lines() -> None:
    go_on = asyncio.Event()

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        emit(STARTED)
        await go_on.wait()
        return finish(AskResult("a1", "answered", "x"), emit)

    limits = HttpLimits(max_body_bytes=1_000, ping_s=0.01)
    async with (
        serving(StubDoor(ask), limits) as served,
        served.client.stream("POST", PATH, json=STREAM) as response,
    ):
        lines = response.aiter_lines()
        begun = [await anext(lines) for _ in range(4)]
        go_on.set()
        rest = [line async for line in lines if line and line != ": ping"]
    assert begun == [": ping", "", ": ping", ""]
    assert len(rest) == 3
