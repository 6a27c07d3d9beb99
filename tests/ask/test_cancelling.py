"""Callers who go away: tools are cancelled first, and the ask still ends exactly once."""

import asyncio
from pathlib import Path

import pytest

from session_runtime import AskRequest
from session_runtime.types import AskFinished, ToolProgress
from tests.support import HANGS, calls, opened, scripted, tool_folder, write_handler

SEARCH_OFF = "[skills]\nprefetch_tools = []\n"


@pytest.mark.requirement("ASK-1")
async def test_cancelling_the_caller_cancels_the_tool_and_still_sends_the_last_event(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    script = scripted(tmp_path, calls(("hang", {})))
    cancelled: list[str] = []
    events: list[object] = []
    running = asyncio.Event()

    def emit(event: object) -> None:
        events.append(event)
        if isinstance(event, ToolProgress):
            running.set()

    async with opened(
        tmp_path, tool_folder(tmp_path) + SEARCH_OFF + script, resources={"cancelled": cancelled}
    ) as runtime:
        task = asyncio.create_task(runtime.ask(AskRequest("go"), emit))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert runtime.asks == 0
    assert len(cancelled) == 1
    last = events[-1]
    assert isinstance(last, AskFinished)
    assert last.result.outcome == "cancelled"
    assert sum(isinstance(e, AskFinished) for e in events) == 1


SLOW_TO_STOP = """
import asyncio

async def execute(args, context):
    context.progress(0)
    try:
        await asyncio.Event().wait()
    finally:
        await context.resources["may_stop"].wait()
        context.resources["stopped"].append(context.call_id)
"""


@pytest.mark.requirement("ASK-1")
async def test_a_caller_who_cancels_twice_still_waits_for_the_tools_to_stop(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "slow", code=SLOW_TO_STOP)
    script = scripted(tmp_path, calls(("slow", {})))
    stopped: list[str] = []
    started, may_stop = asyncio.Event(), asyncio.Event()
    async with opened(
        tmp_path,
        tool_folder(tmp_path) + SEARCH_OFF + script,
        resources={"may_stop": may_stop, "stopped": stopped},
    ) as runtime:
        task = asyncio.create_task(
            runtime.ask(
                AskRequest("go"), lambda e: started.set() if e.type == "tool.progress" else 0
            )
        )
        await started.wait()
        for _ in range(2):
            task.cancel()
            await asyncio.wait([task], timeout=0)
        assert (runtime.asks, stopped) == (1, [])
        may_stop.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(stopped) == 1
