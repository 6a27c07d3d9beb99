"""Bodies of Responses requests, compared as whole objects, and what a refusal of one is about."""

import itertools
import json
from typing import Any

import pytest

from session_runtime.models.base import ModelRequest
from session_runtime.models.chat_body import ChatBodyWriter
from session_runtime.models.faults import RefusedError
from session_runtime.models.http_body import Body
from session_runtime.models.responses_body import CHAIN, Chain, ResponsesBodyWriter
from session_runtime.registry.spec import Deprecated
from session_runtime.types import ImagePart, Message, TextPart, ToolCall
from tests.models.building import profile, properties, request, tool
from tests.models.response_items import (
    CALLS,
    INCLUDE,
    ORIGIN,
    THOUGHT,
    answered,
    asked_in_words,
    called,
    kept,
    sent,
    written,
)

CONVERSATION = (
    Message("system", "Be kind."),
    Message("user", (TextPart("What is this?"), ImagePart("data:image/png;base64,AA", "low"))),
    Message(
        "assistant",
        None,
        CALLS,
        extra=kept(THOUGHT, {"type": "function_call"}) | {"reasoning_content": "hm"},
    ),
    Message("tool", "found", tool_call_id="a"),
    Message("tool", (TextPart("one"), ImagePart("https://a.test/b.png")), tool_call_id="b"),
    Message("system", (TextPart("Be brief."), TextPart("Really."))),
    Message("assistant", "A cat."),
    Message("user", "Thanks."),
)


def shown(text: str, url: str, detail: str) -> list[dict[str, Any]]:
    image = {"type": "input_image", "image_url": url, "detail": detail}
    return [{"type": "input_text", "text": text}, image]


@pytest.mark.requirement("ASK-3b")
def test_a_whole_conversation_is_written_as_items() -> None:
    schema = properties("q", q={"type": "string"})
    search = tool("web.search", "Searches.", schema)
    settings = {"temperature": 0.5, "max_output_tokens": 99, "stream": True}
    picture = shown("What is this?", "data:image/png;base64,AA", "low")
    answer = shown("one", "https://a.test/b.png", "auto")
    assert sent(request(*CONVERSATION, tools=[search]), CHAIN, **settings) == {
        "model": "m",
        "temperature": 0.5,
        "max_output_tokens": 99,
        "stream": True,
        "store": False,
        "include": INCLUDE,
        "instructions": "Be kind.\n\nBe brief.\nReally.",
        "tools": [
            {
                "type": "function",
                "name": "web__search",
                "description": "Searches.",
                "parameters": schema,
                "strict": False,
            }
        ],
        "input": [
            {"type": "message", "role": "user", "content": picture},
            THOUGHT,
            called("a", arguments='{"q": "猫"}'),
            called("b", "gone__tool", '{"unreadable_arguments": "{broken"}'),
            {"type": "function_call_output", "call_id": "a", "output": "found"},
            {"type": "function_call_output", "call_id": "b", "output": answer},
            answered("A cat."),
            asked_in_words("Thanks."),
        ],
    }


@pytest.mark.requirement("ASK-3b")
def test_a_chained_turn_sends_what_is_new_under_the_ids_of_the_service_and_all_instructions() -> (
    None
):
    grown = request(
        Message("system", "Be kind."),
        Message("user", "find"),
        Message("assistant", None, (ToolCall("call_0", "web.search", "{}"),)),
        Message("tool", "found", tool_call_id="call_0"),
        tools=[tool("web.search")],
    )
    chain = Chain("resp_1", 3, {"call_0": "x"}, calls=("call_0",))
    assert sent(grown, chain=chain, stream=False) == {
        "model": "m",
        "store": True,
        "include": INCLUDE,
        "previous_response_id": "resp_1",
        "instructions": "Be kind.",
        "tools": sent(grown)["tools"],
        "input": [{"type": "function_call_output", "call_id": "x", "output": "found"}],
    }


@pytest.mark.requirement("RTE-12")
def test_a_deprecated_tool_is_sent_with_what_to_use_instead_as_the_model_knows_it() -> None:
    old = tool("a.old", "Does it.", deprecated=Deprecated("", "a.new"))
    first, _ = json.loads(written(request(tools=[old, tool("a.new")])).content)["tools"]
    assert first["description"] == "Does it.\nDeprecated: use a__new instead."


def test_what_is_not_configured_is_not_sent() -> None:
    assert sent(request(), stream=False) == {
        "model": "m",
        "store": True,
        "include": INCLUDE,
        "input": [asked_in_words("hello")],
    }


def test_fields_of_the_operator_are_added() -> None:
    body = sent(request(), extra_body={"reasoning": {"effort": "low"}})
    assert body["reasoning"] == {"effort": "low"}


@pytest.mark.requirement("ASK-3b")
def test_neither_wire_sends_what_the_other_kept() -> None:
    extra = kept(THOUGHT) | {"reasoning_content": "hm"}
    call = ToolCall("a", "web.search", "{}", extra={"extra_content": {"signature": "s"}})
    asked = request(Message("assistant", "Hi", (call,), extra=extra), tools=[tool("web.search")])
    chat = ChatBodyWriter(profile("http://model.test/v1")).write(asked, frozenset())
    assert json.loads(chat.content)["messages"] == [
        {
            "role": "assistant",
            "content": "Hi",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "web__search", "arguments": "{}"},
                    "extra_content": {"signature": "s"},
                }
            ],
        }
    ]
    assert sent(asked)["input"] == [THOUGHT, answered("Hi"), called("a")]


@pytest.mark.requirement("TS-11")
def test_instructions_and_tools_are_the_same_bytes_in_every_turn_and_only_grow() -> None:
    tools = [tool(f"group.tool{number}", f"Tool {number}") for number in range(4)]
    everything = request(Message("system", "Be kind."), Message("user", "q"), tools=tools)
    writer = ResponsesBodyWriter(profile("http://model.test/v1", stream=False), ORIGIN)
    bodies = [
        writer.write(
            ModelRequest(everything.messages, tuple(tools[:count]), everything.names),
            Chain("resp_1", 1),
            frozenset(),
        ).content.partition(b',"input":')[0]
        for count in (1, 2, 4)
    ]
    assert b'"instructions":"Be kind."' in bodies[0]
    for shorter, longer in itertools.pairwise(bodies):
        assert longer.startswith(shorter.removesuffix(b"]") + b",")


def refusal(said: str, status: int = 400) -> RefusedError:
    return RefusedError("refused", status=status, said=said)


def refused(body: Body, said: str, status: int = 400) -> str | None:
    field = body.refused(refusal(said, status))
    return field.name if field else None


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize(
    "said",
    [
        '{"error": {"message": "gone", "code": "previous_response_not_found"}}',
        '{"error": {"message": "not here", "param": "previous_response_id"}}',
        '{"detail": [{"loc": ["body", "previous_response_id"], "msg": "Extra inputs"}]}',
        "Previous response cannot be used for this organization",
        "Response with id resp_1 does not exist",
        "resp_1: no such thing",
        "unknown response",
        '{"error": {"code": "response_not_found"}}',
        "No tool call found for function call output with call_id a.",
        "No tool output found for function call b.",
        "function_call_output is missing for a call",
        "responses are not kept: store must be false",
    ],
)
def test_a_refused_chain_is_recognised_however_it_is_worded(status: int, said: str) -> None:
    body = written(request(), chain=Chain("resp_1", 0))
    assert refused(body, said, status) == CHAIN


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize(
    "said",
    [
        "",
        "bad",
        "<html>Not Found</html>",
        '{"error": {"message": "Invalid request", "param": null, "code": null}}',
        '{"error": {"message": "invalid_request_error", "param": "input"}}',
        '{"code": "InvalidParameter", "message": "the conversation state is gone"}',
        "this format of response_format is not supported",
    ],
)
def test_a_refusal_that_cannot_be_recognised_may_be_about_the_chain(status: int, said: str) -> None:
    assert refused(written(request(), chain=Chain("resp_1", 0)), said, status) == CHAIN


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("The model m does not exist", 404),
        ('{"error": {"message": "no", "code": "model_not_found"}}', 404),
        ("Invalid schema for function web__search", 400),
        ('{"error": {"message": "no", "code": "invalid_function_parameters"}}', 400),
        ("Incorrect API key provided", 400),
        ('{"error": {"message": "no", "type": "authentication_error"}}', 400),
        ("The prompt was blocked by the content policy", 400),
        ('{"error": {"message": "no", "code": "content_filter"}}', 400),
        ("max_output_tokens is too large: 99999", 400),
        ("previous_response_id", 413),
        ("bad", 413),
    ],
)
def test_a_refusal_that_is_clearly_about_something_else_is_no_refused_chain(
    said: str, status: int
) -> None:
    assert refused(written(request(), chain=Chain("resp_1", 0)), said, status) is None


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("Unknown parameter: include", "include"),
        ("invalid_encrypted_content", "encrypted reasoning"),
        ("Unknown parameter: previous_response_id, include", CHAIN),
    ],
)
def test_in_a_chain_what_a_refusal_names_is_left_out_before_the_chain(
    said: str, field: str
) -> None:
    asked = request(Message("assistant", "Hi", extra=kept(THOUGHT)))
    assert refused(written(asked, chain=Chain("resp_1", 0)), said) == field


@pytest.mark.parametrize("said", ["previous_response_id", "No tool output found for call a"])
def test_a_whole_conversation_has_no_chain_to_refuse(said: str) -> None:
    assert refused(written(request()), said) is None
    assert refused(written(request(), CHAIN), said) is None


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("Encrypted content is not supported with this model; param include", "include"),
        ("unknown field store", "store"),
        ("something else", None),
    ],
)
def test_fields_that_a_service_does_not_know_are_found_in_a_complaint(
    said: str, field: str | None
) -> None:
    assert refused(written(request(), CHAIN), said) == field
    assert refused(written(request(), CHAIN, "include", "store"), said) is None


@pytest.mark.parametrize(
    "said",
    [
        '{"code": "invalid_encrypted_content"}',
        "The encrypted content gAAA could not be verified.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ],
)
def test_reasoning_that_a_service_cannot_read_is_left_out(said: str) -> None:
    asked = request(Message("assistant", "Hi", extra=kept(THOUGHT)))
    body = written(asked, CHAIN)
    field = body.refused(refusal(said))
    assert field is not None
    assert not field.for_good
    assert sent(asked, CHAIN, field.name)["input"] == [answered("Hi")]
