"""Calls as they come in the field, through whole asks: without arguments, nested, or never answered."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Message, Runtime
from session_runtime.testing.misbehaviour import WIRES
from session_runtime.testing.replies import reply_bytes, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import AskEvent, AskFinished, ToolCall, ToolStarted
from tests.support import (
    HANGS,
    ask,
    calls,
    chat_profile,
    opened,
    says,
    scripted,
    tool_folder,
    write_config,
    write_handler,
)

PLAIN = "[skills]\nprefetch_tools = []\n"
Q = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
FIELDS = {"type": "object", "properties": {"fields": {"type": "object"}}}
ABSENT: dict[str, Any] = {"name": "probe"}
UNANSWERED = Message("assistant", None, (ToolCall("c0", "hang", "{}"),))
"""The call as a backend may have kept it from the events."""

NOTHING = {
    "empty": ABSENT | {"arguments": ""},
    "blank": ABSENT | {"arguments": " \n"},
    "null": ABSENT | {"arguments": None},
    "null as text": ABSENT | {"arguments": "null"},
    "absent": ABSENT,
}


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("form", NOTHING)
@pytest.mark.parametrize("needs", [False, True], ids=["needs none", "needs some"])
async def test_no_arguments_are_an_empty_object_or_a_word_about_what_is_missing(
    tmp_path: Path, form: str, needs: bool
) -> None:
    write_handler(tmp_path / "tools", "probe", parameters=Q if needs else None)
    call = {"id": "c0", "type": "function", "function": NOTHING[form]}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    first = reply_bytes(json.dumps(whole).encode(), content_type="application/json")
    async with Upstream([first, reply_text("Done.")]) as upstream:
        text = tool_folder(tmp_path) + chat_profile(upstream.base_url, stream=False) + PLAIN
        async with opened(tmp_path, text) as runtime:
            asked = await ask(runtime, "go")
    (told,) = [str(m.content) for m in asked.result.new_messages if m.role == "tool"]
    assert ("q: is required" in told) if needs else (told == '{"got":{}}')
    assert asked.result.text == "Done."


@pytest.mark.requirement("ASK-5")
@pytest.mark.requirement("OPS-1")
async def test_an_object_that_arrives_as_its_text_is_unwrapped_and_the_trace_says_so(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "probe", parameters=FIELDS)
    whole = json.dumps(json.dumps({"fields": {"a": 1}}))
    one_field = json.dumps({"fields": json.dumps({"a": 2})})
    script = scripted(tmp_path, calls(("probe", whole), ("probe", one_field)), says("Done."))
    file = write_config(tmp_path, tool_folder(tmp_path) + PLAIN + script)
    file.write_text(file.read_text().replace("enabled = false", 'path = "trace.jsonl"'))
    async with Runtime.open(file, env={}, watch=False) as runtime:
        result = await runtime.ask(AskRequest("go"))
    told = [json.loads(str(m.content)) for m in result.new_messages if m.role == "tool"]
    assert told == [{"got": {"fields": {"a": 1}}}, {"got": {"fields": {"a": 2}}}]
    (line,) = (tmp_path / "trace.jsonl").read_text().splitlines()
    notes = [call["repairs"] for turn in json.loads(line)["turns"] for call in turn["calls"]]
    assert all("double encoding" in "".join(note) for note in notes), notes


@pytest.mark.requirement("ASK-2")
@pytest.mark.requirement("ASK-3b")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_conversation_goes_on_after_a_cancel_between_a_call_and_its_result(
    tmp_path: Path, wire: str
) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    replies = [reply_calls(("hang", {})), *[reply_text("Still here.")] * 2]
    started, events = asyncio.Event(), list[AskEvent]()

    def emit(event: AskEvent) -> None:
        events.append(event)
        if isinstance(event, ToolStarted):
            started.set()

    async with Upstream(replies) as upstream:
        text = tool_folder(tmp_path) + chat_profile(upstream.base_url, wire=wire) + PLAIN
        async with opened(tmp_path, text, resources={"cancelled": []}) as runtime:
            task = asyncio.create_task(runtime.ask(AskRequest("go"), emit))
            await started.wait()
            task.cancel()
            await asyncio.wait([task])
            (kept,) = [e.result.new_messages for e in events if isinstance(e, AskFinished)]
            assert [(each.role, len(each.tool_calls)) for each in kept] == [
                *(("user", 0), ("assistant", 1), ("tool", 0))
            ]
            for history in (kept, (Message("user", "go"), UNANSWERED)):
                again = await ask(runtime, AskRequest("and now?", history=history))
                assert (again.result.outcome, again.result.text) == ("answered", "Still here.")
