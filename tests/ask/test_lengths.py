"""How long a request counts is what its sender can make long, wherever in it that is (NET-5)."""

from collections.abc import Callable
from typing import Any

import pytest

from session_runtime import AskRequest
from session_runtime.ask.lengths import chars_of_request
from session_runtime.ask.places import Claim
from session_runtime.direct import DirectCall
from session_runtime.wire import request_from_json

LONG = "x" * 1_000

BODIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "a field of a message that nobody knows": lambda long: {
        "history": [{"role": "user", "content": "x", "blob": long}]
    },
    "a name of such a field": lambda long: {
        "history": [{"role": "user", "content": "x", "blob": {long: [1]}}]
    },
    "a field of a call": lambda long: {
        "history": [_calling({"id": "1", "name": "t", "arguments": "{}"}, blob=long)]
    },
    "the id of a call": lambda long: {
        "history": [_calling({"id": long, "name": "t", "arguments": "{}"})]
    },
    "the name of a call": lambda long: {
        "history": [_calling({"id": "1", "name": long, "arguments": "{}"})]
    },
    "the call that a result is of": lambda long: {
        "history": [{"role": "tool", "content": "x", "tool_call_id": long}]
    },
    "instructions": lambda long: {"instructions": long},
    "roles": lambda long: {"identity": {"roles": [long]}},
    "a user": lambda long: {"identity": {"user": long}},
    "metadata": lambda long: {"metadata": {"a": [{"b": long}]}},
}


def _calling(call: dict[str, str], **more: str) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": call["arguments"]}
    made = {"id": call["id"], "type": "function", "function": function, **more}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def counted(body: dict[str, Any], **more: str) -> int:
    return chars_of_request(request_from_json({"text": "hi", **body, **more}))


@pytest.mark.requirement("NET-5b")
@pytest.mark.parametrize("where", BODIES)
def test_all_of_a_request_counts_that_may_be_long(where: str) -> None:
    body, short = BODIES[where](LONG[:100]), BODIES[where]("x")
    assert counted(body) - counted(short) == 99


@pytest.mark.requirement("NET-5b")
def test_arguments_of_a_tool_count_even_if_nobody_has_measured_them() -> None:
    call = DirectCall("t", {"a": LONG})
    assert chars_of_request(AskRequest(call=call)) > len(LONG)


def test_what_contains_itself_counts_once() -> None:
    cyclic: dict[str, Any] = {"text": LONG}
    cyclic |= {"again": cyclic, "and": [cyclic, cyclic]}
    request = AskRequest("hi", metadata=cyclic)
    assert len(LONG) < Claim("a1", "bot", request=request).chars < len(LONG) + 100
