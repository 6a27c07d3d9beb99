"""A fault at every step of an ask: it still ends once, nothing runs twice, and nothing is left behind."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskEvent, AskRequest, AskResult, Runtime
from session_runtime.testing.conversation import Request, question_of
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import AskFinished, Message, ToolStarted
from tests.ask.sweeping import (
    Fault,
    JumpingLoop,
    Raises,
    Steps,
    caller_goes_away,
    caller_goes_away_twice,
    operator_ends_it,
    sink_breaks,
    stepped_tasks,
    swept,
    time_is_up,
)
from tests.support import chat_profile, opened, tool_folder, write_agent, write_handler

EFFECT = """
import asyncio

async def execute(args, context):
    try:
        await asyncio.sleep(0)
        context.resources["done"].append(context.idempotency_key)
        context.progress(1, 2, "half")
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        context.resources["cancelled"].append(context.call_id)
        raise
    return "done"
"""
SETTINGS = """
[skills]
prefetch_tools = ["deep.now"]
tool_search_enabled = true
tool_search_always_loaded = ["helper"]
[runtime]
max_concurrent_asks = 1
"""
SEARCH = reply_calls(("tool_search", {"query": "select:deep.effect"}), text="I look first. ")
EFFECTS = reply_calls(("deep__effect", {"n": 1}), ("deep__effect", {"n": 2}))
DELEGATE = reply_calls(("helper", {"task": "do it"}), ("tool_search", {"query": "effect"}))
ANSWER = reply_text("All of it is done now.")
SEARCHING = (SEARCH, EFFECTS, ANSWER)
DELEGATING = (DELEGATE, EFFECTS, ANSWER)
INSIDE = (reply_calls(("deep__effect", {"n": 3})), reply_text("The agent is done."))


def player(replies: tuple[Reply, ...]) -> Callable[[Request], Reply]:
    """Replies by how many turns there were, so that a turn that is asked for again gets the same one."""

    def reply(request: Request) -> Reply:
        if question_of(request) == "are you there?":
            return reply_text("Yes.")
        inside = "You are the agent." in json.dumps(request["messages"][0])
        turns = sum(message["role"] == "assistant" for message in request["messages"])
        return (INSIDE if inside else replies)[turns]

    return reply


def check(events: list[AskEvent], ended: AskResult | BaseException) -> AskResult:
    """Exactly one last event, which is the result; every call of the transcript has one answer."""
    finished = [event.result for event in events if isinstance(event, AskFinished)]
    assert len(finished) == 1
    assert isinstance(events[-1], AskFinished)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    if isinstance(ended, AskResult):
        assert ended == finished[0]
    else:
        assert isinstance(ended, asyncio.CancelledError), ended
    check_pairs(finished[0].new_messages)
    check_answered(events, finished[0].new_messages)
    assert (finished[0].error is None) == (finished[0].outcome in ("answered", "ended"))
    return finished[0]


def check_pairs(messages: tuple[Message, ...]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call.id for call in message.tool_calls]
    assert waiting == []


def check_answered(events: list[AskEvent], messages: tuple[Message, ...]) -> None:
    """Whatever ran for the model is in the transcript, which those keep who ask on (ASK-4)."""
    begun = [
        event.call_id
        for event in events
        if isinstance(event, ToolStarted) and event.agent is None and event.name != "deep.now"
    ]
    answers = Counter(message.tool_call_id for message in messages if message.role == "tool")
    assert [answers[call_id] for call_id in begun] == [1] * len(begun)


async def check_nothing_left(runtime: Runtime, steps: Steps) -> None:
    """No task, no ask, no pin; the one place that there is can be had again."""
    assert ([task for task in steps.tasks if not task.done()], runtime.asks) == ([], 0)
    assert [each["asks"] for each in runtime.running._generations.report()] == [0]
    again = await runtime.ask(AskRequest("are you there?", conversation="c", deadline_s=2))
    assert (again.outcome, again.text) == ("answered", "Yes.")


@dataclass(frozen=True)
class Swept:
    """How the asks of a sweep ended, and how often a tool was cancelled in the middle."""

    outcomes: frozenset[str]
    cancelled: int


async def sweep(folder: Path, replies: tuple[Reply, ...], fault: Fault) -> Swept:
    """Put the fault at each step in turn until the ask ends before it."""
    write_handler(folder / "tools", "deep.effect", code=EFFECT)
    write_handler(folder / "tools", "deep.now")
    agent = 'tools = ["deep.effect"]\n'
    write_agent(folder / "tools", "helper", prompt="You are the agent.", settings=agent)
    done: list[str] = []
    cancelled: list[str] = []
    ends: set[str] = set()
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(Upstream(player(replies)))
        text = tool_folder(folder) + chat_profile(upstream.base_url) + SETTINGS
        options: dict[str, Any] = {"resources": {"done": done, "cancelled": cancelled}}
        runtime = await stack.enter_async_context(opened(folder, text, **options))
        request = AskRequest("go", conversation="c", deadline_s=50)
        await runtime.ask(request)  # imports what is imported once
        with stepped_tasks():
            for at in range(1, 10_000):
                done.clear()
                steps = Steps(at, fault, runtime)
                ended = await swept(request, steps)
                result = check(steps.events, ended)
                ends.add(result.outcome)
                assert max(Counter(done).values(), default=1) == 1, f"step {at}"
                await check_nothing_left(runtime, steps)
                if steps.count < at:
                    assert result.outcome == "answered"
                    return Swept(frozenset(ends), len(cancelled))
    raise AssertionError("the ask has no end")


def run(folder: Path, replies: tuple[Reply, ...], fault: Fault) -> Swept:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(sweep(folder, replies, fault))


ASKS = pytest.mark.parametrize("replies", [SEARCHING, DELEGATING], ids=["search", "sub-agent"])


@pytest.mark.requirement("ASK-1")
@ASKS
def test_a_caller_may_go_away_at_any_step(tmp_path: Path, replies: tuple[Reply, ...]) -> None:
    ends = run(tmp_path, replies, caller_goes_away)
    assert (ends.outcomes, ends.cancelled > 0) == ({"cancelled", "answered"}, True)


@pytest.mark.requirement("ASK-1")
@ASKS
def test_a_caller_may_go_away_twice_at_any_step(tmp_path: Path, replies: tuple[Reply, ...]) -> None:
    ends = run(tmp_path, replies, caller_goes_away_twice)
    assert (ends.outcomes, ends.cancelled > 0) == ({"cancelled", "answered"}, True)


@pytest.mark.requirement("REL-9")
@ASKS
def test_an_operator_may_end_an_ask_at_any_step(tmp_path: Path, replies: tuple[Reply, ...]) -> None:
    ends = run(tmp_path, replies, operator_ends_it)
    assert (ends.outcomes, ends.cancelled > 0) == ({"cancelled", "answered"}, True)


@pytest.mark.requirement("ASK-8")
@ASKS
def test_the_time_may_be_up_at_any_step(tmp_path: Path, replies: tuple[Reply, ...]) -> None:
    ends = run(tmp_path, replies, time_is_up)
    assert (ends.outcomes, ends.cancelled > 0) == ({"limit", "answered"}, True)


@pytest.mark.requirement("ASK-1")
@ASKS
@pytest.mark.parametrize("error", [RuntimeError, OSError, asyncio.CancelledError])
def test_any_await_may_raise(
    tmp_path: Path, replies: tuple[Reply, ...], error: type[BaseException]
) -> None:
    ends = run(tmp_path, replies, Raises(error))
    assert ends.outcomes <= {"answered", "failed", "cancelled"}
    assert len(ends.outcomes) > 1


@pytest.mark.requirement("ASK-1")
@ASKS
def test_the_sink_of_events_may_raise_at_any_event(
    tmp_path: Path, replies: tuple[Reply, ...]
) -> None:
    assert run(tmp_path, replies, sink_breaks).outcomes == {"answered"}
