"""Replies from the events and objects of the Responses protocol: as documented, odd, cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.models.base import INCOMPLETE, ModelReply
from session_runtime.models.extras import RESPONSES_ITEMS
from session_runtime.types import ToolCall, Usage
from tests.models.response_events import (
    NAMES,
    added,
    call,
    completed,
    done,
    gathered,
    message,
    piece,
    read,
    sse,
    text,
    whole,
)

HI = ModelReply("Hi", finish_reason="stop")
A, B = '{"q": "a"}', '{"q": "b"}'

ODD_TEXTS: dict[str, bytes] = {
    "as documented": sse(text("H"), text("i"), done(message("Hi")), completed(message("Hi"))),
    "no output at the end": sse(text("H"), text("i"), completed()),
    "no output and no pieces": sse(done(message("Hi")), completed()),
    "no pieces": sse(completed(message("Hi"))),
    "fewer pieces than text": sse(text("H"), completed(message("Hi"))),
    "a response without any field": sse(text("Hi"), {"type": "response.completed"}),
    "output that is no list": sse(text("Hi"), completed() | {"response": {"output": "Hi"}}),
    "unknown events and items": sse(
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.new_thing.delta", "delta": "x"},
        {"delta": "x"},
        added({"type": "new_thing"}),
        added(None),
        text("Hi"),
        completed({"type": "new_thing"}, message("Hi")),
    ),
    "pieces of another type": sse({**text("H"), "delta": None}, text("Hi"), completed()),
    "a refusal in place of text": sse(
        text("Hi", "refusal"),
        completed(message("", content=[{"type": "refusal", "refusal": "Hi"}])),
    ),
    "content that is text": sse(completed({"type": "message", "content": "Hi"})),
    "no content beside the text": sse(
        completed({"type": "message", "content": None}, message("Hi"))
    ),
    "an end mark behind the response": sse(completed(message("Hi"))) + b"data: [DONE]\n\n",
    "a wrong event behind the response": sse(completed(message("Hi"))) + b"data: {\n\n",
    "types that only the event lines tell": b"event: response.output_text.delta\n"
    b'data: {"delta": "Hi"}\n\nevent: response.completed\ndata: {"response": {}}\n\n',
    "a whole response although a stream was due": json.dumps(
        {"object": "response", **completed(message("Hi"))["response"]}
    ).encode(),
    "a whole response without more than its output": json.dumps(
        {"output": [message("Hi")]}
    ).encode(),
}


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("oddity", ODD_TEXTS)
def test_text_is_read_once_however_it_is_sent(oddity: str) -> None:
    assert read(ODD_TEXTS[oddity]) == HI


def test_text_that_was_told_and_revoked_is_not_told_again() -> None:
    assembly, told = gathered(sse(text("Hi!"), completed(message("Hello"))))
    assert (assembly.reply(NAMES, frozenset(), "").text, told) == ("Hello", ["Hi!"])


ONE = (ToolCall("x", "web.search", A),)
TWO = (ToolCall("x", "web.search", A), ToolCall("y", "web.search", B))
ODD_CALLS: dict[str, tuple[bytes, tuple[ToolCall, ...]]] = {
    "as documented": (
        sse(
            added(call("x", "")),
            piece('{"q": ', "fc_x"),
            added(call("y", ""), 1),
            piece('"a"}', "fc_x"),
            piece(B, "fc_y", 1),
            whole(A, "fc_x"),
            done(call("x", A)),
            whole(B, "fc_y", 1),
            done(call("y", B), 1),
            completed(call("x", A), call("y", B)),
        ),
        TWO,
    ),
    "no output at the end": (sse(done(call("x", A)), done(call("y", B), 1), completed()), TWO),
    "no output at the end, and the second call is done first": (
        sse(done(call("y", B), 1), done(call("x", A)), completed()),
        TWO,
    ),
    "pieces alone, side by side under one index": (
        sse(
            added(call("x", "")),
            added(call("y", "")),
            piece('{"q": ', "fc_x"),
            piece('{"q": ', "fc_y"),
            piece('"b"}', "fc_y"),
            piece('"a"}', "fc_x"),
            completed(),
        ),
        TWO,
    ),
    "pieces alone, by index": (
        sse(
            added(call("x", "", id=None)),
            added(call("y", "", id=None), 1),
            piece(B, at=1),
            piece(A, at=0),
            completed(),
        ),
        TWO,
    ),
    "pieces alone, one index and no item ids": (
        sse(added(call("x", "")), piece(A), added(call("y", "")), piece(B), completed()),
        TWO,
    ),
    "pieces alone, no marks at all": (
        sse(
            added(call("x", "", id=None), None),
            piece(A, at=None),
            added(call("y", "", id=None), None),
            piece(B, at=None),
            completed(),
        ),
        TWO,
    ),
    "more pieces than items that were done": (
        sse(added(call("x", A)), added(call("y", B), 1), done(call("x", A)), completed()),
        TWO,
    ),
    "the arguments only at the end": (
        sse(added(call("x", "")), whole(A, "fc_x"), completed()),
        ONE,
    ),
    "the arguments in pieces and at the end": (
        sse(added(call("x", "{}")), piece(A, "fc_x"), whole(A, "fc_x"), completed()),
        ONE,
    ),
    "the arguments in the first event and at the end": (
        sse(added(call("x", A)), whole(A, "fc_x"), completed()),
        ONE,
    ),
    "arguments for a call that was not announced": (
        sse({**whole(A, "fc_x"), "name": "web__search"}, completed()),
        (ToolCall("call_0", "web.search", A),),
    ),
    "an item that is done without the arguments that were streamed": (
        sse(added(call("x", "")), piece(A, "fc_x"), done(call("x", "")), completed()),
        ONE,
    ),
    "an item that is done with an empty object": (
        sse(added(call("x", "")), piece(A, "fc_x"), done(call("x", "{}")), completed()),
        ONE,
    ),
    "a response without the arguments that were streamed": (
        sse(added(call("x", "")), piece(A, "fc_x"), completed(call("x", ""))),
        ONE,
    ),
    "a response without the arguments of an item that was done": (
        sse(done(call("x", A)), done(call("y", B), 1), completed(call("x", ""), call("y", B))),
        TWO,
    ),
    "an end of the arguments that has none": (
        sse(added(call("x", "")), piece(A, "fc_x"), whole("", "fc_x"), completed()),
        ONE,
    ),
    "two items with one id, by turns": (
        sse(
            added({**call("x", ""), "id": "fc"}),
            added({**call("y", ""), "id": "fc"}, 1),
            piece(B, "fc", 1),
            piece(A, "fc", 0),
            completed(),
        ),
        TWO,
    ),
    "two items with one call id, by turns": (
        sse(
            added({**call("x", ""), "id": "one"}),
            added({**call("x", ""), "id": "two"}, 1),
            piece(B, "two", 1),
            piece(A, "one", 0),
            completed(),
        ),
        (ToolCall("x", "web.search", A), ToolCall("call_0", "web.search", B)),
    ),
    "arguments are called parameters": (
        sse(completed({**call("x", None), "parameters": {"q": "a"}})),
        ONE,
    ),
    "arguments are an object": (sse(completed(call("x", {"q": "a"}))), ONE),
    "arguments are null": (
        sse(completed(call("x", None))),
        (ToolCall("x", "web.search", ""),),
    ),
    "arguments are missing": (
        sse(completed({"type": "function_call", "call_id": "x", "name": "web__search"})),
        (ToolCall("x", "web.search", ""),),
    ),
    "no call id": (
        sse(completed({**call("x", A), "call_id": None})),
        (ToolCall("call_0", "web.search", A),),
    ),
    "call ids are repeated": (
        sse(completed(call("x", A), call("x", B))),
        (ToolCall("x", "web.search", A), ToolCall("call_0", "web.search", B)),
    ),
    "neither name nor arguments": (sse(completed(call("x", "", name=None), call("x", A))), ONE),
    "a name that no tool has": (
        sse(completed(call("x", A, name="invented"))),
        (ToolCall("x", "invented", A),),
    ),
}


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("oddity", ODD_CALLS)
def test_calls_are_read_however_they_are_marked(oddity: str) -> None:
    body, calls = ODD_CALLS[oddity]
    assert read(body) == ModelReply(calls=calls, finish_reason="tool_calls")


BEGUN: dict[str, dict[str, Any]] = {
    "in progress": {"status": "in_progress"},
    "without a status": {},
}


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("status", BEGUN)
@pytest.mark.parametrize("arguments", ["{}", " {} ", {}])
def test_a_call_that_was_only_announced_is_not_whole(status: str, arguments: Any) -> None:
    begun = added(call("x", arguments, **BEGUN[status]))
    assert read(sse(begun, completed())) == ModelReply(
        calls=(ToolCall("x", "web.search", ""),), finish_reason=INCOMPLETE
    )
    assert read(sse(begun, whole("{}", "fc_x"), completed())) == ModelReply(
        calls=(ToolCall("x", "web.search", "{}"),), finish_reason="tool_calls"
    )


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "events",
    [
        (added(call("x", "")), added(call("y", ""), 1), piece(A, "fc_z", 7), done(call("x", ""))),
        (done(call("x", "")), done(call("y", ""), 1), piece(A, at=7)),
        (done({**call("x", ""), "args": {"q": "a"}}),),
    ],
    ids=["beside pieces of no item", "beside pieces alone", "beside a name that nobody knows"],
)
def test_a_call_without_arguments_is_incomplete_beside_some_that_no_call_owns(events: Any) -> None:
    assert read(sse(*events, completed())).finish_reason == INCOMPLETE


@pytest.mark.requirement("ASK-3b")
def test_ids_that_had_to_change_lead_back_to_those_of_the_service() -> None:
    body = sse(completed(call("x", A), call("x", B), call("", A), call("y", B)))
    assembly, _ = gathered(body)
    taken = frozenset({"x", "call_0"})
    ids = [each.id for each in assembly.reply(NAMES, taken, "").calls]
    assert ids == ["call_1", "call_2", "call_3", "y"]
    assert assembly.renamed(taken) == {"call_1": "x", "call_2": "x"}


@pytest.mark.requirement("ASK-3b")
def test_usage_and_the_id_of_the_response_are_read() -> None:
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 5},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    assembly, _ = gathered(sse(completed(message("Hi"), usage=usage)))
    assert assembly.reply(NAMES, frozenset(), "").usage == Usage(9, 4, 5, 2, model_calls=1)
    assert assembly.response_id == "resp_1"


@pytest.mark.parametrize("more", [{"id": None}, {"id": ""}, {"id": 7}, {"store": False}])
def test_a_response_that_is_not_kept_has_no_id(more: Any) -> None:
    assembly, _ = gathered(sse(completed(message("Hi"), **more)))
    assert assembly.response_id is None


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "content_filter"),
        ({"reason": "something_new"}, "something_new"),
        (None, "incomplete"),
    ],
)
def test_an_answer_that_stopped_early_says_why(details: Any, reason: str) -> None:
    event = completed(message("Hi"), status="incomplete", incomplete_details=details)
    assert read(sse(event | {"type": "response.incomplete"})) == ModelReply(
        "Hi", finish_reason=reason
    )


@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("kept", ["in the response", "in the items that were done"])
def test_reasoning_is_kept_with_its_place_among_text_and_calls(kept: str) -> None:
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gAAA",
        "status": "completed",
        "role": "system",
    }
    output = [thought, message("Wait.", phase="commentary"), call("x", A)]
    if kept == "in the response":
        body = sse(completed(*output))
    else:
        hollow = {"type": "reasoning", "id": "rs_1", "summary": []}
        body = sse(*map(done, output), completed(hollow, *output[1:]))
    assert read(body).extra == {
        RESPONSES_ITEMS: {
            "origin": "origin",
            "items": [
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "Hm."}],
                    "encrypted_content": "gAAA",
                },
                {"type": "message", "characters": 5, "phase": "commentary"},
                {"type": "function_call"},
            ],
        }
    }


@pytest.mark.requirement("ASK-3b")
@given(data=st.data())
def test_a_reply_does_not_depend_on_where_the_bytes_are_cut(data: st.DataObject) -> None:
    body = ODD_CALLS["as documented"][0] + sse(text("Grüße"))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=20)))
    assembly, told = gathered(body, *cuts)
    assert (assembly.reply(NAMES, frozenset(), "").calls, told) == (TWO, [])
