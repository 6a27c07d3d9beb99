"""Arguments that take long to read do not hold up other asks."""

import threading
from pathlib import Path

import pytest

from session_runtime.ask import turn
from session_runtime.ask.arguments import ArgumentFault, Arguments, parse_arguments
from session_runtime.types import JsonObject, ToolStarted
from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler

SEARCH_OFF = "[skills]\nprefetch_tools = []\n"


@pytest.mark.requirement("ASK-4")
async def test_long_arguments_are_read_in_a_thread_and_all_calls_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by: list[str] = []

    def noted(raw: str, schema: JsonObject) -> Arguments | ArgumentFault:
        read_by.append(threading.current_thread().name)
        return parse_arguments(raw, schema)

    monkeypatch.setattr(turn, "parse_arguments", noted)
    write_handler(tmp_path / "tools", "echo")
    wanted: list[dict[str, object]] = [{"a": "x" * 20_000}, {"b": 1}, {"c": [1] * 9_000}, {"d": 2}]
    script = scripted(tmp_path, calls(*(("echo", each) for each in wanted)), says("ok"))
    async with opened(tmp_path, tool_folder(tmp_path) + SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    assert [event.arguments for event in asked.of(ToolStarted)] == wanted
    here, aside = threading.current_thread().name, "reading arguments"
    assert read_by == [aside, here, aside, here]
