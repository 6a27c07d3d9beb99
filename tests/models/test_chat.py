"""The chat adapter against a real server: what it sends, what it takes, how it fails."""

import asyncio
import json
import logging
from typing import Any

import pytest

from session_runtime.models.base import ModelReply
from session_runtime.models.faults import RefusedError
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    Pace,
    Reply,
    reply_bytes,
    reply_calls,
    reply_error,
    reply_text,
)
from session_runtime.types import Message, ToolCall, Usage
from tests.models.building import ask, chat, failure, request, tool

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
SEARCH = tool("web.search")


@pytest.mark.requirement("ASK-3")
async def test_text_is_told_while_it_is_streamed() -> None:
    async with chat([reply_text("one two three", usage=USAGE)], stream=True) as (model, upstream):
        reply, told = await ask(model)
    assert reply == ModelReply(
        "one two three", usage=Usage(7, 3, model_calls=1), finish_reason="stop"
    )
    assert told == ["one ", "two ", "three"]
    assert upstream.requests == [
        {
            "model": "m",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "hello"}],
        }
    ]


@pytest.mark.requirement("ASK-3")
async def test_without_streaming_the_text_is_told_at_once() -> None:
    async with chat([reply_text("one two", usage=USAGE)], stream=False) as (model, upstream):
        reply, told = await ask(model)
    assert reply == ModelReply("one two", usage=Usage(7, 3, model_calls=1), finish_reason="stop")
    assert told == ["one two"]
    assert upstream.requests == [{"model": "m", "messages": [{"role": "user", "content": "hello"}]}]


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("stream", [True, False])
async def test_calls_and_unknown_fields_come_back_with_the_next_request(stream: bool) -> None:
    call = Call("web__search", '{"q": "a"}', "x", {"extra_content": {"signature": "s"}})
    first = ChatReply(calls=(call,), finish_reason="tool_calls", extra={"reasoning_content": "Hm."})
    async with chat([first, reply_text("done")], stream=stream) as (model, upstream):
        question = Message("user", "find a")
        reply, _ = await ask(model, request(question, tools=[SEARCH]))
        answer = Message("assistant", reply.text or None, reply.calls, extra=reply.extra)
        result = Message("tool", "found", tool_call_id="x")
        await ask(model, request(question, answer, result, tools=[SEARCH]))
    assert reply.calls == (
        ToolCall("x", "web.search", '{"q": "a"}', extra={"extra_content": {"signature": "s"}}),
    )
    assert upstream.requests[1]["messages"] == [
        {"role": "user", "content": "find a"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "x",
                    "type": "function",
                    "function": {"name": "web__search", "arguments": '{"q": "a"}'},
                    "extra_content": {"signature": "s"},
                }
            ],
            "reasoning_content": "Hm.",
        },
        {"role": "tool", "tool_call_id": "x", "content": "found"},
    ]


async def test_ids_that_a_server_leaves_out_or_repeats_are_made_unique_in_the_conversation() -> (
    None
):
    delta = {"tool_calls": [{"index": 0, "function": {"name": "web__search", "arguments": "{}"}}]}
    chunk = {"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}
    nameless = reply_bytes(b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")
    async with chat([nameless, nameless]) as (model, _):
        first, _ = await ask(model, request(tools=[SEARCH]))
        told = (Message("user", "hello"), Message("assistant", None, first.calls))
        second, _ = await ask(model, request(*told, tools=[SEARCH]))
    assert [call.id for call in (*first.calls, *second.calls)] == ["call_0", "call_1"]


async def test_a_server_that_never_ends_its_stream_does_not_hold_up_the_reply() -> None:
    steps = asyncio.Semaphore(2)
    pieces = (b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n', b"data: [DONE]\n\n", b"\n")
    endless = reply_bytes(*pieces, pace=Pace(step=steps))
    async with chat([endless]) as (model, _):
        reply, _ = await ask(model)
    assert reply.text == "Hi"


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_refuses_stream_options_is_not_sent_them_again(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    def strict(body: Any) -> Reply:
        if "stream_options" in body:
            return reply_error(status, "Unknown field: stream_options")
        return reply_text("ok")

    async with chat(strict) as (model, upstream):
        with caplog.at_level(logging.WARNING):
            replies = [(await ask(model))[0].text for _ in range(2)]
    assert replies == ["ok", "ok"]
    assert ["stream_options" in body for body in upstream.requests] == [True, False, False]
    assert [record.message for record in caplog.records] == [
        f"the model m at {upstream.base_url} refuses the field 'stream_options': "
        "it is not sent any more"
    ]


async def test_several_refused_fields_are_left_out_one_after_the_other() -> None:
    def strict(body: Any) -> Reply:
        for name in ("stream_options", "max_tokens"):
            if name in body:
                return reply_error(400, f"'{name}' is not supported")
        if any("reasoning_content" in message for message in body["messages"]):
            return reply_error(400, "property 'reasoning_content' is unsupported")
        return reply_text("ok")

    thought = Message("assistant", "hm", extra={"reasoning_content": "x"})
    async with chat(strict, max_output_tokens=5) as (model, upstream):
        reply, _ = await ask(model, request(thought, Message("user", "go on")))
    assert reply.text == "ok"
    assert upstream.requests[-1] == {
        "model": "m",
        "max_completion_tokens": 5,
        "stream": True,
        "messages": [
            {"role": "assistant", "content": "hm"},
            {"role": "user", "content": "go on"},
        ],
    }


async def test_a_field_is_left_out_for_good_only_if_that_helped() -> None:
    replies = [reply_error(400, "unknown: stream_options"), reply_error(400, "bad anyway")]
    async with chat([*replies, reply_text("ok")]) as (model, upstream):
        error = await failure(model)
        await ask(model)
    assert (type(error), error.code) == (RefusedError, "model.refused")
    assert ["stream_options" in body for body in upstream.requests] == [True, False, True]


async def test_a_cut_behind_a_finished_reply_does_no_harm() -> None:
    chunk = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    cut = reply_bytes(
        b"data: " + json.dumps(chunk).encode() + b"\n\n", b"x", pace=Pace(cut_after=1)
    )
    async with chat([cut]) as (model, _):
        reply, _ = await ask(model)
    assert reply == ModelReply("Hi", finish_reason="stop")


@pytest.mark.requirement("TS-11")
async def test_tools_that_were_sent_before_are_repeated_byte_for_byte() -> None:
    tools = [tool(f"group.tool{number}", f"Tool {number}") for number in range(4)]
    everything = request(tools=tools)
    async with chat([reply_text("ok")] * 3) as (model, upstream):
        for count in (2, 3, 4):
            grown = type(everything)(everything.messages, tuple(tools[:count]), everything.names)
            await ask(model, grown)
    lists = [
        body.partition(b'"tools":')[2].partition(b',"messages"')[0] for body in upstream.bodies
    ]
    assert [json.loads(sent)[-1]["function"]["name"] for sent in lists] == [
        "group__tool1",
        "group__tool2",
        "group__tool3",
    ]
    assert lists[1].startswith(lists[0][:-1] + b",")
    assert lists[2].startswith(lists[1][:-1] + b",")


async def test_calls_of_a_plain_answer_are_read() -> None:
    replies = [reply_calls(("web__search", {"q": "a"}), ("web__search", "{broken"))]
    async with chat(replies, stream=False) as (model, _):
        reply, _ = await ask(model, request(tools=[SEARCH]))
    assert reply.calls == (
        ToolCall("c0", "web.search", '{"q": "a"}'),
        ToolCall("c1", "web.search", "{broken"),
    )
