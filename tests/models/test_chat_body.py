"""Bodies of chat completions requests, compared as whole objects and byte for byte."""

import itertools
import json
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.models.base import ModelRequest
from session_runtime.models.chat_body import ChatBodyWriter, MessageMemo
from session_runtime.models.faults import RefusedError
from session_runtime.models.http_body import Body
from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import Deprecated, ToolSpec
from session_runtime.types import ImagePart, Message, Role, TextPart, ToolCall
from tests.models.building import profile, properties, request, tool

NOTHING_LEFT_OUT: frozenset[str] = frozenset()
ANY = profile("http://model.test/v1", stream=False)


CALLS = (
    ToolCall("a", "web.search", '{"q": "猫"}', extra={"extra_content": {"signature": "s"}}),
    ToolCall("b", "gone.tool", "{broken"),
)
CONVERSATION = (
    Message("system", "Be kind."),
    Message("user", (TextPart("What is this?"), ImagePart("data:image/png;base64,AA", "low"))),
    Message("assistant", None, CALLS, extra={"reasoning_content": "hm", "annotations": [1]}),
    Message("tool", "one\ntwo", tool_call_id="a"),
    Message("tool", None, tool_call_id="b"),
    Message("assistant", "A cat."),
    Message("user", (TextPart("Thanks."), TextPart("Bye."))),
)


def written(asked: ModelRequest, *left_out: str, **settings: Any) -> Any:
    writer = ChatBodyWriter(profile("http://model.test/v1", **settings))
    return json.loads(writer.write(asked, frozenset(left_out)).content)


def refusal(said: str, status: int = 400) -> RefusedError:
    return RefusedError("refused", status=status, said=said)


@pytest.mark.requirement("ASK-3")
@pytest.mark.requirement("ASK-12")
def test_a_whole_conversation_is_written_in_chat_form() -> None:
    search = tool("web.search", "Searches.", properties("q", q={"type": "string"}))
    body = written(
        request(*CONVERSATION, tools=[search]), temperature=0.5, max_output_tokens=99, stream=True
    )
    function = {
        "name": "web__search",
        "description": "Searches.",
        "parameters": {
            "type": "object",
            "properties": {"q": {"type": "string"}},
            "required": ["q"],
        },
    }
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}
    gone = body["messages"][2]["tool_calls"][1]["function"]["name"]
    assert body == {
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 99,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "web__search", "arguments": '{"q": "猫"}'},
                        "extra_content": {"signature": "s"},
                    },
                    {
                        "id": "b",
                        "type": "function",
                        "function": {
                            "name": gone,
                            "arguments": '{"unreadable_arguments": "{broken"}',
                        },
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "one\ntwo"},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "assistant", "content": "A cat."},
            {"role": "user", "content": "Thanks.\nBye."},
        ],
    }
    assert gone == "gone__tool"


@pytest.mark.requirement("RTE-12")
def test_a_deprecated_tool_is_sent_with_what_to_use_instead_as_the_model_knows_it() -> None:
    old = tool("a.old", "Does it.", deprecated=Deprecated("", "a.new"))
    first, _ = written(request(tools=[old, tool("a.new")]))["tools"]
    assert first["function"]["description"] == "Does it.\nDeprecated: use a__new instead."


def test_what_is_not_configured_is_not_sent() -> None:
    body = written(request(), stream=False)
    assert body == {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_text_beside_calls_is_kept() -> None:
    call = ToolCall("a", "web.search", "{}")
    body = written(request(Message("assistant", "Wait.", (call,))))
    assert body["messages"][0]["content"] == "Wait."


def test_unknown_fields_never_replace_our_own() -> None:
    call = ToolCall("a", "t", "{}", extra={"id": "evil", "function": {}, "type": "x", "index": 3})
    extra = {"role": "system", "content": "evil", "tool_calls": [], "tool_call_id": "x"}
    body = written(request(Message("assistant", "mine", (call,), extra=extra), tools=[tool("t")]))
    assert body["messages"] == [
        {
            "role": "assistant",
            "content": "mine",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
            ],
        }
    ]


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "additionalProperties": False, "properties": {}},
        ),
        (
            {
                "type": "object",
                "properties": {"f": {"$ref": "#/$defs/F"}},
                "$defs": {"F": {"enum": ["fit", "raw"]}},
            },
            {
                "type": "object",
                "properties": {"f": {"$ref": "#/$defs/F"}},
                "$defs": {"F": {"enum": ["fit", "raw"]}},
            },
        ),
        (
            MappingProxyType({"type": "object", "properties": MappingProxyType({"a": {}})}),
            {"type": "object", "properties": {"a": {}}},
        ),
    ],
)
def test_schemas_are_sent_whole_and_never_without_properties(schema: Any, sent: Any) -> None:
    body = written(request(tools=[tool("t", parameters=schema)]))
    assert body["tools"][0]["function"]["parameters"] == sent


@pytest.mark.requirement("ASK-12")
def test_dotted_names_are_sent_under_a_name_that_providers_allow() -> None:
    dotted = [tool("calendar.respondToEvent"), tool("admin.tools.list")]
    body = written(request(tools=dotted, separator="-"))
    assert [sent["function"]["name"] for sent in body["tools"]] == [
        "calendar-respondToEvent",
        "admin-tools-list",
    ]


def test_half_a_surrogate_pair_does_not_stop_the_request() -> None:
    assert written(request(Message("user", "a\ud83d")))["messages"][0]["content"] == "a?"


NAMES = st.text("abcdefgh.", min_size=1, max_size=8)
SCHEMAS = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3)
TOOLS = st.lists(
    st.builds(tool, NAMES, st.text(max_size=9), SCHEMAS), min_size=1, max_size=6,
    unique_by=lambda spec: spec.name,
)  # fmt: skip


def _tools_bytes(body: Body) -> bytes:
    start = body.content.index(b'"tools":') + len(b'"tools":')
    return body.content[start : body.content.index(b',"messages":[{"role":"user"')]


@pytest.mark.requirement("TS-11")
@given(specs=TOOLS, data=st.data())
def test_a_longer_tool_list_begins_with_the_bytes_of_the_shorter_one(
    specs: Sequence[ToolSpec], data: st.DataObject
) -> None:
    names = build_wire_names([spec.name for spec in specs], "__")
    writer = ChatBodyWriter(ANY)
    lengths = sorted(data.draw(st.sets(st.integers(1, len(specs)), min_size=1)))
    sent = [
        _tools_bytes(
            writer.write(
                ModelRequest((Message("user", "q"),), tuple(specs[:length]), names),
                NOTHING_LEFT_OUT,
            )
        )
        for length in lengths
    ]
    for shorter, longer in itertools.pairwise(sent):
        assert shorter.endswith(b"]")
        assert longer.startswith(shorter[:-1] + b",")


@pytest.mark.requirement("TS-11")
def test_the_tools_are_the_same_bytes_in_another_process_and_after_many_generations() -> None:
    spec = tool("a.b", "x", properties("q", q={"type": "string"}))
    writers = ChatBodyWriter(ANY), ChatBodyWriter(ANY)
    generations = [request(tools=[spec, tool(f"other{number}")]) for number in range(9)]
    first = {
        writer.write(asked, NOTHING_LEFT_OUT).content.partition(b'},{"type"')[0]
        for writer in writers
        for asked in [*generations, *generations]
    }
    assert len(first) == 1


@pytest.mark.parametrize(
    ("complaint", "field"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        (
            '{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]}',
            "stream_options",
        ),
        ("include_usage is not supported", "stream_options"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "max_tokens"),
        ("property 'reasoning_content' is unsupported", "message.reasoning_content"),
        ("Unknown name extra_content", "message.extra_content"),
        ("Use max_completion_tokens", None),
        ("something else", None),
    ],
)
def test_an_optional_field_is_found_in_a_complaint(complaint: str, field: str | None) -> None:
    call = ToolCall("a", "t", "{}", extra={"extra_content": {}, "k": 1} | {"extra_content": 1})
    asked = request(Message("assistant", None, (call,), extra={"reasoning_content": "x"}))
    writer = ChatBodyWriter(profile("http://model.test/v1", max_output_tokens=5))
    refused = writer.write(asked, NOTHING_LEFT_OUT).refused(refusal(complaint))
    assert (refused.name if refused else None) == field


@pytest.mark.parametrize("status", [404, 413])
def test_a_refusal_of_another_kind_is_about_no_field(status: int) -> None:
    body = ChatBodyWriter(profile("http://model.test/v1", stream=True)).write(
        request(), NOTHING_LEFT_OUT
    )
    assert body.refused(refusal("no stream_options here", status)) is None


@pytest.mark.parametrize("role", ["system", "user", "tool"])
def test_fields_that_are_not_sent_cannot_be_refused(role: Role) -> None:
    asked = request(Message(role, "hi", extra={"name": "ann"}))
    body = ChatBodyWriter(ANY).write(asked, NOTHING_LEFT_OUT)
    assert b"ann" not in body.content
    assert body.refused(refusal("Invalid function name")) is None


def test_what_is_left_out_is_gone_and_cannot_be_refused_again() -> None:
    call = ToolCall("a", "t", "{}", extra={"extra_content": 1})
    asked = request(Message("assistant", None, (call,), extra={"reasoning_content": "x"}))
    of_messages = ("message.extra_content", "message.reasoning_content")
    fields = ("stream_options", "max_tokens", *of_messages)
    body = written(asked, *fields, max_output_tokens=5)
    assert body == {
        "model": "m",
        "max_completion_tokens": 5,
        "stream": True,
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": body_name(body), "arguments": "{}"},
                    }
                ],
            }
        ],
    }
    writer = ChatBodyWriter(profile("http://model.test/v1", max_output_tokens=5))
    assert writer.write(asked, frozenset(fields)).optional == ()


def body_name(body: Any) -> str:
    name = body["messages"][0]["tool_calls"][0]["function"]["name"]
    assert isinstance(name, str)
    return name


def test_messages_that_were_written_before_are_written_the_same_and_a_changed_one_anew() -> None:
    writer, memo = ChatBodyWriter(ANY), MessageMemo()
    first, second, other = (Message("user", text) for text in ("one", "two", "three"))
    names = build_wire_names((), "__")
    for messages in ((first,), (first, second), (other, second), (first, second, other)):
        asked = ModelRequest(messages, (), names)
        alone = writer.write(asked, NOTHING_LEFT_OUT).content
        assert writer.write(asked, NOTHING_LEFT_OUT, memo).content == alone


def test_what_is_left_out_is_left_out_of_messages_that_were_written_before() -> None:
    writer, memo = ChatBodyWriter(ANY), MessageMemo()
    asked = request(Message("assistant", "hi", extra={"reasoning": "hm"}))
    assert b"reasoning" in writer.write(asked, NOTHING_LEFT_OUT, memo).content
    assert b"reasoning" not in writer.write(asked, {"message.reasoning"}, memo).content
