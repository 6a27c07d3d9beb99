"""Images where services take none: a note stands for them, on either wire."""

import json
from typing import Any

import pytest

from session_runtime.models.base import ModelRequest
from session_runtime.models.chat_body import ChatBodyWriter
from session_runtime.models.content import IMAGE_NOTE
from session_runtime.types import ImagePart, Message, TextPart, ToolCall
from tests.models.building import profile, request, tool
from tests.models.response_items import answered, called, inputs, sent

IMAGE = ImagePart("data:image/png;base64,AA", "low")
CALL = ToolCall("a", "t", "{}")
CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
DRAWN = f"Here:\n{IMAGE_NOTE}\nNice?"
PARTS = (TextPart("Here:"), IMAGE, TextPart("Nice?"))


def messages(asked: ModelRequest) -> Any:
    writer = ChatBodyWriter(profile("http://model.test/v1"))
    return json.loads(writer.write(asked, frozenset()).content)["messages"]


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize(
    ("message", "as_sent"),
    [
        (Message("assistant", PARTS), {"role": "assistant", "content": DRAWN}),
        (Message("assistant", (IMAGE,)), {"role": "assistant", "content": IMAGE_NOTE}),
        (
            Message("assistant", PARTS, (CALL,)),
            {"role": "assistant", "content": DRAWN, "tool_calls": [CHAT_CALL]},
        ),
        (Message("system", PARTS), {"role": "system", "content": DRAWN}),
        (
            Message("tool", PARTS, tool_call_id="a"),
            {"role": "tool", "tool_call_id": "a", "content": DRAWN},
        ),
        (Message("assistant", ()), {"role": "assistant", "content": ""}),
    ],
)
def test_on_the_wire_chat_only_users_show_images(message: Message, as_sent: dict[str, Any]) -> None:
    assert messages(request(message, tools=[tool("t")])) == [as_sent]


@pytest.mark.requirement("ASK-2")
def test_on_the_wire_responses_answers_and_instructions_hold_a_note_for_an_image() -> None:
    answer = Message("assistant", PARTS, (CALL,))
    assert inputs(answer) == [answered(DRAWN), called("a", "t")]
    assert sent(request(Message("system", PARTS), Message("user", "q")))["instructions"] == DRAWN
