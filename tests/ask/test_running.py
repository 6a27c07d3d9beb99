"""The asks that run, as operators see them, and what ending them at once does."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.ask.service import ALL
from session_runtime.testing.replies import Pace, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import AskFinished, AskResult, ErrorInfo, RunningAsk
from tests.support import HANGS, chat_profile, opened, tool_folder, write_handler

NO_PREFETCH = "[skills]\nprefetch_tools = []\n"


class Asking:
    """An ask in the background that tells which events it had."""

    def __init__(self, runtime: Runtime, request: AskRequest) -> None:
        self._seen: set[str] = set()
        self._changed = asyncio.Event()
        self.finishes: list[AskFinished] = []
        self.task = asyncio.create_task(runtime.ask(request, self._emit))

    def _emit(self, event: Any) -> None:
        self._seen.add(event.type)
        self._changed.set()
        if isinstance(event, AskFinished):
            self.finishes.append(event)

    async def saw(self, kind: str) -> None:
        while kind not in self._seen:
            self._changed.clear()
            await self._changed.wait()

    async def result(self) -> AskResult:
        result = await self.task
        assert [event.result for event in self.finishes] == [result]
        return result


@pytest.mark.requirement("REL-9")
async def test_a_running_ask_is_shown_with_what_it_does_now(tmp_path: Path) -> None:
    silent = reply_text("x", pace=Pace(gate=asyncio.Event()))
    async with Upstream([silent]) as upstream:
        config = NO_PREFETCH + chat_profile(upstream.base_url)
        async with opened(tmp_path, config) as runtime:
            assert runtime.running.list() == ()
            before = time.time()
            asking = Asking(runtime, AskRequest("go", identity=Identity("ann")))
            await asking.saw("turn.started")
            [shown] = runtime.running.list()
            assert before <= shown.started <= time.time()
            assert 0 <= shown.age_s
            assert shown == RunningAsk(
                ask_id=shown.ask_id,
                started=shown.started,
                age_s=shown.age_s,
                generation=1,
                model="main",
                user="ann",
                principal="local",
                steps=1,
                tool_calls=0,
                state="model",
                cancelling=False,
            )
            runtime.running.cancel(shown.ask_id, "enough")
            assert (await asking.result()).ask_id == shown.ask_id
            assert runtime.running.list() == ()


@pytest.mark.requirement("REL-9")
async def test_an_ask_that_an_operator_ends_is_cancelled_with_its_tools_and_the_reason(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    cancelled: list[str] = []
    async with Upstream([reply_calls(("hang", {}), ("hang", {"x": 1}))]) as upstream:
        config = tool_folder(tmp_path) + NO_PREFETCH + chat_profile(upstream.base_url)
        async with opened(tmp_path, config, resources={"cancelled": cancelled}) as runtime:
            asking = Asking(runtime, AskRequest("go"))
            await asking.saw("tool.progress")
            [shown] = runtime.running.list()
            assert (shown.state, shown.steps, shown.tool_calls) == ("tools", 1, 2)
            assert runtime.running.cancel("ask_other", "no") == 0
            assert runtime.running.cancel(shown.ask_id, "the bot runs wild") == 1
            assert runtime.running.cancel(shown.ask_id, "again") == 0
            [shown] = runtime.running.list()
            assert shown.cancelling
            result = await asking.result()
    assert (result.outcome, result.error) == (
        "cancelled",
        ErrorInfo("cancelled.operator", "the bot runs wild"),
    )
    assert len(cancelled) == 2


@pytest.mark.requirement("REL-9")
async def test_all_asks_are_ended_at_once_and_new_ones_are_taken(tmp_path: Path) -> None:
    async with Upstream(lambda request: reply_text("x", pace=Pace(gate=asyncio.Event()))) as silent:
        config = NO_PREFETCH + chat_profile(silent.base_url)
        async with opened(tmp_path, config) as runtime:
            asking = [Asking(runtime, AskRequest(str(number))) for number in range(3)]
            for each in asking:
                await each.saw("turn.started")
            assert len(runtime.running.list()) == 3
            assert runtime.running.cancel(ALL, "stop everything") == 3
            results = [await each.result() for each in asking]
            assert {result.error for result in results} == {
                ErrorInfo("cancelled.operator", "stop everything")
            }
            later = Asking(runtime, AskRequest("later"))
            await later.saw("turn.started")
            assert [ask.cancelling for ask in runtime.running.list()] == [False]


async def test_an_ask_that_has_not_begun_its_first_turn_is_starting(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    config = tool_folder(tmp_path) + '[skills]\nprefetch_tools = ["hang"]\n'
    async with opened(tmp_path, config, resources={"cancelled": []}) as runtime:
        asking = Asking(runtime, AskRequest("go", model="offline"))
        await asking.saw("tool.progress")
        [shown] = runtime.running.list()
        assert (shown.state, shown.steps, shown.model) == ("starting", 0, "offline")
        runtime.running.cancel(ALL, "enough")
        assert (await asking.result()).outcome == "cancelled"
