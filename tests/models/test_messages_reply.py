"""Replies from the events and objects of the Messages protocol: as documented, odd, cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import PermanentError, TransientError
from session_runtime.models.base import INCOMPLETE, ModelReply
from session_runtime.models.extras import MESSAGES_BLOCKS
from session_runtime.models.faults import Api, Endpoint
from session_runtime.models.messages_reply import MAX_BLOCKS, MessageAssembly
from session_runtime.models.reading import ReplyReader
from session_runtime.registry.names import build_wire_names
from session_runtime.types import ToolCall, Usage

NAMES = build_wire_names(["web.search", "mail.send"], "__")
WHERE = Endpoint("http://model.test/v1", (), Api("Messages", "/messages"))
STOP = {"type": "message_stop"}
HI = ModelReply("Hi", finish_reason="stop")


def read(body: bytes, *cuts: int, kind: str = "text/event-stream") -> ModelReply:
    told: list[str] = []
    assembly = MessageAssembly(WHERE)
    reader = ReplyReader(WHERE, kind, assembly, told.append)
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        reader.feed(body[start:end])
    reader.close()
    reply = assembly.reply(NAMES, frozenset(), "origin")
    assert "".join(told) == reply.text
    return reply


def sse(*events: Any) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def begun(block: Any, at: int | str | None = 0) -> dict[str, Any]:
    return {"type": "content_block_start", "index": at, "content_block": block}


def piece(at: int | str | None, kind: str, **text: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": at, "delta": {"type": kind, **text}}


def said(text: str, at: int | None = 0) -> dict[str, Any]:
    return piece(at, "text_delta", text=text)


def args(text: str, at: int | str | None = 0) -> dict[str, Any]:
    return piece(at, "input_json_delta", partial_json=text)


def ended(at: int | str | None = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": at}


def stopped(reason: str | None, **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "web__search", "input": {}, **more}


TEXT = begun({"type": "text", "text": ""})
ODD_TEXTS: dict[str, bytes] = {
    "as documented": sse(
        {"type": "message_start", "message": {"content": [], "stop_reason": None}},
        TEXT,
        {"type": "ping"},
        said("H"),
        said("i"),
        ended(),
        stopped("end_turn"),
        STOP,
    ),
    "no head": sse(TEXT, said("Hi"), ended(), stopped("end_turn"), STOP),
    "no end of the block": sse(TEXT, said("Hi"), stopped("end_turn"), STOP),
    "no end of the message": sse(TEXT, said("Hi"), ended(), stopped("end_turn")),
    "a text that begins with text": sse(
        begun({"type": "text", "text": "H"}), said("i"), stopped("end_turn"), STOP
    ),
    "no index": sse(
        begun({"type": "text"}, None), said("Hi", None), ended(None), stopped("stop_sequence"), STOP
    ),
    "two texts": sse(
        TEXT,
        said("H"),
        ended(),
        begun({"type": "text"}, 1),
        said("i", 1),
        stopped("end_turn"),
        STOP,
    ),
    "unknown events, blocks and pieces": sse(
        {"type": "new_thing"},
        begun({"type": "server_tool_use", "id": "s", "name": "evil", "input": {}}),
        begun(None, 1),
        begun({"type": "text"}, 2),
        piece(2, "citations_delta", citation={}),
        piece(2, "text_delta", text=None),
        piece(7, "news_delta", text="x"),
        said("Hi", 2),
        stopped("end_turn"),
        STOP,
    ),
    "types that only the event lines tell": b"event: content_block_start\n"
    b'data: {"index": 0, "content_block": {"type": "text"}}\n\nevent: content_block_delta\n'
    b'data: {"index": 0, "delta": {"type": "text_delta", "text": "Hi"}}\n\n'
    b'event: message_delta\ndata: {"delta": {"stop_reason": "end_turn"}}\n\n',
    "one object although a stream was asked for": json.dumps(
        {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    ).encode(),
    "a text that is not announced": sse(said("H"), said("i"), stopped("end_turn"), STOP),
    "content that is text": b'{"content": "Hi", "stop_reason": "end_turn"}',
    "one object without a reason": b'{"content": [{"type": "text", "text": "Hi"}]}',
}


@pytest.mark.requirement("ASK-3c")
@pytest.mark.parametrize("body", ODD_TEXTS.values(), ids=list(ODD_TEXTS))
def test_a_text_is_read_however_it_comes(body: bytes) -> None:
    assert read(body) == HI


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", INCOMPLETE),
        ("error", INCOMPLETE),
        ("something\nnew", "somethingnew"),
    ],
)
def test_why_the_model_stopped_is_told_in_the_words_of_all_wires(told: str, reason: str) -> None:
    assert read(sse(TEXT, said("Hi"), stopped(told), STOP)).finish_reason == reason


def test_a_message_that_ends_without_a_reason_is_incomplete() -> None:
    assert read(sse(TEXT, said("Hi"), STOP)).finish_reason == INCOMPLETE


def test_calls_that_are_streamed_are_put_together() -> None:
    reply = read(
        sse(
            begun(call("a")),
            args(""),
            args('{"q": '),
            args('"x"}'),
            ended(),
            begun(call("b"), 1),
            ended(1),
            begun(call("c", input={"q": "whole"}), 2),
            ended(2),
            stopped("tool_use"),
            STOP,
        )
    )
    assert reply.calls == (
        ToolCall("a", "web.search", '{"q": "x"}'),
        ToolCall("b", "web.search", "{}"),
        ToolCall("c", "web.search", '{"q": "whole"}'),
    )
    assert reply.finish_reason == "tool_calls"


A, B = '{"q": "a"}', '{"q": "b"}'
CALLS = (ToolCall("a", "web.search", A), ToolCall("b", "web.search", B))
ODD_CALLS: dict[str, tuple[Any, ...]] = {
    "pieces for the block behind": (
        *(begun(call("a")), args(A, 1), ended()),
        *(begun(call("b"), 1), args(B, 2), ended(1)),
    ),
    "pieces for the block before": (
        *(begun(call("a"), 1), args(A, 0), ended(1)),
        *(begun(call("b"), 2), args(B, 1), ended(2)),
    ),
    "pieces for the text before": (
        *(TEXT, begun(call("a"), 1), args(A, 0), ended(1)),
        *(begun(call("b"), 2), args(B, 0), ended(2)),
    ),
    "digits for indexes": (
        *(begun(call("a"), "0"), begun(call("b"), "1")),
        *(args(B, "1"), args(A, "0"), ended("0"), ended("1")),
    ),
    "words for indexes": (
        *(begun(call("a"), "one"), begun(call("b"), "two")),
        *(args(B, "two"), args(A, "one"), ended("one"), ended("two")),
    ),
    "pieces that are objects": (
        *(begun(call("a")), piece(0, "input_json_delta", partial_json={"q": "a"}), ended()),
        *(begun(call("b"), 1), args(B, 1), ended(1)),
    ),
    "pieces without a kind": (
        *(begun(call("a")), {**args(A), "delta": {"partial_json": A}}, ended()),
        *(begun(call("b"), 1), args(B, 1), ended(1)),
    ),
    "other names for the input": (
        *(begun(call("a", parameters={"q": "a"})), ended()),
        *(begun(call("b", arguments=B), 1), ended(1)),
    ),
}


@pytest.mark.requirement("ASK-3c")
@pytest.mark.parametrize("oddity", ODD_CALLS)
def test_calls_are_put_together_however_they_are_marked(oddity: str) -> None:
    reply = read(sse(*ODD_CALLS[oddity], stopped("tool_use"), STOP))
    assert (reply.calls, reply.finish_reason) == (CALLS, "tool_calls")


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "events",
    [
        (begun(call("a")), begun(call("b"), 1), args(A, 7), ended(), ended(1)),
        (begun(call("a")), ended(), args(A, 7)),
        (TEXT, args(A), begun(call("a"), 1), ended(1)),
        (begun(call("a", args={"q": "a"})), ended()),
        (begun(call("a")), begun(call("b"), 1), args(A), args(B), ended(), ended(1)),
        (begun(call("a"), None), begun(call("b"), None), args(A, None), ended(None), ended(None)),
        (begun(call("a")), begun(call("b")), args(A), args(B), ended(), ended()),
    ],
    ids=[
        "no such block",
        "behind the end",
        "before the call",
        "another name",
        "two in one",
        "no index",
        "one index",
    ],
)
def test_a_call_without_input_is_incomplete_beside_some_that_no_call_owns(events: Any) -> None:
    reply = read(sse(*events, stopped("tool_use"), STOP))
    assert (reply.finish_reason, {each.arguments for each in reply.calls} & {A, B}) == (
        INCOMPLETE,
        set(),
    )


def test_input_of_a_tool_that_the_service_runs_itself_is_no_call_s() -> None:
    searched = begun({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})
    events = (searched, args(A), ended(), begun(call("a"), 1), ended(1))
    assert read(sse(*events, stopped("tool_use"), STOP)).finish_reason == "tool_calls"


@pytest.mark.parametrize("pieces", [(), ('{"q": "x',)])
def test_a_call_that_never_ended_is_incomplete(pieces: tuple[str, ...]) -> None:
    reply = read(sse(begun(call("a")), *map(args, pieces), stopped("tool_use"), STOP))
    assert (reply.finish_reason, reply.calls[0].arguments) == (INCOMPLETE, "".join(pieces))


def test_missing_and_repeated_ids_are_made() -> None:
    body = sse(begun(call("a")), begun(call("a", input={"q": 1}), 1), begun(call(""), 2), STOP)
    assert [each.id for each in read(body).calls] == ["a", "call_0", "call_1"]


def test_thoughts_are_kept_in_their_places_and_never_told() -> None:
    thought = begun({"type": "thinking", "thinking": "", "signature": ""})
    reply = read(
        sse(
            thought,
            piece(0, "thinking_delta", thinking="h"),
            piece(0, "thinking_delta", thinking="m"),
            piece(0, "signature_delta", signature="s"),
            ended(),
            begun({"type": "redacted_thinking", "data": "g"}, 1),
            ended(1),
            begun({"type": "text", "text": ""}, 2),
            said("Hi", 2),
            ended(2),
            begun(call("a"), 3),
            ended(3),
            stopped("tool_use"),
            STOP,
        )
    )
    assert reply.text == "Hi"
    assert reply.extra == {
        MESSAGES_BLOCKS: {
            "origin": "origin",
            "blocks": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "g"},
                {"type": "text", "characters": 2},
                {"type": "tool_use"},
            ],
        }
    }


def test_an_unsigned_thought_is_not_kept() -> None:
    body = sse(begun({"type": "thinking", "thinking": "hm"}), ended(), stopped("end_turn"), STOP)
    assert read(body) == ModelReply("", finish_reason="stop")


def test_what_came_from_the_cache_counts_as_read() -> None:
    head = {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    body = sse(
        {"type": "message_start", "message": {"usage": {**head, "output_tokens": 1}}},
        TEXT,
        said("Hi"),
        stopped("end_turn", output_tokens=9, input_tokens=None),
        STOP,
    )
    assert read(body).usage == Usage(
        input_tokens=123, output_tokens=9, cached_tokens=100, model_calls=1
    )


@pytest.mark.parametrize(
    "body",
    [sse(TEXT, said("Hi")), sse({"type": "message_start", "message": {}}), b""],
    ids=["in the text", "at the beginning", "nothing"],
)
def test_a_stream_that_is_cut_may_be_whole_next_time(body: bytes) -> None:
    with pytest.raises(TransientError):
        read(body)


def test_an_error_in_the_stream_is_that_error() -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    with pytest.raises(TransientError, match="busy"):
        read(sse(TEXT, overloaded))


def test_another_api_is_told_apart() -> None:
    with pytest.raises(PermanentError, match="Messages API"):
        read(b'{"object": "chat.completion", "choices": []}')


def test_the_number_of_blocks_is_bounded() -> None:
    blocks = (begun({"type": "text"}, at) for at in range(MAX_BLOCKS + 1))
    with pytest.raises(PermanentError, match="more than 1000 blocks"):
        read(sse(*blocks))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
FIELDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "thinking", "text_delta", "input_json_delta"])},
    optional=dict.fromkeys(
        ("text", "id", "name", "input", "partial_json", "thinking", "stop_reason"), VALUES
    ),
)
KINDS = ("message_start", "content_block_start", "content_block_delta", "content_block_stop")
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from((*KINDS, "message_delta"))},
    optional={
        "index": VALUES,
        "content_block": FIELDS | VALUES,
        "delta": FIELDS | VALUES,
        "message": VALUES,
        "usage": VALUES,
    },
)


@given(st.lists(EVENTS, max_size=12), st.data())
def test_any_events_in_any_pieces_end_in_a_reply(events: list[Any], data: st.DataObject) -> None:
    body = sse(*events, STOP)
    cut = data.draw(st.integers(0, len(body)))
    assert read(body, cut).finish_reason is not None
