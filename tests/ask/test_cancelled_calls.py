"""An ask that is ended from outside leaves a record of all that it did, also of what ran just then."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Runtime
from session_runtime.direct import DirectCall
from session_runtime.testing.replies import Pace, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import AskEvent, AskFinished, ToolFinished, ToolProgress
from tests.support import (
    HANGS,
    calls,
    chat_profile,
    opened,
    scripted,
    tool_folder,
    write_handler,
)

NO_PREFETCH = "[skills]\nprefetch_tools = []\n"
CUT = ("hang", "error", "tool.cancelled")

pytestmark = pytest.mark.requirement("OPS-1a")


def site(folder: Path) -> str:
    write_handler(folder / "tools", "fast")
    write_handler(folder / "tools", "hang", code=HANGS)
    wanted = calls(("fast", {}), ("hang", {}), ("made.up", {}))
    return tool_folder(folder) + scripted(folder, wanted)


async def cancelled(
    folder: Path, text: str, request: AskRequest, signs: int = 1
) -> tuple[dict[str, Any], list[AskEvent]]:
    """The record and the events of an ask that an operator ends at so many signs of life of its tools."""
    events: list[AskEvent] = []
    runs = asyncio.Event()

    def emit(event: AskEvent) -> None:
        events.append(event)
        if sum(isinstance(each, ToolFinished | ToolProgress) for each in events) == signs:
            runs.set()

    async with opened(folder, text, resources={"cancelled": []}) as runtime:
        asking = asyncio.create_task(runtime.ask(request, emit))
        await runs.wait()
        runtime.running.cancel(events[0].ask_id, "enough")
        assert (await asking).outcome == "cancelled"
        return runtime.insight.record(events[0].ask_id), events


def told(calls: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [(call["name"], call["status"], call["error_code"]) for call in calls]


async def test_every_call_of_the_turn_that_was_cut_off_is_recorded_and_told(tmp_path: Path) -> None:
    text = site(tmp_path) + NO_PREFETCH
    record, events = await cancelled(tmp_path, text, AskRequest("go"), signs=2)
    [turn] = record["turns"]
    made = [("fast", "ok", None), CUT, ("made.up", "refused", "tool.unknown")]
    assert told(turn["calls"]) == made
    finished = [(e.name, e.status, e.error_code) for e in events if isinstance(e, ToolFinished)]
    assert sorted(finished, key=str) == sorted(made, key=str)
    assert turn["tools_s"] >= turn["calls"][1]["latency_s"] > 0


@pytest.mark.requirement("ASK-4")
async def test_what_the_tools_of_the_turn_did_is_in_the_messages_of_an_ask_that_was_cut_off(
    tmp_path: Path,
) -> None:
    text = site(tmp_path) + NO_PREFETCH
    _, events = await cancelled(tmp_path, text, AskRequest("go"), signs=2)
    [last] = [event for event in events if isinstance(event, AskFinished)]
    question, made, *results = last.result.new_messages
    assert (question.content, [call.name for call in made.tool_calls]) == (
        "go",
        ["fast", "hang", "made.up"],
    )
    assert [(each.tool_call_id, each.is_error) for each in results] == [
        (call.id, call.name != "fast") for call in made.tool_calls
    ]
    assert [str(each.content).split(" ", 4)[:4] for each in results[1:]] == [
        ["The", "call", "was", "cut"],
        ["there", "is", "no", "tool"],
    ]


async def test_a_prefetch_that_was_cut_off_is_recorded_and_its_time_is_not_the_daemon_s_own(
    tmp_path: Path,
) -> None:
    prefetching = '[skills]\nprefetch_tools = ["hang"]\nprefetch_timeout_s = 60\n'
    record, _ = await cancelled(tmp_path, site(tmp_path) + prefetching, AskRequest("go"))
    assert told(record["prefetch"]) == [CUT]
    assert record["daemon_s"] <= record["duration_s"] - record["prefetch"][0]["latency_s"] + 1e-6


async def test_a_call_by_name_that_was_cut_off_is_recorded_and_its_time_is_not_the_daemon_s_own(
    tmp_path: Path,
) -> None:
    request = AskRequest(call=DirectCall("hang", {}))
    record, _ = await cancelled(tmp_path, site(tmp_path) + NO_PREFETCH, request)
    assert told([record["invoked"]]) == [CUT]
    assert record["daemon_s"] <= record["duration_s"] - record["invoked"]["latency_s"] + 1e-6


async def queued(runtime: Runtime) -> asyncio.Task[object]:
    task: asyncio.Task[object] = asyncio.create_task(
        runtime.ask(AskRequest("two", conversation="c"))
    )
    await asyncio.sleep(0)
    assert [each.state for each in runtime.running.list()][1:] == ["queued"]
    return task


@pytest.mark.parametrize(
    ("code", "leaves"), [("cancelled.operator", False), ("cancelled.caller", True)]
)
async def test_an_ask_that_ended_before_its_turn_came_is_recorded_as_one_that_did_nothing(
    tmp_path: Path, code: str, leaves: bool
) -> None:
    go_on = asyncio.Event()
    async with (
        Upstream([reply_text("one", pace=Pace(gate=go_on))]) as upstream,
        opened(tmp_path, NO_PREFETCH + chat_profile(upstream.base_url)) as runtime,
    ):
        first = asyncio.create_task(runtime.ask(AskRequest("one", conversation="c")))
        await upstream.received(1)
        second = await queued(runtime)
        ask_id = runtime.running.list()[1].ask_id
        if leaves:
            second.cancel()
        else:
            runtime.running.cancel(ask_id, "enough")
        await asyncio.wait([second])
        record = runtime.insight.record(ask_id)
        assert runtime.insight.totals()["outcomes"] == {"cancelled": 1}
        go_on.set()
        await first
    assert (record["outcome"], record["error"]["code"]) == ("cancelled", code)
    assert (record["turns"], record["duration_s"], record["daemon_s"]) == ([], 0.0, 0.0)
