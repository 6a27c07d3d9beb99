"""Silence and the whole call have limits; progress ends a silence, and stopping reaches the tool once."""

import asyncio
from typing import Any

import pytest

from session_runtime.handler import HandlerContext
from session_runtime.registry.invoke.results import Renderer
from session_runtime.types import ToolResult
from tests.registry.invoke.calling import told
from tests.registry.invoke.remote import CONTEXT, HANGS, Server, call
from tests.registry.invoke.virtual_time import now, virtually


def reporting(every_s: float, times: int) -> Server:
    """A server whose tool reports its progress so often, and is then done."""

    async def work(context: HandlerContext) -> str:
        for step in range(times):
            await asyncio.sleep(every_s)
            context.progress(step, times, "on it")
        return "done"

    return Server("s", work=work)


async def timed(server: Server, **how: Any) -> tuple[ToolResult, float]:
    result = await call(server, **how)
    return result, now()


@pytest.mark.requirement("RTE-7")
def test_progress_carries_a_call_past_its_idle_limit() -> None:
    result, ended = virtually(timed(reporting(0.5, 10), idle_timeout_s=2.0))
    assert (result.status, ended) == ("ok", 5.0)


@pytest.mark.requirement("RTE-7")
def test_progress_does_not_carry_it_past_its_hard_limit() -> None:
    result, ended = virtually(timed(reporting(0.5, 100), idle_timeout_s=2.0, hard_s=4.0))
    assert told(result) == (
        "error",
        "tool.timeout",
        "far.t was stopped after 4 s without a result. It may have taken effect; trying again will "
        "probably take as long.",
    )
    assert ended == 4.0


@pytest.mark.requirement("RTE-7")
def test_a_tool_that_falls_silent_is_stopped_once_that_took_too_long() -> None:
    async def work(context: HandlerContext) -> str:
        await asyncio.sleep(1.5)
        context.progress(1)
        await asyncio.Event().wait()
        return "never"

    result, ended = virtually(timed(Server("s", work=work), idle_timeout_s=2.0))
    assert told(result) == (
        "error",
        "tool.timeout",
        "far.t was stopped, as nothing was heard of it for 2 s. It may have taken effect; trying again "
        "will probably end like this.",
    )
    assert ended == 3.5


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize("idle_s", [2.0, 60.0])
def test_the_deadline_of_the_request_bounds_both_and_is_told(idle_s: float) -> None:
    context = HandlerContext(deadline=1.5)
    result, ended = virtually(timed(Server("s", [HANGS]), idle_timeout_s=idle_s, context=context))
    assert told(result) == (
        "error",
        "tool.timeout",
        "far.t was stopped after 1.5 s without a result, as the time for this request is up. It may "
        "have taken effect.",
    )
    assert ended == 1.5


@pytest.mark.requirement("RTE-7")
def test_all_attempts_and_pauses_share_one_hard_limit() -> None:
    server = Server("s", [HANGS] * 9)
    _, ended = virtually(timed(server, idle_timeout_s=3.0, hard_s=8.0, keyed=True))
    assert (ended, server.attempts, server.cancelled) == (8.0, 3, 3)


@pytest.mark.requirement("RTE-7")
def test_progress_still_reaches_whoever_asks() -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    def sink(done: float, total: float | None, message: str | None) -> None:
        reports.append((done, total, message))

    virtually(call(reporting(0.5, 2), context=HandlerContext(on_progress=sink)))
    assert reports == [(0, 2, "on it"), (1, 2, "on it")]


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize("how", ["caller", "idle", "hard"])
def test_a_stopped_call_is_cancelled_once_and_nothing_is_left(how: str) -> None:
    async def run() -> None:
        server, limits = Server("s", [HANGS]), {"hard_s": 2.0} if how == "hard" else {}
        calling = asyncio.create_task(call(server, idle_timeout_s=2.0, **limits))
        await asyncio.sleep(1)
        if how == "caller":
            calling.cancel()
        await asyncio.wait({calling})
        assert calling.cancelled() is (how == "caller")
        assert server.cancelled == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtually(run())


class Stuck(Renderer):
    """Never done with showing a result."""

    async def draft(self, value: object, limit: int, reference: str | None) -> None:
        await asyncio.Event().wait()


@pytest.mark.requirement("RTE-7")
def test_a_result_that_cannot_be_shown_in_time_is_told_as_one_that_was_there() -> None:
    server = Server("s")
    result, ended = virtually(timed(server, hard_s=5.0, renderer=Stuck(), keyed=True))
    assert told(result) == (
        "error",
        "tool.timeout",
        "far.t ran and may have taken effect, but the time was up before its result could be shown.",
    )
    assert (ended, server.executions) == (5.0, 1)


def test_the_context_is_otherwise_the_callers() -> None:
    seen: list[HandlerContext] = []

    async def work(context: HandlerContext) -> None:
        seen.append(context)

    virtually(call(Server("s", work=work), hard_s=9.0))
    assert (seen[0].call_id, seen[0].deadline) == (CONTEXT.call_id, 9.0)
