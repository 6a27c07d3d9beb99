"""Arguments that came and belong to no call: one without any may not run as if it had been meant so."""

import json
from typing import Any

import pytest

from session_runtime.models.base import INCOMPLETE
from session_runtime.types import ToolCall
from tests.models.chat_chunks import piece, read, stream

A, B = '{"q": "a"}', '{"q": "b"}'
BEGUN = [piece("web__search", "", index=0, id="x"), piece("mail__send", "", index=1, id="y")]
OWNERLESS: dict[str, list[Any]] = {
    "under an index that no call has": [BEGUN, [piece(None, A, index=7)]],
    "under an id that no call has": [BEGUN, [piece(None, A, id="z")]],
    "under a name that nobody knows": [
        [{"index": 0, "function": {"name": "web__search", "args": A}}]
    ],
    "two objects for one call": [BEGUN, [piece(None, A, index=1), piece(None, B, index=1)]],
    "the rest of an object": [BEGUN, [piece(None, '"a"}', index=1)]],
    "the rest of a text in an object": [BEGUN, [piece(None, 'a"}', index=1)]],
    "under a new id for each piece": [
        [piece("web__search", each, index=0, id=f"x{at}")] for at, each in enumerate(("", *A))
    ],
}


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("way", OWNERLESS)
def test_a_call_without_arguments_is_incomplete_beside_some_that_no_call_owns(way: str) -> None:
    reply = read(stream(*OWNERLESS[way], reason="tool_calls"))
    assert reply.finish_reason == INCOMPLETE
    assert reply.calls[0].arguments == ""


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("none", ["", "{}", "null", " { } "])
@pytest.mark.parametrize("other", [A, '{"q": "a', '{"q": ', '"{\\"q\\": 1}"', "[1]", "q = 1"])
def test_calls_without_arguments_are_whole_beside_those_of_others_be_they_broken(
    none: str, other: str
) -> None:
    calls = [
        piece("web__search", none, index=0, id="x"),
        piece("mail__send", other, index=1, id="y"),
    ]
    assert read(stream(calls, reason="tool_calls")).finish_reason == "tool_calls"


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("key", ["provider_specific_fields", "metadata", "caller"])
def test_what_gateways_add_to_a_call_is_no_argument(key: str) -> None:
    function = {"name": "web__search", "arguments": "{}", key: {"signature": "abc"}}
    reply = read(stream([{"index": 0, "id": "x", "function": function}], reason="tool_calls"))
    assert (reply.finish_reason, len(reply.calls)) == ("tool_calls", 1)


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "marks", [({}, {}), ({"index": 0}, {"index": 0}), ({"index": 0}, {"index": 1})]
)
def test_two_calls_of_a_tool_without_ids_are_whole_if_one_says_that_it_has_no_arguments(
    marks: tuple[dict[str, int], dict[str, int]],
) -> None:
    calls = [piece("web__search", "{}", **marks[0]), piece("web__search", A, **marks[1])]
    for told in (calls, calls[::-1]):
        assert read(stream(told, reason="tool_calls")).finish_reason == "tool_calls"


@pytest.mark.requirement("ASK-5")
def test_a_message_at_the_end_brings_the_arguments_that_were_not_streamed() -> None:
    body = stream([piece("web__search", "", index=0, id="x")]).replace(
        b"data: [DONE]",
        b"data: "
        + json.dumps(
            {"choices": [{"message": {"tool_calls": [piece("web__search", A, id="x")]}}]}
        ).encode()
        + b"\n\ndata: [DONE]",
    )
    assert read(body).calls == (ToolCall("x", "web.search", A),)
