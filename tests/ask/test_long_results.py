"""Whole asks with results that are too long: the summary, what reads the rest, and who may have it."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Message
from session_runtime.ask import service
from session_runtime.ask.kept import Room
from session_runtime.types import Notice, ToolCall, ToolsLoaded, TurnStarted
from tests.support import Asked, ask, calls, opened, says, scripted, tool_folder, write_handler

SEARCH = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
NO_SEARCH = "[skills]\nprefetch_tools = []\n"
LIMIT = "[ask]\nmax_result_chars = 600\n"
PINNED = 'tool_search_always_loaded = ["long", "end"]\n'
LONG = "def execute(args, context):\n    return {'total': 7, 'text': 'abcde' * 200}\n"
WHOLE = json.dumps({"total": 7, "text": "abcde" * 200}, separators=(",", ":"))


def read(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return "results.read", {"reference": "result_1", **arguments}


def texts(asked: Asked) -> list[str]:
    return [str(m.content) for m in asked.result.new_messages if m.role == "tool"]


@pytest.fixture
def tools(tmp_path: Path) -> str:
    write_handler(tmp_path / "tools", "long", code=LONG)
    return tool_folder(tmp_path)


@pytest.mark.requirement("ASK-8b")
async def test_what_reads_a_long_result_is_loaded_for_the_next_turn_without_a_search(
    tmp_path: Path, tools: str
) -> None:
    script = scripted(
        tmp_path,
        calls(("long", {})),
        calls(read()),
        calls(read(offset=400), ("long", {"again": 1})),
        says("done"),
    )
    notices = '[notices]\nmode = "all"\n'
    config = tools + SEARCH + PINNED + LIMIT + notices + script
    async with opened(tmp_path, config) as runtime:
        asked = await ask(runtime, "go")
    summary, first, second, again = texts(asked)
    assert json.loads(summary) == {
        "kind": "object",
        "characters": len(WHOLE),
        "count": 2,
        "fields": {"total": 7},
        "left_out": {"text": "text of 1000 characters"},
        "reference": "result_1",
        "note": "Shortened. results.read gives the whole by its reference, from the next turn on.",
    }
    assert first.partition("\n")[2] + second.partition("\n")[2] == WHOLE[:800]
    assert json.loads(again)["reference"] == "result_4"
    assert [e.names for e in asked.of(ToolsLoaded)] == [("results.read",)]
    assert asked.result.loaded_tools == ("results.read",)
    assert [e.exposed[2:] for e in asked.of(TurnStarted)] == [
        ("tool_search",),
        *[("tool_search", "results.read")] * 3,
    ]
    assert [e.text for e in asked.of(Notice)].count("tool_search") == 0


@pytest.mark.requirement("ASK-8b")
async def test_loading_it_appends_after_what_a_search_of_the_same_turn_loads(
    tmp_path: Path, tools: str
) -> None:
    search = ("tool_search", {"query": "select:math.evaluate"})
    script = scripted(tmp_path, calls(("long", {}), search), says("done"))
    async with opened(tmp_path, tools + SEARCH + PINNED + LIMIT + script) as runtime:
        asked = await ask(runtime, "go")
    assert asked.result.loaded_tools == ("math.evaluate", "results.read")
    assert asked.of(TurnStarted)[1].exposed[2:] == ("tool_search", "math.evaluate", "results.read")


@pytest.mark.requirement("ASK-8b")
async def test_without_tool_search_it_is_there_from_the_start(tmp_path: Path, tools: str) -> None:
    script = scripted(tmp_path, calls(("long", {})), calls(read(length=5)), says("done"))
    async with opened(tmp_path, tools + NO_SEARCH + LIMIT + script) as runtime:
        asked = await ask(runtime, "go")
    assert texts(asked)[1].endswith('Go on with offset 5.\n{"tot')
    assert (asked.of(ToolsLoaded), asked.result.loaded_tools) == ([], ())


def is_without_reference(asked: Asked) -> bool:
    (summary,) = texts(asked)
    return "reference" not in json.loads(summary) and "results.read" not in summary


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize("search", [SEARCH + PINNED, NO_SEARCH])
@pytest.mark.parametrize("how", ["forbidden", "disabled", "replaced"])
async def test_where_it_cannot_be_called_no_reference_is_given(
    tmp_path: Path, tools: str, search: str, how: str
) -> None:
    script = scripted(tmp_path, calls(("long", {})), says("done"))
    config = tools + search + LIMIT + script
    match how:
        case "forbidden":
            config += '[access.rules.r]\ndeny = ["results.*"]\n'
        case "disabled":
            config = config.replace("[handlers]", '[handlers]\ndisabled = ["results.read"]')
        case "replaced":
            write_handler(tmp_path / "tools", "results.read")
    async with opened(tmp_path, config) as runtime:
        asked = await ask(runtime, "go")
    assert is_without_reference(asked)
    assert asked.of(ToolsLoaded) == []


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(("max_tools", "readable"), [(3, False), (4, True)])
async def test_where_the_model_takes_no_further_tool_no_reference_is_given(
    tmp_path: Path, tools: str, max_tools: int, readable: bool
) -> None:
    script = scripted(tmp_path, calls(("long", {})), says("done")) + f"max_tools = {max_tools}\n"
    async with opened(tmp_path, tools + SEARCH + PINNED + LIMIT + script) as runtime:
        asked = await ask(runtime, "go")
    assert is_without_reference(asked) is not readable
    assert asked.result.loaded_tools == (("results.read",) if readable else ())


@pytest.mark.requirement("ASK-8b")
async def test_a_prefetched_result_is_shortened_too_and_readable_in_the_first_turn(
    tmp_path: Path, tools: str
) -> None:
    prefetch = SEARCH.replace("[]", '["long"]')
    script = scripted(tmp_path, calls(read(offset=0, length=9)), says("done"))
    async with opened(tmp_path, tools + prefetch + LIMIT + script) as runtime:
        asked = await ask(runtime, "go")
    assert texts(asked)[0].endswith('\n{"total":')
    assert asked.of(TurnStarted)[0].exposed[-1] == "results.read"
    assert asked.result.loaded_tools == ("results.read",)


@pytest.mark.requirement("ASK-8b")
async def test_a_reference_of_another_ask_is_as_unknown_as_one_that_never_was(
    tmp_path: Path, tools: str
) -> None:
    script = scripted(tmp_path, calls(("long", {}), read()), says("done"))
    async with opened(tmp_path, tools + NO_SEARCH + LIMIT + script) as runtime:
        first = await ask(runtime, "one")
        history = [
            *first.result.new_messages,
            Message("assistant", None, (ToolCall("x", "long", "{}"),)),
            Message("tool", '{"reference":"result_1"}', tool_call_id="x"),
        ]
        second = await ask(runtime, AskRequest("two", history=history))
    assert json.loads(texts(second)[0])["reference"] == "result_2"
    assert "There is no result 'result_1' in this request." in texts(second)[1]


@pytest.mark.requirement("ASK-8b")
async def test_results_of_one_turn_are_numbered_in_the_order_of_their_calls(tmp_path: Path) -> None:
    waits = (
        "async def execute(args, context):\n"
        "    await context.resources['second'].wait()\n"
        "    return 'first' * 200\n"
    )
    sets = (
        "async def execute(args, context):\n"
        "    context.resources['second'].set()\n"
        "    return b'second'\n"
    )
    write_handler(tmp_path / "tools", "one", code=waits)
    write_handler(tmp_path / "tools", "two", code=sets)
    script = scripted(tmp_path, calls(("one", {}), ("two", {})), says("done"))
    config = tool_folder(tmp_path) + NO_SEARCH + LIMIT + script
    async with opened(tmp_path, config, resources={"second": asyncio.Event()}) as runtime:
        asked = await ask(runtime, "go", deadline_s=10)
    one, two = texts(asked)
    assert '"result_1"' in one
    assert json.loads(two)["reference"] == "result_2"


WAITS = """
async def execute(args, context):
    await context.resources["reached"].put(context.ask_id)
    await context.resources["go_on"].wait()
"""


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize("how", ["answers", "is cancelled"])
async def test_asks_share_the_room_for_long_results_and_give_it_back_however_they_end(
    tmp_path: Path, tools: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "Room", partial(Room, len(WHOLE) * 3 // 2))
    write_handler(tmp_path / "tools", "waits", code=WAITS)
    script = scripted(tmp_path, calls(("long", {})), calls(("waits", {})), says("done"))
    shared: dict[str, Any] = {"reached": asyncio.Queue(), "go_on": asyncio.Event()}
    async with opened(tmp_path, tools + NO_SEARCH + LIMIT + script, resources=shared) as runtime:
        first = asyncio.create_task(ask(runtime, "go"))
        await shared["reached"].get()
        second = asyncio.create_task(ask(runtime, "go"))
        await shared["reached"].get()
        if how == "is cancelled":
            first.cancel()
        shared["go_on"].set()
        ended = await asyncio.gather(first, second, return_exceptions=True)
        third = await ask(runtime, "go")
    summaries = [json.loads(texts(asked)[0]) for asked in ended if isinstance(asked, Asked)]
    assert [each.get("reference") for each in summaries] == ["result_1", None][-len(summaries) :]
    assert "the rest is not kept" in summaries[-1]["note"]
    assert json.loads(texts(third)[0])["reference"] == "result_1"


@pytest.mark.requirement("ASK-8a")
async def test_what_a_repeated_call_is_told_leaves_its_result_within_the_limit(
    tmp_path: Path,
) -> None:
    code = "def execute(args, context):\n    return 'word ' * 1000\n"
    write_handler(tmp_path / "tools", "wordy", code=code)
    script = scripted(tmp_path, *[calls(("wordy", {}))] * 3, says("done"))
    limit = "[ask]\nmax_result_chars = 800\n"
    async with opened(tmp_path, tool_folder(tmp_path) + NO_SEARCH + limit + script) as runtime:
        asked = await ask(runtime, "go")
    content, _, note = texts(asked)[2].rpartition("\n")
    assert note.startswith("Note: this is call 3 of wordy with the same arguments")
    assert 'the reference "result_3"' in content
    assert len(texts(asked)[2]) <= 800


@pytest.mark.requirement("ASK-8a")
async def test_a_part_that_is_read_three_times_is_still_given_whole(
    tmp_path: Path, tools: str
) -> None:
    script = scripted(tmp_path, calls(("long", {})), *[calls(read())] * 3, says("done"))
    async with opened(tmp_path, tools + NO_SEARCH + LIMIT + script) as runtime:
        asked = await ask(runtime, "go")
    _, once, _, thrice = texts(asked)
    assert thrice.startswith(f"{once}\nNote: ")
    assert len(thrice) <= 600
