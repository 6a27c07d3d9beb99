"""What tests of chat completions share: requests, scripted asks, and streams taken apart."""

import asyncio
import json
from typing import Any

import httpx2

from session_runtime.types import (
    AskEvent,
    AskRequest,
    AskResult,
    AskStarted,
    MessageSent,
    PendingCall,
    TextDelta,
    ToolStarted,
    TurnStarted,
    Usage,
)
from tests.transports.stub import (
    AskFunction,
    Emit,
    StubDoor,
    StubLive,
    calling,
    finish,
)

PATH = "/v1/chat/completions"
BODY = {"model": "main", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**BODY, "stream": True}
USED = Usage(7, 3, 2, 1, 2)
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
STARTED = AskStarted(ask_id="a1", generation=1, model="fast")
TOOL = ToolStarted(ask_id="a1", call_id="c", name="t", arguments={})
PENDING = PendingCall("secret", "notes.delete", {"id": 3, "who": "安"}, "c", 9.5)
PLAIN = {"ask_id": "a1", "messages": [], "steps": 0, "loaded_tools": [], "generation": 0}


def turn(attempt: int = 1, step: int = 1) -> TurnStarted:
    return TurnStarted(ask_id="a1", step=step, exposed=(), model="m", attempt=attempt)


def said(text: str) -> TextDelta:
    return TextDelta(ask_id="a1", text=text)


def sent(text: str) -> MessageSent:
    return MessageSent(ask_id="a1", text=text)


def playing(result: AskResult, *events: AskEvent) -> AskFunction:
    """An ask that emits these events, and lets each be read."""

    async def play(request: AskRequest, emit: Emit) -> AskResult:
        for event in events:
            emit(event)
            await asyncio.sleep(0.001)
        return finish(result, emit)

    return play


def pieces(text: str) -> list[Any]:
    """The JSON of each frame of a stream that ends as it should."""
    *frames, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames if frame[0] != ":"]


async def post(ask: AskFunction, body: Any = BODY, /, **settings: Any) -> httpx2.Response:
    door = StubDoor(ask)
    door.live = StubLive(**settings)
    async with calling(door) as client:
        return await client.post(PATH, json=body)


async def streamed(ask: AskFunction, /, **settings: Any) -> str:
    """All content of a stream."""
    response = await post(ask, STREAM, **settings)
    return "".join(
        piece["choices"][0]["delta"].get("content", "") for piece in pieces(response.text)
    )


def without_time(data: Any) -> Any:
    assert data.pop("created") > 1_600_000_000
    return data
