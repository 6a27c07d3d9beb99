"""What is left out because a service refuses it, for whom, and for how long."""

import itertools
import logging
from dataclasses import replace
from typing import Any

import pytest

from session_runtime.models.faults import RefusedError
from session_runtime.models.http import MAX_LEFT_OUT
from session_runtime.models.http_body import MAX_NAMES, known_by_name, message_fields
from session_runtime.testing.replies import Reply, reply_error, reply_text
from session_runtime.types import Message, ToolCall
from tests.models.building import ask, chat, failure, request, tool

ASKED = Message("user", "go on")
FIELDS = ("stream_options", "max_tokens", "model", "error", "tool_calls.x")


def thought(**extra: Any) -> Message:
    return Message("assistant", "hm", extra=extra)


def strict(body: Any) -> Reply:
    """A service that knows no field of a message beyond role and content."""
    for message in body["messages"]:
        for name in message.keys() - {"role", "content"}:
            return reply_error(400, f"Unknown field in messages: {name}")
    return reply_text("ok")


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize("name", FIELDS)
async def test_a_field_in_one_callers_history_changes_nothing_for_other_asks(name: str) -> None:
    async with chat(strict, max_output_tokens=5) as (model, upstream):
        before, _ = await ask(model)
        reply, _ = await ask(model, request(thought(**{name: "x"}), ASKED))
        after, _ = await ask(model)
    assert {before.text, reply.text, after.text} == {"ok"}
    assert upstream.requests[-1] == upstream.requests[0]
    assert upstream.requests[2] == {
        **upstream.requests[0],
        "messages": [
            {"role": "assistant", "content": "hm"},
            {"role": "user", "content": "go on"},
        ],
    }


@pytest.mark.requirement("SEC-4")
async def test_a_field_that_another_asks_answer_had_is_sent_although_one_was_refused() -> None:
    def picky(body: Any) -> Reply:
        if any(message.get("mood") == "bad" for message in body["messages"]):
            return reply_error(422, "mood is not supported here")
        return reply_text("ok")

    async with chat(picky) as (model, upstream):
        await ask(model, request(thought(mood="bad"), ASKED))
        await ask(model, request(thought(mood="good"), ASKED))
    assert [body["messages"][0].get("mood") for body in upstream.requests] == ["bad", None, "good"]


async def test_what_was_refused_in_a_message_is_left_out_for_the_rest_of_the_ask(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with chat(strict) as (model, upstream):
        asked = request(thought(reasoning_content="x"), ASKED)
        with caplog.at_level(logging.INFO, "session_runtime"):
            first, _ = await ask(model, asked)
            await ask(model, replace(asked, carry=first.carry))
        await ask(model, asked)
    sent = ["reasoning_content" in body["messages"][0] for body in upstream.requests]
    assert sent == [True, False, False, True, False]
    assert [record.message for record in caplog.records] == [
        f"{upstream.base_url} refuses the field 'reasoning_content' of a message: it is left out for "
        "the rest of this ask"
    ]


async def test_fields_of_calls_are_left_out_like_those_of_messages() -> None:
    def no_signature(body: Any) -> Reply:
        calls = [call for m in body["messages"] for call in m.get("tool_calls", ())]
        if any("signature" in call for call in calls):
            return reply_error(400, "signature is unsupported")
        return reply_text("ok")

    call = ToolCall("a", "web.search", "{}", extra={"signature": "s"})
    history = (Message("assistant", None, (call,)), Message("tool", "r", tool_call_id="a"))
    async with chat(no_signature) as (model, upstream):
        reply, _ = await ask(model, request(*history, ASKED, tools=[tool("web.search")]))
    assert (reply.text, len(upstream.requests)) == ("ok", 2)


@pytest.mark.requirement("ASK-9")
async def test_a_request_is_changed_only_a_few_times() -> None:
    extra = {f"field{number}": number for number in range(MAX_LEFT_OUT + 5)}
    async with chat(strict) as (model, upstream):
        error = await failure(model, request(thought(**extra), ASKED))
    assert error.code == "model.refused"
    assert len(upstream.requests) == MAX_LEFT_OUT + 1


@pytest.mark.parametrize("name", ["x" * 1_000_000, "\ud800", "", "(", "a.*"])
async def test_any_name_in_a_history_can_be_sent_and_refused(name: str) -> None:
    replies = [reply_error(400, "Unknown field (: no such thing"), reply_error(400, "still")]
    async with chat(replies) as (model, _):
        error = await failure(model, request(thought(**{name: 1}), ASKED))
    assert error.code == "model.refused"


def test_of_endless_names_in_a_history_only_some_can_be_refused() -> None:
    assert [field.name for field in message_fields(["b", "a", "b"])] == ["message.b", "message.a"]
    assert len(message_fields(f"field{number}" for number in itertools.count())) == MAX_NAMES


UNKNOWN = [
    "Unrecognized request argument supplied: max_tokens",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.",
    'json: unknown field "max_tokens"',
    "unknown field `max_tokens`, expected one of `model`, `messages`",
    '{"detail":[{"type":"extra_forbidden","loc":["body","max_tokens"],'
    '"msg":"Extra inputs are not permitted","input":5}]}',
    "Additional properties are not allowed ('max_tokens' was unexpected)",
    "property 'max_tokens' is unsupported",
    "max_tokens is not a valid field",
    "parameter max_tokens isn't recognised",
    "got an unexpected keyword argument 'max_tokens'",
    '{"error": {"message": "no", "param": "max_tokens", "code": "unsupported_parameter"}}',
    "max_tokens is not supported",
    "this model does not support max_tokens",
]
NOT_UNKNOWN = [
    "max_tokens is too large: 99999. This model supports at most 4096 completion tokens.",
    "max_tokens must be at least 1",
    "'max_tokens' must be less than or equal to 8192",
    "max_tokens of 99999 is not supported: the maximum is 4096",
    "Unsupported value: 'max_tokens' does not support 99999 with this model.",
    '{"error": {"message": "no", "param": "max_tokens", "code": "invalid_value"}}',
    "Invalid value for max_tokens",
    "max_tokens exceeds what is allowed",
    "values of max_tokens above 4096 are not allowed",
    "unexpected value 99999 for max_tokens",
    "Unsupported parameter value: max_tokens",
    "Unknown field: max_tokens_per_call",
    "Unknown field: temperature",
]


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    ("said", "unknown"),
    [*((said, True) for said in UNKNOWN), *((said, False) for said in NOT_UNKNOWN)],
)
def test_only_words_that_call_a_field_unknown_make_it_so(
    status: int, said: str, unknown: bool
) -> None:
    refusal = RefusedError("refused", status=status, said=said)
    assert known_by_name("max_tokens").refused(refusal) is unknown


@pytest.mark.requirement("ASK-9")
async def test_a_value_that_is_too_large_is_told_at_once_and_sent_again_next_time() -> None:
    said = "max_tokens is too large: 99999. This model supports at most 4096 completion tokens."
    replies = [reply_error(400, said), reply_text("ok")]
    async with chat(replies, max_output_tokens=99_999) as (model, upstream):
        error = await failure(model)
        await ask(model)
    assert "max_tokens is too large" in str(error)
    assert [body["max_tokens"] for body in upstream.requests] == [99_999, 99_999]
