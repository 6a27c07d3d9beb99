"""Results of calls that failed say so, on the wire that has a place for it and in the history."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Message
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolCall
from session_runtime.wire import message_from_json, message_to_json
from tests.support import ask, chat_profile, opened, tool_folder, write_handler

BREAKS = "def execute(args, context):\n    raise ValueError('no such city')\n"
SEARCH_OFF = "[skills]\nprefetch_tools = []\n"
CALLS = reply_calls(("good", {}), ("bad", {}), ("unknown", {}), ("good", "{broken"))


async def sent_results(folder: Path, wire: str, request: AskRequest) -> tuple[Any, Any]:
    """What the service is sent in the second turn, and the messages that a caller keeps."""
    write_handler(folder / "tools", "good")
    write_handler(folder / "tools", "bad", code=BREAKS)
    async with Upstream([CALLS, reply_text("Done.")]) as upstream:
        config = tool_folder(folder) + chat_profile(upstream.base_url, wire=wire) + SEARCH_OFF
        async with opened(folder, config) as runtime:
            asked = await ask(runtime, request)
    return upstream.requests[1], asked.result.new_messages


@pytest.mark.requirement("ASK-3")
@pytest.mark.requirement("ASK-4")
async def test_the_messages_wire_says_which_results_are_failures(tmp_path: Path) -> None:
    sent, kept = await sent_results(tmp_path, "anthropic", AskRequest("go"))
    blocks = sent["messages"][-1]["content"]
    assert [block.get("is_error") for block in blocks] == [None, True, True, True]
    assert [message.is_error for message in kept if message.role == "tool"] == [
        False,
        True,
        True,
        True,
    ]


@pytest.mark.requirement("ASK-3")
async def test_a_failure_is_still_one_in_the_history_of_the_next_ask(tmp_path: Path) -> None:
    call = ToolCall("c9", "bad", "{}")
    failed = Message("tool", "bad failed: no such city.", tool_call_id="c9", is_error=True)
    written = [message_to_json(each) for each in (Message("assistant", None, (call,)), failed)]
    assert written[1] == {
        "role": "tool",
        "content": "bad failed: no such city.",
        "tool_call_id": "c9",
        "is_error": True,
    }
    history = [Message("user", "before"), *map(message_from_json, written)]
    sent, _ = await sent_results(tmp_path, "anthropic", AskRequest("go", history=history))
    assert sent["messages"][2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "c9",
        "content": "bad failed: no such city.",
        "is_error": True,
    }


@pytest.mark.requirement("ASK-3")
@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_wires_without_a_place_for_it_are_not_sent_it(tmp_path: Path, wire: str) -> None:
    sent, _ = await sent_results(tmp_path, wire, AskRequest("go"))
    assert "is_error" not in str(sent)
