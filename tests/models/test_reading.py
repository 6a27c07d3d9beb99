"""Replies from the bytes that servers send: streamed, whole, odd, broken."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import PermanentError
from session_runtime.models.base import ModelReply
from session_runtime.models.reading import ReplyReader
from session_runtime.models.stream import ReplyAssembly
from session_runtime.types import ToolCall, Usage
from tests.models.chat_chunks import EVENTS, WHERE, piece, read, stream

A, B = '{"q": "a"}', '{"q": "b"}'
TWO = (ToolCall("x", "web.search", A), ToolCall("y", "web.search", B))
UNNAMED = (ToolCall("call_0", "web.search", A), ToolCall("call_1", "web.search", B))
ONE = (ToolCall("x", "web.search", A),)

ODD_CALLS: dict[str, tuple[list[Any], tuple[ToolCall, ...]]] = {
    "indexes and ids as documented": (
        [
            [piece("web__search", "", index=0, id="x", type="function")],
            [piece(None, '{"q": ', index=0)],
            [piece("web__search", "", index=1, id="y", type="function")],
            [piece(None, '"a"}', index=0)],
            [piece(None, B, index=1)],
        ],
        TWO,
    ),
    "several calls in one delta": (
        [[piece("web__search", A, index=0, id="x"), piece("web__search", B, index=1, id="y")]],
        TWO,
    ),
    "all calls share index 0 and differ by id": (
        [[piece("web__search", A, index=0, id="x")], [piece("web__search", B, index=0, id="y")]],
        TWO,
    ),
    "a shared index, and only the first call has a name": (
        [[piece("web__search", A, index=0, id="x")], [piece(None, B, index=0, id="y")]],
        (ToolCall("x", "web.search", A), ToolCall("y", "", B)),
    ),
    "no index, ids differ": (
        [[piece("web__search", A, id="x")], [piece("web__search", B, id="y")]],
        TWO,
    ),
    "no index, the id is repeated in each piece": (
        [
            [piece("web__search", '{"q": ', id="x")],
            [piece(None, '"a"}', id="x")],
            [piece("web__search", B, id="y")],
        ],
        TWO,
    ),
    "no index and no id, one call per delta": (
        [[piece("web__search", A)], [piece("web__search", B)]],
        UNNAMED,
    ),
    "no index and no id, arguments in pieces": (
        [[piece("web__search", '{"q": ')], [piece(None, '"a"}')], [piece("web__search", B)]],
        UNNAMED,
    ),
    "index 0 and no id for both": (
        [[piece("web__search", A, index=0)], [piece("web__search", B, index=0)]],
        UNNAMED,
    ),
    "indexes are texts": (
        [
            [
                piece("web__search", '{"q": ', index="0", id="x"),
                piece("web__search", '{"q": ', index="1", id="y"),
            ],
            [piece(None, '"a"}', index="0"), piece(None, '"b"}', index="1")],
        ],
        TWO,
    ),
    "indexes are texts, and there are no ids": (
        [
            [piece("web__search", '{"q": ', index="0"), piece("web__search", '{"q": ', index="1")],
            [piece(None, '"a"}', index="0"), piece(None, '"b"}', index="1")],
        ],
        UNNAMED,
    ),
    "indexes are numbers with a point": (
        [
            [piece("web__search", '{"q": ', index=0.0), piece("web__search", '{"q": ', index=1.0)],
            [piece(None, '"a"}', index=0.0), piece(None, '"b"}', index=1.0)],
        ],
        UNNAMED,
    ),
    "a new index in each piece of one call": (
        [
            [piece("web__search", '{"q"', index=0, id="x")],
            [piece(None, ": ", index=1, id="x")],
            [piece(None, '"a', index=1)],
            [piece(None, '"}', index=2, id="x")],
        ],
        ONE,
    ),
    "a new index for the second call, whose id is that of the first and whose name is late": (
        [
            [piece("web__search", A, index=0, id="x")],
            [piece(None, B, index=1, id="x")],
            [piece("web__search", None, index=1)],
        ],
        (ToolCall("x", "web.search", A), ToolCall("call_0", "web.search", B)),
    ),
    "the index counts pieces, of which the first alone has an id": (
        [
            [piece("web__search", "", index=0, id="x")],
            [piece(None, '{"q": ', index=1)],
            [piece(None, '"a"}', index=2, id="")],
            [piece("web__search", "", index=3, id="y")],
            [piece(None, B, index=4)],
        ],
        TWO,
    ),
    "the index counts pieces, each with id and name, and the last says nothing": (
        [
            [piece("web__search", "", index=0, id="x")],
            [piece("web__search", '{"q": ', index=1, id="x")],
            [piece("web__search", '"a"}', index=2, id="x")],
            [piece("web__search", "", index=3, id="x")],
        ],
        ONE,
    ),
    "pieces of two calls with one id come by turns": (
        [
            [piece("web__search", "", index=0, id="x"), piece("mail__send", "", index=1, id="x")],
            [piece(None, A, index=0, id="x"), piece(None, B, index=1, id="x")],
        ],
        (ToolCall("x", "web.search", A), ToolCall("call_0", "mail.send", B)),
    ),
    "indexes are words, and only the first pieces have an id": (
        [
            [piece("web__search", "", index="one", id="x")],
            [piece("web__search", "", index="two", id="y")],
            [piece(None, A, index="one"), piece(None, B, index="two")],
        ],
        TWO,
    ),
    "arguments are called parameters": (
        [[piece("web__search", None, index=0, id="x", parameters={"q": "a"})]],
        ONE,
    ),
    "a call without a function around it": (
        [[{"index": 0, "id": "x", "name": "web__search", "arguments": A}]],
        ONE,
    ),
    "a call without a list around it": (
        [{"tool_calls": piece("web__search", A, index=0, id="x")}],
        ONE,
    ),
    "the arguments stand in the older form alone": (
        [
            [piece("web__search", "", index=0, id="x")],
            {"function_call": {"name": "web__search", "arguments": A}},
        ],
        ONE,
    ),
    "the name is repeated in each piece": (
        [
            [piece("web__search", '{"q": ', index=0, id="x")],
            [piece("web__search", '"a"}', index=0, id="x")],
            [piece("web__search", "", index=0, id="x")],
        ],
        ONE,
    ),
    "a new id in each piece of one call": (
        [
            [piece("web__search", '{"q": ', index=0, id="x")],
            [piece(None, '"a"}', index=0, id="z")],
        ],
        ONE,
    ),
    "the name comes after the arguments": (
        [[piece(None, A, index=0, id="x")], [piece("web__search", None, index=0)]],
        ONE,
    ),
    "the id comes last": (
        [[piece("web__search", A)], [{"id": "x"}]],
        ONE,
    ),
    "the name comes in pieces": (
        [[piece("web__", None, index=0, id="x")], [piece("search", A, index=0)]],
        ONE,
    ),
    "arguments are an object": ([[piece("web__search", {"q": "a"}, index=0, id="x")]], ONE),
    "empty deltas and empty calls between": (
        [{}, [], [{}], {"tool_calls": None}, [piece("web__search", A, index=0, id="x")], {}],
        ONE,
    ),
    "the older function_call": (
        [
            {"function_call": {"name": "web__search", "arguments": ""}},
            {"function_call": {"arguments": A}},
        ],
        (ToolCall("call_0", "web.search", A),),
    ),
    "ids are repeated by two calls": (
        [
            [piece("web__search", A, index=0, id="x")],
            [piece("web__search", B, index=1, id="x")],
        ],
        (ToolCall("x", "web.search", A), ToolCall("call_0", "web.search", B)),
    ),
    "no arguments at all": (
        [[piece("web__search", None, index=0, id="x")]],
        (ToolCall("x", "web.search", ""),),
    ),
    "arguments that are no JSON are passed on untouched": (
        [[piece("web__search", '{"q": "a"', index=0, id="x")]],
        (ToolCall("x", "web.search", '{"q": "a"'),),
    ),
    "double encoded arguments are passed on untouched": (
        [[piece("web__search", '"{\\"q\\": 1}"', index=0, id="x")]],
        (ToolCall("x", "web.search", '"{\\"q\\": 1}"'),),
    ),
    "a name that no tool has": (
        [[piece("invented", A, index=0, id="x")]],
        (ToolCall("x", "invented", A),),
    ),
    "unknown fields of a call": (
        [[piece("web__search", A, index=0, id="x", extra_content={"sig": "s"})]],
        (ToolCall("x", "web.search", A, extra={"extra_content": {"sig": "s"}}),),
    ),
}


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("oddity", ODD_CALLS)
def test_streamed_calls_are_put_together_however_they_are_marked(oddity: str) -> None:
    deltas, calls = ODD_CALLS[oddity]
    assert read(stream(*deltas)) == ModelReply(calls=calls, finish_reason="stop")


@pytest.mark.requirement("ASK-3")
def test_call_ids_differ_from_those_of_the_conversation() -> None:
    deltas = [[piece("web__search", A, index=0, id="call_0")], [piece("mail__send", B, index=1)]]
    reply = read(stream(*deltas), taken=frozenset({"call_0", "call_1"}))
    assert [call.id for call in reply.calls] == ["call_2", "call_3"]


@pytest.mark.requirement("ASK-3")
def test_text_usage_and_unknown_fields_are_gathered_from_a_stream() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    body = stream(
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Let me ", "steps": [1]},
        {"reasoning_content": "see.", "steps": [2], "annotations": [{"url": "u"}]},
        {"content": "  Good "},
        {"content": "day\n", "level": {"a": 1}},
        usage=usage,
    )
    assert read(body) == ModelReply(
        "  Good day\n",
        usage=Usage(9, 4, cached_tokens=5, reasoning_tokens=2, model_calls=1),
        finish_reason="stop",
        extra={"reasoning_content": "Let me see.", "steps": [1, 2], "level": {"a": 1}},
    )


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("content_type", [EVENTS, "application/json", "text/html", ""])
def test_a_whole_answer_is_read_whatever_was_asked_for(content_type: str) -> None:
    message = {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [
            {"id": "x", "type": "function", "function": {"name": "web__search", "arguments": A}},
            {"function": {"name": "web__search", "arguments": None}},
        ],
        "reasoning_content": "hm",
        "annotations": [],
        "refusal": None,
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = b"\r\n" + json.dumps({"choices": [choice], "usage": {"prompt_tokens": 3}}).encode()
    assert read(body[:20], body[20:], content_type=content_type) == ModelReply(
        "Hi",
        (ToolCall("x", "web.search", A), ToolCall("call_0", "web.search", "")),
        Usage(3, 0, model_calls=1),
        "tool_calls",
        {"reasoning_content": "hm"},
    )


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("content_type", [EVENTS, "application/json", "text/plain"])
def test_a_stream_is_read_whatever_its_content_type(content_type: str) -> None:
    body = stream({"content": "Hi"})
    assert read(body, content_type=content_type) == ModelReply("Hi", finish_reason="stop")


ODD_TEXTS: dict[str, bytes] = {
    "no [DONE] but a reason to stop": stream({"content": "Hi"}, done=False),
    "[DONE] but no reason to stop": stream({"content": "Hi"}, reason=None),
    "pings and blank events between": b": ping\n\ndata: \n\n" + stream({"content": "Hi"}),
    "no blank line behind [DONE]": stream({"content": "Hi"}).rstrip(),
    "something behind [DONE]": stream({"content": "Hi"}) + b"data: not json\n\n",
    "garbage behind the reason to stop": stream({"content": "Hi"}, done=False)
    + b"data: {garbage\n\ndata: [DONE]\n\n",
    "an error event behind the reason to stop": stream({"content": "Hi"}, done=False)
    + b'event: error\ndata: {"message": "bye"}\n\n',
    "an error behind the reason to stop": stream({"content": "Hi"}, done=False)
    + b'data: {"error": {"message": "key", "code": 401}}\n\ndata: [DONE]\n\n',
    "an error in the choice behind the reason to stop": stream({"content": "Hi"}, done=False)
    + b'data: {"choices": [{"delta": {}, "finish_reason": "error"}]}\n\ndata: [DONE]\n\n',
    "other choices": stream({"content": "Hi"}).replace(
        b"data: ", b'data: {"choices": [{"index": 1, "delta": {"content": "no"}}]}\n\ndata: ', 1
    ),
    "an index of a choice that is a text": stream({"content": "Hi"}).replace(
        b'"index": 0', b'"index": "0"'
    ),
    "other choices whose indexes are texts": stream({"content": "Hi"}).replace(
        b"data: ", b'data: {"choices": [{"index": "1", "delta": {"content": "no"}}]}\n\ndata: ', 1
    ),
    "no choices": b'data: {"choices": []}\n\ndata: {"choices": null}\n\ndata: 1\n\n'
    + stream({"content": "Hi"}),
    "the whole message again at the end": stream({"content": "Hi"}).replace(
        b"data: [DONE]", b'data: {"choices": [{"message": {"content": "Hi"}}]}\n\ndata: [DONE]'
    ),
    "the whole message as the only event": b'data: {"choices": [{"message": {"content": "Hi"}}]}\n\n'
    b"data: [DONE]\n\n",
    "text in parts": stream({"content": [{"type": "thinking"}, {"type": "text", "text": "Hi"}]}),
    "a refusal instead of text": stream({"content": None, "refusal": "Hi"}),
}


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("oddity", ODD_TEXTS)
def test_text_is_read_from_odd_streams(oddity: str) -> None:
    assert read(ODD_TEXTS[oddity]).text == "Hi"


@pytest.mark.requirement("ASK-3")
@given(data=st.data())
def test_a_reply_does_not_depend_on_where_the_bytes_are_cut(data: st.DataObject) -> None:
    deltas = [
        {"content": "Grüße, 世界"},
        [piece("web__search", A, index=0, id="x")],
        [piece(None, B)],
    ]
    body = stream(*deltas, usage={"prompt_tokens": 1}).replace(b"\n\n", b"\r\n\r\n")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=20)))
    parts = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert read(*parts) == read(body)


def test_an_empty_reply_is_a_reply() -> None:
    assert read(stream({})) == ModelReply(finish_reason="stop")


@pytest.mark.parametrize("start", [b"{", b"data: x\n"])
def test_a_body_without_end_is_refused(start: bytes) -> None:
    reader = ReplyReader(WHERE, "", ReplyAssembly(WHERE), lambda text: None, max_body_bytes=1000)
    reader.feed(start)
    for _ in range(80):
        reader.feed(b": ping ping\n")
    with pytest.raises(PermanentError) as caught:
        reader.feed(b"x" * 100)
    assert caught.value.code == "model.reply_too_large"
