"""Whole asks in each call mode: tools are searched, called and answered without native calls."""

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest
from session_runtime.testing.conversation import Request
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import Message, TextDelta, ToolFinished
from tests.support import Asked, ask, chat_profile, opened, tool_folder, write_handler

RECORDS = """
async def execute(args, context):
    context.resources["ran"].append(dict(args))
    return "xyz-found"
"""
SEARCH = "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n"
Q = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
MODES = [
    (mode, wire, stream)
    for mode, wires in (
        ("text", ("chat", "responses", "anthropic")),
        ("json_schema", ("chat", "responses")),
    )
    for wire, stream in itertools.product(wires, (True, False))
]
EACH_MODE = pytest.mark.parametrize(("mode", "wire", "stream"), MODES)


def says(mode: str, text: str) -> Reply:
    return reply_text(json.dumps({"answer": text}) if mode == "json_schema" else text)


def calls(mode: str, *wanted: tuple[str, Any]) -> Reply:
    made = [{"name": name, "arguments": arguments} for name, arguments in wanted]
    if mode == "json_schema":
        return reply_text(json.dumps({"calls": made}))
    return reply_text("\n".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in made))


@dataclass
class Played:
    """An ask, what ran, and what the service was sent."""

    asked: Asked
    ran: list[Any] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)


async def played(
    folder: Path, mode: str, wire: str, stream: bool, *replies: Reply, request: Any = "go"
) -> Played:
    if not (folder / "tools").exists():
        write_handler(folder / "tools", "deep.probe", parameters=Q, code=RECORDS)
    ran: list[Any] = []
    async with Upstream(replies) as upstream:
        profile = chat_profile(upstream.base_url, wire=wire, stream=stream, call_mode=mode)
        text = tool_folder(folder) + profile + SEARCH
        async with opened(folder, text, resources={"ran": ran}) as runtime:
            asked = await ask(runtime, request)
        return Played(asked, ran, upstream.requests)


@pytest.mark.requirement("ASK-3")
@pytest.mark.requirement("TS-13")
@EACH_MODE
async def test_a_tool_is_found_loaded_and_called(
    tmp_path: Path, mode: str, wire: str, stream: bool
) -> None:
    found = await played(
        tmp_path,
        mode,
        wire,
        stream,
        calls(mode, ("deep__probe", {"q": "too early"})),
        calls(mode, ("tool_search", {"query": "select:deep.probe"})),
        calls(mode, ("deep__probe", {"q": "a"}), ("deep__probe", {"q": "b"})),
        says(mode, "All is done."),
    )
    result = found.asked.result
    assert (result.outcome, result.text) == ("answered", "All is done.")
    codes = [each.error_code for each in found.asked.of(ToolFinished)]
    assert (found.ran, codes) == ([{"q": "a"}, {"q": "b"}], ["tool.not_loaded", None, None, None])
    assert "".join(event.text for event in found.asked.of(TextDelta)) == "All is done."
    assert not any("tools" in request for request in found.requests)
    assert json.dumps(found.requests[-1]).count("xyz-found") == 2
    check_native(result.new_messages)


def check_native(messages: tuple[Message, ...]) -> None:
    """What is kept is the same in every mode: calls with ids, a result for each, no notation."""
    made = [call.id for message in messages for call in message.tool_calls]
    assert made == [message.tool_call_id for message in messages if message.role == "tool"]
    assert len(made) == len(set(made)) == 4
    texts = [str(message.content) for message in messages if message.role == "assistant"]
    assert not any("tool_call" in text or '"answer"' in text for text in texts)


@EACH_MODE
async def test_a_conversation_of_another_mode_goes_on(
    tmp_path: Path, mode: str, wire: str, stream: bool
) -> None:
    searched = reply_calls(("tool_search", {"query": "select:deep.probe"}))
    native = await played(tmp_path, "native", wire, stream, searched, reply_text("Native."))
    history = (Message("user", "go"), *native.asked.result.new_messages)
    again = AskRequest("and now", history=history)
    reply = says(mode, "Still here.")
    found = await played(tmp_path, mode, wire, stream, reply, request=again)
    assert found.asked.result.text == "Still here."
    third = (*history, Message("user", "and now"), *found.asked.result.new_messages)
    back = AskRequest("once more", history=third)
    last = await played(tmp_path, "native", wire, stream, reply_text("Back."), request=back)
    assert last.asked.result.text == "Back."


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(
    ("text", "outcome", "error", "shown", "cut_off"),
    [
        ('{"calls": [{"name": "tool_search", "argum', "failed", "model.empty_answer", "", None),
        ('{"calls": []}', "failed", "model.empty_answer", "", None),
        ('{"answer": "half of it', "answered", None, "half of it", "length"),
        ('{"answer": {"n": 42}}', "answered", None, '{"n": 42}', None),
        ('{"calls": [], "answer": "Behind calls."}', "answered", None, "Behind calls.", None),
        ('{"thought": "Hm.", "answer": "Behind that."}', "answered", None, "Behind that.", None),
        ('{"answer": "<think>Hm.</think>Thought."}', "answered", None, "Thought.", None),
        (
            '{"answer": "<tool_call>{\\"name\\": \\"tool_s',
            "failed",
            "model.empty_answer",
            "",
            "length",
        ),
        ('{"answer": "one", "answer": "two"}', "answered", None, "one", None),
        ("It ignores the form.", "answered", None, "It ignores the form.", None),
    ],
)
async def test_a_reply_that_breaks_the_form_ends_well_and_shows_no_markup(
    tmp_path: Path,
    wire: str,
    text: str,
    outcome: str,
    error: str | None,
    shown: str,
    cut_off: str | None,
) -> None:
    found = await played(tmp_path, "json_schema", wire, True, reply_text(text))
    result = found.asked.result
    code = result.error and result.error.code
    assert (result.outcome, code, result.cut_off) == (outcome, error, cut_off)
    assert result.text == "".join(event.text for event in found.asked.of(TextDelta)) == shown


@pytest.mark.requirement("ASK-6")
async def test_a_service_that_ignores_the_form_may_still_call(tmp_path: Path) -> None:
    own = reply_calls(("tool_search", {"query": "select:deep.probe"}))
    written = calls("text", ("deep__probe", {"q": "a"}))
    done = reply_text("Done.")
    found = await played(tmp_path, "json_schema", "chat", True, own, written, done)
    assert (found.ran, found.asked.result.text) == ([{"q": "a"}], "Done.")


@pytest.mark.requirement("TS-13")
@EACH_MODE
async def test_an_invented_tool_is_refused(
    tmp_path: Path, mode: str, wire: str, stream: bool
) -> None:
    invented = calls(mode, ("deep__probes", {"q": "a"}))
    found = await played(tmp_path, mode, wire, stream, invented, says(mode, "Sorry."))
    codes = [each.error_code for each in found.asked.of(ToolFinished)]
    assert (found.ran, codes) == ([], ["tool.unknown"])
    assert found.asked.result.text == "Sorry."
