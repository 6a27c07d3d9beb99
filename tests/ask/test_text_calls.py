"""Whole asks whose model writes its calls as text: they run like calls, and no markup is seen (ASK-6)."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Runtime
from session_runtime.testing.misbehaviour import misbehave
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import MessageSent, TextDelta, ToolFinished, ToolStarted
from tests.support import (
    ask,
    chat_profile,
    opened,
    says,
    scripted,
    tool_folder,
    write_config,
    write_handler,
)

SEARCH_ON = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
SEARCH_OFF = "[skills]\nprefetch_tools = []\n"
Q = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
HERMES = '<tool_call>{"name": "%s", "arguments": %s}</tool_call>'


@pytest.fixture
def probe(tmp_path: Path) -> str:
    write_handler(tmp_path / "tools", "my.probe", parameters=Q)
    return tool_folder(tmp_path)


@pytest.mark.requirement("ASK-6")
async def test_a_message_that_is_written_as_a_call_is_sent_once_and_its_markup_is_not_seen(
    tmp_path: Path,
) -> None:
    script = scripted(tmp_path, says(HERMES % ("send_message", '{"text": "hi"}')), says("Done."))
    async with opened(tmp_path, SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "greet me")
    assert [event.text for event in asked.of(MessageSent)] == ["hi"]
    assert "".join(event.text for event in asked.of(TextDelta)) == "Done."
    assert (asked.result.outcome, asked.result.text) == ("answered", "Done.")


@pytest.mark.requirement("ASK-6")
async def test_a_tool_that_is_not_exposed_does_not_run_and_the_model_is_told(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "secret.wipe", code="raise SystemExit('it ran')\n")
    denied = '[access.rules.r]\ndeny = ["secret.*"]\n'
    script = scripted(tmp_path, says(HERMES % ("secret__wipe", "{}")), says("Sorry."))
    async with opened(tmp_path, tool_folder(tmp_path) + SEARCH_OFF + denied + script) as runtime:
        asked = await ask(runtime, "wipe it")
    (refused,) = asked.of(ToolFinished)
    assert (refused.status, refused.error_code) == ("refused", "tool.unknown")
    assert "there is no tool named 'secret__wipe'" in str(asked.result.new_messages[2].content)
    assert (asked.result.text, asked.of(ToolStarted)) == ("Sorry.", [])


@pytest.mark.requirement("ASK-6")
@pytest.mark.requirement("TS-13")
async def test_a_tool_that_is_not_loaded_is_refused_with_the_way_to_load_it(
    tmp_path: Path, probe: str
) -> None:
    script = scripted(
        tmp_path,
        says('{"name": "my__probe", "arguments": {"q": "a"}}'),
        says(HERMES % ("tool_search", '{"query": "select:my.probe"}')),
        says('```json\n{"name": "my__probe", "arguments": {"q": "a"}}\n```'),
        says("Found."),
    )
    async with opened(tmp_path, probe + SEARCH_ON + script) as runtime:
        asked = await ask(runtime, "probe")
    finished = [(event.name, event.error_code) for event in asked.of(ToolFinished)]
    assert finished == [
        ("my.probe", "tool.not_loaded"),
        ("tool_search", None),
        ("my.probe", None),
    ]
    assert (asked.result.text, asked.result.loaded_tools) == ("Found.", ("my.probe",))


@pytest.mark.requirement("ASK-6")
async def test_data_that_looks_like_a_call_of_no_tool_is_the_answer(
    tmp_path: Path, probe: str
) -> None:
    data = '{"name": "Socrates", "arguments": {"first": "All men are mortal."}}'
    async with opened(tmp_path, probe + SEARCH_ON + scripted(tmp_path, says(data))) as runtime:
        asked = await ask(runtime, "give me JSON")
    assert (asked.result.text, asked.of(ToolFinished)) == (data, [])
    assert "".join(event.text for event in asked.of(TextDelta)) == data


@pytest.mark.requirement("ASK-6")
async def test_history_holds_the_call_as_if_it_had_been_made(tmp_path: Path, probe: str) -> None:
    writing = misbehave("text_hermes", reply_calls(("my__probe", {"q": "a"})))
    async with Upstream([writing, reply_text("Done.")]) as upstream:
        profile = chat_profile(upstream.base_url)
        async with opened(tmp_path, probe + SEARCH_OFF + profile) as runtime:
            asked = await ask(runtime, "probe")
    function = {"name": "my__probe", "arguments": '{"q": "a"}'}
    call = {"id": "call_0", "type": "function", "function": function}
    assert upstream.requests[1]["messages"][-2:] == [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": '{"got":{"q":"a"}}'},
    ]
    assert [message.content for message in asked.result.new_messages][1] is None


@pytest.mark.requirement("ASK-3b")
@pytest.mark.requirement("ASK-6")
async def test_a_service_that_never_saw_the_call_gets_the_whole_conversation_and_a_new_chain(
    tmp_path: Path, probe: str
) -> None:
    call = reply_calls(("my__probe", {"q": "a"}))
    replies = [misbehave("text_invoke", call), call, reply_text("Done.")]
    async with Upstream(replies) as upstream:
        profile = chat_profile(upstream.base_url, wire="responses")
        async with opened(tmp_path, probe + SEARCH_OFF + profile) as runtime:
            asked = await ask(runtime, "probe")
    assert asked.result.text == "Done."
    sent = [(r.get("previous_response_id"), kinds(r["input"])) for r in upstream.requests]
    assert sent == [
        (None, ["message"]),
        (None, ["message", "function_call", "function_call_output"]),
        ("resp_2", ["function_call_output"]),
    ]


def kinds(items: list[dict[str, Any]]) -> list[str]:
    return [item["type"] for item in items]


@pytest.mark.requirement("ASK-6")
@pytest.mark.requirement("OPS-1")
async def test_the_trace_says_that_a_call_was_written_as_text(tmp_path: Path, probe: str) -> None:
    raw = HERMES % ("my__probe", '{"q": "a",}')
    ghost = HERMES % ("ghost", "{}")
    script = scripted(tmp_path, says(raw), says(ghost), says("Done."))
    file = write_config(tmp_path, probe + SEARCH_OFF + script)
    file.write_text(file.read_text().replace("enabled = false", 'path = "trace.jsonl"'))
    async with Runtime.open(file, env={}, watch=False) as runtime:
        await runtime.ask(AskRequest("probe"))
    (line,) = (tmp_path / "trace.jsonl").read_text().splitlines()
    calls = [call for turn in json.loads(line)["turns"] for call in turn["calls"]]
    assert [(call["name"], call["status"], call["repairs"]) for call in calls] == [
        ("my.probe", "ok", ["written as text", "trailing comma"]),
        ("ghost", "refused", ["written as text"]),
    ]


@pytest.mark.requirement("ASK-6")
async def test_a_profile_can_turn_it_off(tmp_path: Path, probe: str) -> None:
    text = HERMES % ("my__probe", '{"q": "a"}')
    script = scripted(tmp_path, says(text)) + "recover_text_calls = false\n"
    async with opened(tmp_path, probe + SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "probe")
    assert (asked.result.text, asked.of(ToolFinished)) == (text, [])


@pytest.mark.requirement("ASK-6")
async def test_end_that_is_written_as_text_ends_the_ask(tmp_path: Path) -> None:
    script = scripted(tmp_path, says("<think>Enough.</think>\n<function=end>{}</function>"))
    async with opened(tmp_path, SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "bye")
    assert (asked.result.outcome, asked.result.text) == ("ended", "")


@pytest.mark.requirement("ASK-5")
async def test_a_value_that_is_not_of_its_type_is_refused_with_words(tmp_path: Path) -> None:
    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    write_handler(tmp_path / "tools", "count", parameters=number)
    text = "<function=count><parameter=n>many</parameter></function>"
    script = scripted(tmp_path, says(text), says("Sorry."))
    async with opened(tmp_path, tool_folder(tmp_path) + SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "count")
    (finished,) = asked.of(ToolFinished)
    assert (finished.status, finished.error_code) == ("error", "tool.invalid_arguments")
    assert "n" in str(asked.result.new_messages[2].content)
