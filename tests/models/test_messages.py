"""Turns on the wire ``anthropic`` against a real server that keeps the rules of the protocol."""

import json
from dataclasses import replace

import pytest

from session_runtime.models.base import ModelReply
from session_runtime.models.extras import MESSAGES_BLOCKS
from session_runtime.models.places import origin_of
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    RawReply,
    Reply,
    reply_calls,
    reply_text,
)
from session_runtime.types import Message, ToolCall, Usage
from tests.models.building import ask, failure, messages, profile, properties, request, tool

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s1"}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def refusal(status: int, said: str, kind: str = "invalid_request_error") -> RawReply:
    body = {"type": "error", "error": {"type": kind, "message": said}}
    return RawReply((json.dumps(body).encode(),), status, {"content-type": "application/json"})


def answered(reply: ModelReply) -> Message:
    return Message("assistant", reply.text or None, reply.calls, extra=reply.extra)


@pytest.mark.requirement("ASK-3c")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_is_read_and_its_text_told_as_it_arrives(stream: bool) -> None:
    said = ChatReply("one two", (Call("web__search", '{"q": "x"}', "a"),), USAGE, "tool_calls")
    async with messages([said], stream=stream) as (model, _):
        reply, told = await ask(model, request(tools=[tool("web.search")]))
    assert replace(reply, carry=None) == ModelReply(
        "one two",
        (ToolCall("a", "web.search", '{"q": "x"}'),),
        Usage(input_tokens=7, output_tokens=3, cached_tokens=4, model_calls=1),
        "tool_calls",
    )
    assert told == (["one ", "two"] if stream else ["one two"])


@pytest.mark.requirement("ASK-3c")
@pytest.mark.parametrize("stream", [True, False])
async def test_thoughts_go_back_with_what_they_led_to(stream: bool) -> None:
    thinks = ChatReply("Wait.", (Call("t", "{}", "a"),), items=(THOUGHT,))
    async with messages([thinks, reply_text("ok")], stream=stream) as (model, upstream):
        first, _ = await ask(model, request(tools=[tool("t")]))
        result = Message("tool", "found", tool_call_id="a")
        asked = request(Message("user", "hello"), answered(first), result, tools=[tool("t")])
        await ask(model, replace(asked, carry=first.carry))
    assert upstream.requests[1]["messages"][1]["content"] == [
        THOUGHT,
        {"type": "text", "text": "Wait."},
        {"type": "tool_use", "id": "a", "name": "t", "input": {}},
    ]


async def test_thoughts_that_the_service_cannot_read_are_left_out_for_the_rest_of_the_ask() -> None:
    bad = refusal(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
    replies: list[Reply] = [reply_text("ok", usage=USAGE), bad, reply_text("a"), reply_text("b")]
    async with messages(replies, stream=False) as (model, upstream):
        first, _ = await ask(model)
        origin = origin_of(profile(upstream.base_url))
        kept = {MESSAGES_BLOCKS: {"origin": origin, "blocks": [THOUGHT]}}
        said = replace(answered(first), extra=kept)
        asked = request(Message("user", "x"), said, Message("user", "y"))
        second, _ = await ask(model, replace(asked, carry=first.carry))
        await ask(model, replace(asked, carry=second.carry))
    kinds = [
        [block["type"] for block in sent["messages"][1]["content"]]
        for sent in upstream.requests[1:]
    ]
    assert kinds == [["thinking", "text"], ["text"], ["text"]]


async def test_a_service_that_knows_no_cache_is_not_asked_again_to_remember() -> None:
    unknown = refusal(400, "system.0.cache_control: Extra inputs are not permitted")
    async with messages([unknown, reply_text("a"), reply_text("b")]) as (model, upstream):
        await ask(model)
        await ask(model)
    marked = ["cache_control" in body.decode() for body in upstream.bodies]
    assert marked == [True, False, False]


async def test_a_tool_gets_its_arguments_under_its_own_names() -> None:
    odd = tool("t", parameters=properties("$top", **{"$top": {"type": "integer"}}))
    async with messages([reply_calls(("t", {"_top": 5})), reply_text("ok")]) as (model, upstream):
        reply, _ = await ask(model, request(tools=[odd]))
        assert json.loads(reply.calls[0].arguments) == {"$top": 5}
        result = Message("tool", "found", tool_call_id=reply.calls[0].id)
        await ask(model, request(Message("user", "x"), answered(reply), result, tools=[odd]))
    assert upstream.requests[1]["messages"][1]["content"][0]["input"] == {"_top": 5}


@pytest.mark.parametrize(
    ("status", "kind", "said", "code"),
    [
        (529, "overloaded_error", "Overloaded", "model.unavailable"),
        (429, "rate_limit_error", "slow down", "model.rate_limited"),
        (401, "authentication_error", "invalid x-api-key", "model.unauthorized"),
        (400, "invalid_request_error", "prompt is too long: 9 > 8", "model.context_too_long"),
        (404, "not_found_error", "model: m", "model.refused"),
    ],
)
async def test_what_the_service_says_is_classified(
    status: int, kind: str, said: str, code: str
) -> None:
    async with messages([refusal(status, said, kind)]) as (model, _):
        assert (await failure(model)).code == code
