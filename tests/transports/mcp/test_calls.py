"""What happens while a call runs: progress, cancelling, limits, and a person who is asked."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from session_runtime.transports.mcp.callers import Caller
from session_runtime.transports.mcp.outcome import Outcome
from session_runtime.transports.mcp.progress import MOST_CHARS, ProgressRelay
from session_runtime.transports.mcp.session import MOST_CALLS
from tests.support import opened
from tests.transports.mcp.served import (
    HANDSHAKE,
    ON,
    STATELESS,
    Mode,
    serving,
    text_of,
    tools,
)

ERAS = pytest.mark.parametrize("mode", [HANDSHAKE, STATELESS])
WAITS = """
import asyncio

async def execute(args, context):
    context.progress(1, 2, "half")
    context.resources["started"].set()
    try:
        await context.resources["go_on"].wait()
    except asyncio.CancelledError:
        context.resources["cancelled"].set()
        raise
    return "went on"
"""
WIPES = """
def execute(args, context):
    context.resources["wiped"].append(args)
    return "wiped"
"""
Told = tuple[float, float | None, str | None]


def events() -> dict[str, asyncio.Event]:
    return {name: asyncio.Event() for name in ("started", "go_on", "cancelled")}


@ERAS
async def test_progress_reaches_the_client_while_the_call_runs(tmp_path: Path, mode: Mode) -> None:
    resources, told = events(), []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))
        resources["go_on"].set()

    config = tools(tmp_path, "a.wait", code=WAITS) + ON
    async with (
        serving(tmp_path, config, resources=resources) as served,
        served.client(mode) as client,
    ):
        result = await client.call_tool("a.wait", {}, progress_callback=hear)
    assert text_of(result) == "went on"
    assert told == [(1.0, 2.0, "half")]


@ERAS
async def test_cancelling_reaches_the_tool(tmp_path: Path, mode: Mode) -> None:
    resources = events()
    config = tools(tmp_path, "a.wait", code=WAITS) + ON
    async with (
        serving(tmp_path, config, resources=resources) as served,
        served.client(mode) as client,
    ):
        calling = asyncio.create_task(client.call_tool("a.wait", {}))
        await resources["started"].wait()
        calling.cancel()
        await resources["cancelled"].wait()
        await served.runtime.callers.idle()
        assert served.runtime.callers.running == 0


async def test_a_client_that_goes_leaves_no_call_behind(tmp_path: Path) -> None:
    resources = events()
    config = tools(tmp_path, "a.wait", code=WAITS) + ON
    async with serving(tmp_path, config, resources=resources) as served:
        async with served.client() as client:
            calling = asyncio.create_task(client.call_tool("a.wait", {}))
            await resources["started"].wait()
        await asyncio.wait([calling])
        assert calling.exception() is not None
        await resources["cancelled"].wait()


@pytest.mark.requirement("NET-5a")
async def test_one_client_has_only_so_many_calls_at_once(tmp_path: Path) -> None:
    resources = events()
    config = tools(tmp_path, "a.wait", code=WAITS) + ON
    async with (
        serving(tmp_path, config, resources=resources) as served,
        served.client() as client,
    ):
        calls = [asyncio.create_task(client.call_tool("a.wait", {})) for _ in range(MOST_CALLS + 1)]
        (first,), _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        resources["go_on"].set()
        texts = [text_of(call.result()) for call in (await asyncio.wait(calls))[0]]
    assert "32 calls of this client are running: nothing was run" in text_of(first.result())
    assert texts.count("went on") == MOST_CALLS


@pytest.mark.requirement("NET-5a")
async def test_all_clients_together_have_only_so_many_calls_at_once(tmp_path: Path) -> None:
    resources = events()
    config = tools(tmp_path, "a.wait", code=WAITS) + ON + "[runtime]\nmax_concurrent_asks = 1\n"
    async with (
        serving(tmp_path, config, resources=resources) as served,
        served.client() as one,
        served.client(STATELESS) as other,
    ):
        calling = asyncio.create_task(one.call_tool("a.wait", {}))
        await resources["started"].wait()
        refused = await other.call_tool("a.wait", {})
        resources["go_on"].set()
        assert text_of(await calling) == "went on"
    assert refused.is_error
    assert "1 calls are running, the most that are allowed" in text_of(refused)


@pytest.mark.requirement("NET-5c")
async def test_calls_count_as_asks_of_their_user(tmp_path: Path) -> None:
    config = tools(tmp_path, "a.wait", code=WAITS) + ON + "[limits]\nuser_asks_per_minute = 1\n"
    resources = events()
    resources["go_on"].set()
    async with serving(tmp_path, config, resources=resources) as served, served.client() as client:
        first, second = [await client.call_tool("a.wait", {}) for _ in range(2)]
    assert (text_of(first), second.is_error) == ("went on", True)
    assert "may ask 1 times per minute (user_asks_per_minute)" in text_of(second)
    assert text_of(second).endswith("Nothing was run.")


@pytest.mark.parametrize(
    ("action", "words", "runs"),
    [("accept", "wiped", 1), ("decline", "did not agree", 0), ("cancel", "did not agree", 0)],
)
async def test_a_client_that_can_asks_its_person_before_a_destructive_tool_runs(
    tmp_path: Path, action: Any, words: str, runs: int
) -> None:
    asked: list[str] = []
    wiped: list[object] = []

    async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    config = tools(tmp_path, "a.wipe", code=WIPES, runtime={"destructive": True}) + ON
    async with (
        serving(tmp_path, config, resources={"wiped": wiped}) as served,
        served.client(elicitation_callback=ask) as client,
    ):
        result = await client.call_tool("a.wipe", {"all": "天\u202e"})
    assert words in text_of(result)
    assert wiped == [{"all": "天\u202e"}] * runs
    (question,) = asked
    assert "May a.wipe run?" in question
    assert "\u202e" not in question


async def test_nobody_is_asked_where_destructive_tools_are_denied(tmp_path: Path) -> None:
    async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
        raise AssertionError

    config = tools(tmp_path, "a.wipe", runtime={"destructive": True}) + ON
    config += '[access]\ndestructive = "deny"\n'
    async with (
        serving(tmp_path, config) as served,
        served.client(elicitation_callback=ask) as client,
    ):
        result = await client.call_tool("a.wipe", {})
    assert "there is no tool named 'a.wipe' here" in text_of(result)


async def test_nobody_is_asked_to_read_endless_arguments(tmp_path: Path) -> None:
    async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
        raise AssertionError

    config = tools(tmp_path, "a.wipe", runtime={"destructive": True}) + ON
    async with (
        serving(tmp_path, config) as served,
        served.client(elicitation_callback=ask) as client,
    ):
        result = await client.call_tool("a.wipe", {"text": "x" * 20_000})
    assert "nobody is asked to read more than 10000" in text_of(result)


async def test_a_slow_client_gets_the_newest_progress_and_only_what_grows() -> None:
    sent: list[Told] = []
    taken = asyncio.Event()

    async def send(done: float, total: float | None, message: str | None) -> None:
        sent.append((done, total, message))
        await taken.wait()

    relay = ProgressRelay(send)
    async with relay.running() as report:
        await asyncio.to_thread(report, 1, 10, "a" * 1000)
        await asyncio.to_thread(_wait_for, sent)
        for done in (2, 3, 9, 4):
            report(done, 10, None)
        taken.set()
    report(10, 10, "too late")
    assert sent == [(1, 10, "a" * MOST_CHARS), (4, 10, None)]


def _wait_for(sent: list[Told]) -> None:
    while not sent:
        pass


async def test_progress_that_goes_back_is_not_sent() -> None:
    sent: list[float] = []
    told = asyncio.Event()

    async def send(done: float, total: float | None, message: str | None) -> None:
        sent.append(done)
        told.set()

    async with ProgressRelay(send).running() as report:
        report(5, None, None)
        await told.wait()
        report(3, None, None)
    assert sent == [5]


async def test_a_call_goes_on_whose_progress_the_client_does_not_take(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[float] = []
    told = asyncio.Event()

    async def send(done: float, total: float | None, message: str | None) -> None:
        tried.append(done)
        told.set()
        raise BrokenPipeError

    caplog.set_level("INFO")
    async with ProgressRelay(send).running() as report:
        report(1, None, None)
        await told.wait()
        report(2, None, None)
    gc.collect()  # what nobody retrieved is told now
    assert tried == [1]
    assert caplog.messages == ["the progress of a call could not be told: BrokenPipeError"]


async def test_a_tool_that_takes_time_to_end_is_waited_for(tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def call() -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            ended.set()
        raise AssertionError

    async with opened(tmp_path, "") as runtime:
        with anyio.CancelScope() as scope:
            asyncio.get_running_loop().call_soon(scope.cancel)
            await runtime.callers.run(Caller(), "a.slow", call())
        assert ended.is_set()
