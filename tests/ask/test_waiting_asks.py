"""Asks that wait for their turn inside a runtime: their time, their end, and what they run on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from session_runtime import AskRequest, AskResult, Runtime
from session_runtime.ask.emitter import Emit, discard
from session_runtime.ask.service import ALL
from session_runtime.testing.replies import Pace, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import AskEvent, AskFinished
from tests.support import chat_profile, opened

PLAIN = "[skills]\nprefetch_tools = []\n"
REPLACING = '[ask]\nconversations = "cancel_previous"\n[runtime]\nmax_waiting_asks = 0\n'


@asynccontextmanager
async def talking(
    folder: Path, emit: Emit = discard, config: str = ""
) -> AsyncIterator[tuple[Runtime, asyncio.Task[AskResult], asyncio.Event]]:
    """A runtime in which one ask of the conversation ``c`` runs until the event is set."""
    go_on = asyncio.Event()
    replies = [reply_text(f"answer {n}", pace=Pace(gate=go_on)) for n in range(3)]
    async with (
        asyncio.timeout(60),
        Upstream(replies) as upstream,
        opened(folder, PLAIN + config + chat_profile(upstream.base_url)) as runtime,
    ):
        first = asyncio.create_task(runtime.ask(AskRequest("one", conversation="c"), emit))
        await upstream.received(1)
        yield runtime, first, go_on


async def waiting(runtime: Runtime, **fields: float) -> asyncio.Task[AskResult]:
    task = asyncio.create_task(runtime.ask(AskRequest("two", conversation="c", **fields)))
    await asyncio.sleep(0)
    assert [each.state for each in runtime.running.list()][1:] == ["queued"]
    return task


@pytest.mark.requirement("ASK-13")
async def test_the_time_of_an_ask_is_up_while_it_waits(tmp_path: Path) -> None:
    async with talking(tmp_path) as (runtime, first, go_on):
        result = await (await waiting(runtime, deadline_s=0.01))
        assert (result.outcome, result.error and result.error.code) == ("limit", "limit.deadline")
        assert result.error is not None
        assert (result.error.retryable, result.steps) == (True, 0)
        go_on.set()
        assert (await first).outcome == "answered"


async def test_a_caller_that_leaves_while_it_waits_leaves_nothing(tmp_path: Path) -> None:
    async with talking(tmp_path) as (runtime, first, go_on):
        second = await waiting(runtime)
        second.cancel()
        await asyncio.wait([second])
        assert second.cancelled()
        assert len(runtime.running.list()) == 1
        go_on.set()
        assert (await first).outcome == "answered"
        assert (await runtime.ask(AskRequest("three", conversation="c"))).outcome == "answered"


@pytest.mark.requirement("REL-9")
async def test_an_operator_ends_what_waits_and_what_runs(tmp_path: Path) -> None:
    async with talking(tmp_path) as (runtime, first, _):
        second = await waiting(runtime)
        assert runtime.running.cancel(ALL, "enough") == 2
        assert runtime.running.cancel(ALL, "again") == 0
        results = await asyncio.gather(first, second)
        assert [(each.outcome, each.error and each.error.message) for each in results] == [
            ("cancelled", "enough")
        ] * 2


async def test_an_ask_that_just_got_its_turn_can_be_ended(tmp_path: Path) -> None:
    told: list[int] = []

    def end_all(event: AskEvent) -> None:
        if isinstance(event, AskFinished):  # the next one has the place, and has not taken a step
            told.append(runtime.running.cancel(ALL, "too late"))

    async with talking(tmp_path, end_all) as (runtime, first, go_on):
        second = await waiting(runtime)
        go_on.set()
        results = await asyncio.gather(first, second)
        assert told == [1]
        assert [each.outcome for each in results] == ["answered", "cancelled"]


@pytest.mark.requirement("ASK-13")
async def test_an_ask_that_has_no_room_to_wait_replaces_none(tmp_path: Path) -> None:
    async with talking(tmp_path, config=REPLACING) as (runtime, first, go_on):
        refused = await runtime.ask(AskRequest("two", conversation="c"))
        assert (refused.outcome, refused.error and refused.error.code) == ("failed", "busy.queue")
        go_on.set()
        assert (await first).outcome == "answered"


@pytest.mark.requirement("REL-8a")
async def test_what_waits_when_the_daemon_stops_has_its_turn(tmp_path: Path) -> None:
    async with talking(tmp_path) as (runtime, first, go_on):
        second = await waiting(runtime)
        draining = asyncio.create_task(runtime.drain(30.0))
        go_on.set()
        await draining
        assert [each.result().text for each in (first, second)] == ["answer 0", "answer 1"]


@pytest.mark.requirement("ASK-13")
async def test_a_limit_that_is_raised_in_a_running_daemon_lets_in_who_waits(tmp_path: Path) -> None:
    key = "runtime.max_concurrent_asks_per_principal"
    config = "[runtime]\nmax_concurrent_asks_per_principal = 1\n"
    async with talking(tmp_path, config=config) as (runtime, first, go_on):
        second = asyncio.create_task(runtime.ask(AskRequest("two", conversation="other")))
        await asyncio.sleep(0)
        assert [each.state for each in runtime.running.list()][1:] == ["queued"]
        await runtime.editor.set_values({key: 2}, lambda _: True, any_key=True, trigger="test")
        await asyncio.sleep(0)
        assert "queued" not in [each.state for each in runtime.running.list()]
        go_on.set()
        assert {(await each).outcome for each in (first, second)} == {"answered"}
