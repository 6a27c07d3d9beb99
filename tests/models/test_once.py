"""A call that a service tells twice is one call, on either wire and in any of its forms."""

import json
from typing import Any

import pytest

from session_runtime.models.base import ModelReply
from session_runtime.types import ToolCall
from tests.models import test_reading as chat_form
from tests.models.response_events import added, call, completed, done, message, piece, read, sse

A, B = '{"q": "a"}', '{"q": "b"}'
ONE = (ToolCall("x", "web.search", A),)
TWO = (ToolCall("x", "web.search", A), ToolCall("y", "web.search", B))


def new_form(call_id: str = "x", arguments: str = A, **marks: Any) -> dict[str, Any]:
    return chat_form.piece("web__search", arguments, id=call_id, **marks)


OLD = {"function_call": {"name": "web__search", "arguments": A}}
OLD_IN_PIECES = (
    {"function_call": {"name": "web__search", "arguments": '{"q": '}},
    {"function_call": {"arguments": '"a"}'}},
)
TOLD_TWICE: dict[str, tuple[list[Any], tuple[ToolCall, ...]]] = {
    "both forms in one delta": ([{"tool_calls": [new_form(index=0)], **OLD}], ONE),
    "the old form first": ([OLD, {"tool_calls": [new_form(index=0)]}], ONE),
    "the old form behind": ([{"tool_calls": [new_form(index=0)]}, OLD], ONE),
    "the old form in pieces between": (
        [OLD_IN_PIECES[0], {"tool_calls": [new_form(index=0)]}, OLD_IN_PIECES[1]],
        ONE,
    ),
    "two calls, and the first in the old form": (
        [{"tool_calls": [new_form(index=0), new_form("y", B, index=1)], **OLD}],
        TWO,
    ),
    "the same piece again": ([[new_form(index=0)], [new_form(index=0)]], ONE),
    "the same piece again under another index": ([[new_form(index=0)], [new_form(index=1)]], ONE),
    "the same piece again without an index": ([[new_form()], [new_form()]], ONE),
}


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("form", TOLD_TWICE)
def test_a_call_that_a_stream_tells_twice_is_one_call(form: str) -> None:
    deltas, calls = TOLD_TWICE[form]
    assert chat_form.read(chat_form.stream(*deltas)).calls == calls


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize(
    "fields",
    [
        {"tool_calls": [new_form()], **OLD},
        {"tool_calls": [new_form(), new_form()]},
        {"tool_calls": [new_form(), {"id": "x", "function": {}}]},
    ],
)
def test_a_call_that_a_whole_answer_tells_twice_is_one_call(fields: dict[str, Any]) -> None:
    body = json.dumps({"choices": [{"message": fields, "finish_reason": "tool_calls"}]})
    assert chat_form.read(body.encode()) == ModelReply(calls=ONE, finish_reason="tool_calls")


@pytest.mark.parametrize("fields", [OLD, {**OLD, "tool_calls": []}, {**OLD, "tool_calls": [{}]}])
def test_the_old_form_counts_where_the_new_one_names_no_call(fields: dict[str, Any]) -> None:
    body = chat_form.stream(fields)
    assert chat_form.read(body).calls == (ToolCall("call_0", "web.search", A),)


ITEMS_TWICE: dict[str, tuple[bytes, tuple[ToolCall, ...]]] = {
    "an item that is done twice": (
        sse(added(call("x", "")), done(call("x", A)), done(call("x", A)), completed()),
        ONE,
    ),
    "done twice, the second time with more": (
        sse(added(call("x", "")), done(call("x", "")), done(call("x", A)), completed()),
        ONE,
    ),
    "done twice under another index": (
        sse(done(call("x", A)), done(call("x", A), 1), completed()),
        ONE,
    ),
    "done twice without an id of its own": (
        sse(done(call("x", A, id=None)), done(call("x", A, id=None)), completed()),
        ONE,
    ),
    "added twice": (
        sse(added(call("x", "")), added(call("x", "")), piece(A, "fc_x"), completed()),
        ONE,
    ),
    "added whole twice": (sse(added(call("x", A)), added(call("x", A)), completed()), ONE),
    "twice in the response": (sse(completed(call("x", A), call("x", A))), ONE),
    "twice beside another": (
        sse(done(call("x", A)), done(call("y", B), 1), done(call("x", A)), completed()),
        TWO,
    ),
}


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("form", ITEMS_TWICE)
def test_an_item_that_comes_twice_is_one_call(form: str) -> None:
    body, calls = ITEMS_TWICE[form]
    assert read(body) == ModelReply(calls=calls, finish_reason="tool_calls")


def test_a_message_that_is_done_twice_is_said_once() -> None:
    body = sse(done(message("Hi")), done(message("Hi")), completed())
    assert read(body) == ModelReply("Hi", finish_reason="stop")


def test_two_items_without_ids_at_one_place_are_two() -> None:
    one, two = call("x", A, id=None), call("y", B, id=None)
    assert read(sse(done(one), done(two), completed())).calls == TWO
