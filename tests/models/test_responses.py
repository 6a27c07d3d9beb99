"""The Responses adapter against a real server: its chain, how that breaks, and what replaces it."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from session_runtime.errors import PermanentError, TransientError
from session_runtime.models.base import Model, ModelReply, ModelRequest
from session_runtime.models.extras import RESPONSES_ITEMS
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    Reply,
    reply_bytes,
    reply_calls,
    reply_error,
    reply_text,
)
from session_runtime.types import Message, ToolCall, Usage
from session_runtime.wire.incoming import message_from_json
from session_runtime.wire.outgoing import message_to_json
from tests.models.building import ask, failure, request, responses, tool

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
TOOLS = (tool("web.search"), tool("mail.send"))
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "status": "completed",
    "summary": [],
    "encrypted_content": "gAAA",
}
KEPT_THOUGHT = {name: value for name, value in THOUGHT.items() if name != "status"}
SEARCHES = ChatReply(calls=(Call("web__search", "{}", "c0"),), items=(THOUGHT,))
OPENING = (Message("system", "Be kind."), Message("user", "find it"))
BOTH = pytest.mark.parametrize("stream", [True, False])


def opening(tools: int = 1) -> ModelRequest:
    asked = request(*OPENING, tools=TOOLS)
    return replace(asked, tools=TOOLS[:tools])


def after(asked: ModelRequest, reply: ModelReply, tools: int = 2) -> ModelRequest:
    """The next turn: every call answered, the list of tools grown."""
    turn = [
        Message("assistant", reply.text or None, reply.calls, extra=reply.extra),
        *(Message("tool", f"result {call.id}", tool_call_id=call.id) for call in reply.calls),
    ]
    messages = (*asked.messages, *turn)
    return ModelRequest(messages, TOOLS[:tools], asked.names, reply.carry)


async def turns(model: Model, count: int) -> list[ModelReply]:
    """The replies to so many turns of one ask."""
    asked, replies = opening(), []
    for _ in range(count):
        reply, told = await ask(model, asked)
        assert "".join(told) == reply.text
        replies.append(reply)
        asked = after(asked, reply)
    return replies


def question() -> dict[str, Any]:
    content = [{"type": "input_text", "text": "find it"}]
    return {"type": "message", "role": "user", "content": content}


def call_item(call_id: str) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id}
    return {**item, "name": "web__search", "arguments": "{}"}


def output_item(call_id: str, text: str | None = None) -> dict[str, Any]:
    output = text or f"result {call_id}"
    return {"type": "function_call_output", "call_id": call_id, "output": output}


@pytest.mark.requirement("ASK-3b")
@BOTH
async def test_a_reply_is_read_and_its_text_told_as_it_arrives(stream: bool) -> None:
    async with responses([reply_text("one two", usage=USAGE)], stream=stream) as (model, _):
        reply, told = await ask(model)
    assert replace(reply, carry=None) == ModelReply(
        "one two", usage=Usage(7, 3, model_calls=1), finish_reason="stop"
    )
    assert told == (["one ", "two"] if stream else ["one two"])


@pytest.mark.requirement("ASK-3b")
@BOTH
async def test_turns_are_chained_with_what_is_new_and_the_grown_list(stream: bool) -> None:
    async with responses([SEARCHES, SEARCHES, reply_text("done")], stream=stream) as (model, up):
        replies = await turns(model, 3)
    first, second, third = up.requests
    assert replies[2].text == "done"
    assert [body.get("previous_response_id") for body in up.requests] == [None, "resp_1", "resp_2"]
    assert all(body["store"] is True for body in up.requests)
    assert {body["instructions"] for body in up.requests} == {"Be kind."}
    assert (first["input"], second["input"]) == ([question()], [output_item("c0")])
    assert [tool["name"] for tool in first["tools"]] == ["web__search"]
    assert [tool["name"] for tool in second["tools"]] == ["web__search", "mail__send"]
    assert second["tools"] == third["tools"]


@pytest.mark.requirement("ASK-3b")
async def test_a_call_id_that_comes_again_is_changed_for_us_and_kept_for_the_service() -> None:
    async with responses([SEARCHES, SEARCHES, reply_text("done")]) as (model, up):
        replies = await turns(model, 3)
    assert [reply.calls[0].id for reply in replies[:2]] == ["c0", "call_0"]
    assert up.requests[2]["input"] == [output_item("c0", "result call_0")]


@pytest.mark.requirement("ASK-3b")
async def test_without_a_chain_each_turn_sends_everything_and_nothing_is_stored() -> None:
    async with responses([SEARCHES, SEARCHES, reply_text("done")], chain=False) as (model, up):
        await turns(model, 3)
    assert all("previous_response_id" not in body for body in up.requests)
    assert all(body["store"] is False for body in up.requests)
    assert up.requests[2]["input"] == [
        question(),
        KEPT_THOUGHT,
        call_item("c0"),
        output_item("c0"),
        KEPT_THOUGHT,
        call_item("call_0"),
        output_item("call_0"),
    ]


def forgetful(request: Any) -> Reply:
    """A service that searches once, and knows no response that it gave."""
    if "previous_response_id" in request:
        return reply_error(400, "no such response", code="previous_response_not_found")
    found = any(item["type"] == "function_call_output" for item in request["input"])
    return reply_text("done") if found else SEARCHES


@pytest.mark.requirement("ASK-3b")
@BOTH
async def test_a_refused_chain_is_replaced_by_the_whole_conversation_for_the_rest_of_the_ask(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with responses(forgetful, stream=stream) as (model, up):
        with caplog.at_level(logging.INFO, "session_runtime"):
            replies = await turns(model, 3)
    assert [reply.text for reply in replies] == ["", "done", "done"]
    assert [
        (body.get("previous_response_id"), body["store"], len(body["input"]))
        for body in up.requests
    ] == [(None, True, 1), ("resp_1", True, 1), (None, False, 4), (None, False, 5)]
    assert up.requests[2]["input"] == [
        question(),
        KEPT_THOUGHT,
        call_item("c0"),
        output_item("c0"),
    ]
    assert len(up.requests[2]["tools"]) == 2
    assert ["refuses to chain turns" in record.message for record in caplog.records] == [True]


async def test_the_next_ask_tries_the_chain_again() -> None:
    async with responses(forgetful) as (model, up):
        for _ in range(2):
            await turns(model, 2)
    assert [body["store"] for body in up.requests] == [True, True, False] * 2


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize(
    "refused",
    [
        b'data: {"type": "error", "code": "previous_response_not_found", "message": "gone"}\n\n',
        b'event: error\ndata: {"error": {"message": "gone", "param": "previous_response_id", '
        b'"type": "invalid_request_error"}}\n\n',
        b'data: {"type": "response.failed", "response": {"error": {"code": "invalid_request", '
        b'"message": "No tool call found for function call output"}}}\n\n',
    ],
)
async def test_a_chain_can_be_refused_inside_a_success(refused: bytes) -> None:
    async with responses([SEARCHES, reply_bytes(refused), reply_text("done")]) as (model, _):
        replies = await turns(model, 2)
    assert replies[1].text == "done"


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize(
    ("second", "kind", "code"),
    [
        (reply_error(401, "who are you"), PermanentError, "model.unauthorized"),
        (reply_error(429, "slow down"), TransientError, "model.rate_limited"),
        (reply_error(400, "No tool output found for function call c0."), None, "model.refused"),
    ],
)
async def test_if_the_whole_conversation_fails_too_its_error_counts(
    second: Reply, kind: type[Exception] | None, code: str
) -> None:
    gone = reply_error(404, "gone", code="previous_response_not_found")
    async with responses([SEARCHES, gone, second]) as (model, up):
        reply, _ = await ask(model, opening())
        error = await failure(model, after(opening(), reply))
    assert error.code == code
    assert kind is None or type(error) is kind
    assert len(up.requests) == 3


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("answer", [{"store": False, "id": "resp_1"}, {"id": None}, {}])
async def test_a_service_that_keeps_no_responses_is_not_asked_to_chain(answer: Any) -> None:
    item = {"type": "function_call", "call_id": "c0", "name": "web__search", "arguments": "{}"}
    whole = str({**answer, "object": "response", "output": [item]})
    body = whole.replace("'", '"').replace("None", "null").replace("False", "false").encode()
    async with responses([reply_bytes(body), reply_text("done")]) as (model, up):
        await turns(model, 2)
    assert [(body["store"], len(body["input"])) for body in up.requests] == [(True, 1), (False, 3)]


@pytest.mark.requirement("ASK-3b")
async def test_a_call_of_the_chain_that_got_lost_is_answered_by_the_whole_conversation() -> None:
    lost = ChatReply(calls=(Call("web__search", "{}", "c0"), Call("", "", "c1")))
    async with responses([lost, reply_text("done")]) as (model, up):
        replies = await turns(model, 2)
    assert [call.id for call in replies[0].calls] == ["c0"]
    assert replies[1].text == "done"
    assert len(up.requests) == 3


@pytest.mark.requirement("ASK-3b")
async def test_a_call_whose_ask_was_cancelled_is_in_no_later_request() -> None:
    async with responses([SEARCHES, reply_text("done")]) as (model, up):
        await ask(model, opening())
        reply, _ = await ask(model, request(Message("user", "another question")))
    assert reply.text == "done"
    assert b"c0" not in up.bodies[1]
    assert "previous_response_id" not in up.requests[1]


@pytest.mark.requirement("ASK-3b")
@BOTH
async def test_reasoning_goes_through_a_caller_into_the_history_of_the_next_ask(
    stream: bool,
) -> None:
    async with responses([SEARCHES, reply_text("ok")], stream=stream) as (model, up):
        reply, _ = await ask(model, opening())
        messages = after(opening(), reply).messages
        history = tuple(message_from_json(message_to_json(message)) for message in messages)
        await ask(model, request(*history, Message("user", "find it"), tools=TOOLS))
    assert up.requests[1]["input"] == [
        question(),
        KEPT_THOUGHT,
        call_item("c0"),
        output_item("c0"),
        question(),
    ]
    assert reply.extra[RESPONSES_ITEMS]["items"] == [KEPT_THOUGHT, {"type": "function_call"}]


async def test_reasoning_is_not_sent_to_another_model_or_service() -> None:
    async with responses([SEARCHES]) as (model, _):
        reply, _ = await ask(model, opening())
    async with responses([reply_text("ok")], model="other") as (other, up):
        await ask(other, replace(after(opening(), reply), carry=None))
    assert up.requests[0]["input"] == [question(), call_item("c0"), output_item("c0")]


@pytest.mark.requirement("ASK-3b")
async def test_nobody_can_make_a_message_chain_to_a_response() -> None:
    extra = {"previous_response_id": "resp_1", "id": "resp_1", "store": True}
    forged = Message(
        "assistant", "hi", (ToolCall("a", "web.search", "{}", extra=extra),), None, extra
    )
    result = Message("tool", "r", tool_call_id="a", extra=extra)
    async with responses([reply_text("ok")]) as (model, up):
        await ask(model, request(Message("user", "q", extra=extra), forged, result, tools=TOOLS))
    assert b"resp_1" not in up.bodies[0]


def plain(request: Any) -> Reply:
    """A service that knows neither encrypted reasoning nor storing."""
    if "include" in request:
        said = "Encrypted content is not supported with this model."
        return reply_error(400, said, param="include")
    if request.get("store") is False:
        return reply_error(400, "Unknown parameter", param="store")
    return reply_text("ok")


async def test_fields_that_a_service_does_not_know_are_not_sent_to_it_again() -> None:
    async with responses(plain, chain=False) as (model, up):
        replies = [(await ask(model))[0].text for _ in range(2)]
    assert replies == ["ok", "ok"]
    known = [sorted({"include", "store"} & body.keys()) for body in up.requests]
    assert known == [["include", "store"], ["store"], [], []]


async def test_reasoning_that_the_service_cannot_read_is_left_out_for_the_rest_of_the_ask() -> None:
    def picky(request: Any) -> Reply:
        if any(item["type"] == "reasoning" for item in request["input"]):
            return reply_error(400, "could not be verified", code="invalid_encrypted_content")
        return SEARCHES if len(request["input"]) == 1 else reply_text("ok")

    async with responses(picky, chain=False) as (model, up):
        await turns(model, 3)
        await turns(model, 2)
    reasoned = [KEPT_THOUGHT in body["input"] for body in up.requests]
    assert reasoned == [False, True, False, False, False, True, False]


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("refusal", [reply_error(404, "bad"), reply_bytes(b"", status=400)])
async def test_a_chain_that_is_refused_without_a_clear_reason_is_replaced_once(
    refusal: Reply,
) -> None:
    async with responses([SEARCHES, refusal, reply_text("done")]) as (model, up):
        replies = await turns(model, 2)
    assert replies[1].text == "done"
    assert [(body["store"], len(body["input"])) for body in up.requests] == [
        (True, 1),
        (True, 1),
        (False, 4),
    ]


@pytest.mark.requirement("ASK-3b")
async def test_a_refusal_that_meets_the_whole_conversation_too_is_final() -> None:
    async with responses([SEARCHES, *[reply_error(400, "bad")] * 9]) as (model, up):
        reply, _ = await ask(model, opening())
        error = await failure(model, after(opening(), reply))
    assert error.code == "model.refused"
    assert len(up.requests) == 3


async def test_a_refusal_that_is_clearly_about_something_else_is_final() -> None:
    gone = reply_error(404, "The model m does not exist")
    async with responses([SEARCHES, gone]) as (model, up):
        reply, _ = await ask(model, opening())
        error = await failure(model, after(opening(), reply))
    assert error.code == "model.refused"
    assert len(up.requests) == 2


async def test_a_reply_of_another_adapter_is_no_chain() -> None:
    async with responses([reply_text("ok")]) as (model, up):
        await ask(model, replace(opening(), carry="resp_1"))
    assert up.requests[0]["input"] == [question()]
    assert "previous_response_id" not in up.requests[0]


@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_stream_that_is_cut_or_ends_early_may_be_whole_next_time(pieces: int) -> None:
    delta = b'data: {"type": "response.output_text.delta", "delta": "H"}\n\n'
    async with responses([reply_bytes(*[delta] * pieces)]) as (model, _):
        error = await failure(model)
    assert (type(error), error.code) == (TransientError, "model.broken_reply")


async def test_calls_made_side_by_side_are_answered_side_by_side() -> None:
    two = reply_calls(("web__search", {"q": "a"}), ("mail__send", "{broken"))
    async with responses([two, reply_text("done")]) as (model, up):
        replies = await turns(model, 2)
    assert replies[0].calls == (
        ToolCall("c0", "web.search", '{"q": "a"}'),
        ToolCall("c1", "mail.send", "{broken"),
    )
    assert up.requests[1]["input"] == [output_item("c0"), output_item("c1")]
