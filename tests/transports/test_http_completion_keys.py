"""An Idempotency-Key at the door for OpenAI's clients: the same request is the same ask (NET-1)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from session_runtime.ask.event_log import MOST_CHARS
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    AskStarted,
    ErrorInfo,
)
from tests.transports.completing import (
    BODY,
    PATH,
    STARTED,
    STREAM,
    TOOL,
    pieces,
    said,
    sent,
    turn,
)
from tests.transports.stub import TEXT, AskFunction, Emit, StubDoor, calling, finish, refused

KEYED = {"idempotency-key": "k1"}


class Once:
    """Answers with how often it ran."""

    def __init__(self, refusal: ErrorInfo | None = None) -> None:
        self.ran = 0
        self._refusal = refusal

    async def __call__(self, request: AskRequest, emit: Emit) -> AskResult:
        self.ran += 1
        if self._refusal is not None:
            return finish(refused(self._refusal), emit)
        emit(AskStarted(ask_id="a1", seq=0, generation=1, model="a"))
        return finish(AskResult("a1", "answered", f"run {self.ran}"), emit)


def numbered(result: AskResult, *events: AskEvent) -> AskFunction:
    """An ask that reports these events and its end, each with its number."""

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        for seq, event in enumerate((*events, AskFinished(ask_id="a1", result=result)), start=1):
            emit(replace(event, seq=seq))
        return result

    return ask


def text_of(answer: Any) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def streamed(text: str) -> str:
    deltas = (each["choices"][0]["delta"] for each in pieces(text) if each["choices"])
    return "".join(delta.get("content") or "" for delta in deltas)


@pytest.mark.requirement("NET-1b")
async def test_the_same_key_is_the_same_completion_whole_and_as_a_stream() -> None:
    ask = Once()
    async with calling(StubDoor(ask)) as client:
        together = await asyncio.gather(
            *(client.post(PATH, json=BODY, headers=KEYED) for _ in range(3))
        )
        streams = [
            await client.post(PATH, json=STREAM, headers={"idempotency-key": "k2"})
            for _ in range(2)
        ]
        without = await client.post(PATH, json=BODY)
    assert {text_of(each) for each in together} == {"run 1"}
    assert [streamed(each.text) for each in streams] == ["run 2", "run 2"]
    assert (text_of(without), ask.ran) == ("run 3", 3)


@pytest.mark.requirement("NET-1b")
async def test_a_key_is_for_one_content_and_one_door() -> None:
    ask = Once()
    async with calling(StubDoor(ask)) as client:
        await client.post(PATH, json=BODY, headers=KEYED)
        others = [
            await client.post(PATH, json={**BODY, "user": "u1"}, headers=KEYED),
            await client.post("/v1/ask", json=TEXT, headers=KEYED),
        ]
        wrong = await client.post(PATH, json=BODY, headers={"idempotency-key": "k 1"})
    assert [each.status_code for each in others] == [422, 422]
    assert others[0].json()["error"]["session_runtime"]["code"] == "request.key_reused"
    assert (wrong.status_code, ask.ran) == (400, 1)


@pytest.mark.requirement("NET-1b")
async def test_a_refusal_frees_the_key() -> None:
    ask = Once(ErrorInfo("busy.capacity", "full", True, 1.0))
    async with calling(StubDoor(ask)) as client:
        answers = [await client.post(PATH, json=BODY, headers=KEYED) for _ in range(2)]
    assert ([each.status_code for each in answers], ask.ran) == ([503, 503], 2)


@pytest.mark.requirement("NET-1b")
async def test_a_kept_completion_loses_nothing_of_what_made_room_for_its_long_text() -> None:
    long = "x" * MOST_CHARS
    result = AskResult("a1", "answered", long, messages=("first",))
    ask = numbered(result, STARTED, sent("first"), turn(), said(long))
    body = {"messages": BODY["messages"]}
    async with calling(StubDoor(ask)) as client:
        whole = [await client.post(PATH, json=body, headers=KEYED) for _ in range(2)]
        streaming, other = {**body, "stream": True}, {"idempotency-key": "k2"}
        streams = [await client.post(PATH, json=streaming, headers=other) for _ in range(2)]
    assert {each.json()["model"] for each in whole} == {"fast"}
    assert {text_of(each) for each in whole} == {f"first\n\n{long}"}
    assert {streamed(each.text) for each in streams} == {f"first\n\n{long}"}
    assert {piece["model"] for each in streams for piece in pieces(each.text)} == {"fast"}


@pytest.mark.requirement("NET-1b")
async def test_messages_that_made_room_come_before_a_final_text_that_begins_anew() -> None:
    long = "x" * MOST_CHARS
    result = AskResult("a1", "answered", long, messages=("first",))

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        events = (STARTED, turn(), said("draft"), sent("first"), turn(), said(long))
        for seq, event in enumerate((*events, AskFinished(ask_id="a1", result=result)), start=1):
            emit(replace(event, seq=seq))
            for _ in range(50 if event == events[2] else 0):  # the draft is read, the rest too late
                await asyncio.sleep(0)
        return result

    async with calling(StubDoor(ask)) as client:
        body = {"messages": BODY["messages"], "stream": True}
        stream = await client.post(PATH, json=body, headers=KEYED)
    assert streamed(stream.text) == f"draft\n\nfirst\n\n{long}"


@pytest.mark.requirement("NET-1b")
async def test_a_kept_completion_that_failed_after_tools_ran_is_not_to_be_repeated_then_either() -> (
    None
):
    result = AskResult("a1", "failed", error=ErrorInfo("model.rate_limited", "later", True))
    ask = numbered(result, STARTED, turn(), TOOL, said("x" * MOST_CHARS))
    async with calling(StubDoor(ask)) as client:
        told = [await client.post(PATH, json=BODY, headers=KEYED) for _ in range(2)]
        streamed_ = [
            await client.post(PATH, json=STREAM, headers={"idempotency-key": "k2"})
            for _ in range(2)
        ]
    assert {each.headers["x-should-retry"] for each in told} == {"false"}
    assert streamed_[1].headers.get("x-should-retry", "false") == "false"
