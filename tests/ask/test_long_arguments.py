"""Arguments that take long to read do not hold up other asks."""

import threading
from pathlib import Path

import pytest

from session_runtime.ask import reading
from session_runtime.ask.arguments import ArgumentFault, Arguments, parse_arguments
from session_runtime.types import JsonObject, ToolStarted
from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler

SEARCH_OFF = "[skills]\nprefetch_tools = []\n"


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize(
    ("wanted", "aside"),
    [
        ([{"a": "x" * 20_000}, {"b": 1}, {"c": [1] * 9_000}, {"d": 2}], [True, False, True, False]),
        ([{"a": "x" * 9_000}, {"b": "x" * 9_000}, {"c": 1}], [False, True, False]),
    ],
    ids=["long ones", "many at once"],
)
async def test_long_arguments_are_read_in_a_thread_and_all_calls_keep_their_order(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wanted: list[dict[str, object]],
    aside: list[bool],
) -> None:
    read_by: list[str] = []

    def noted(raw: str, schema: JsonObject) -> Arguments | ArgumentFault:
        read_by.append(threading.current_thread().name)
        return parse_arguments(raw, schema)

    monkeypatch.setattr(reading, "parse_arguments", noted)
    write_handler(tmp_path / "tools", "echo")
    script = scripted(tmp_path, calls(*(("echo", each) for each in wanted)), says("ok"))
    async with opened(tmp_path, tool_folder(tmp_path) + SEARCH_OFF + script) as runtime:
        asked = await ask(runtime, "go")
    assert [event.arguments for event in asked.of(ToolStarted)] == wanted
    assert [thread == "reading arguments" for thread in read_by] == aside
