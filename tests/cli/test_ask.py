import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from session_runtime.cli import ask as ask_module
from session_runtime.cli import exits
from session_runtime.cli.options import Files
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    AskStarted,
    ErrorInfo,
    Identity,
    MessageSent,
    TextDelta,
)
from session_runtime.wire import event_to_json, result_to_json
from tests.cli.conftest import Done, Run

RESULT = AskResult("a1", "answered", "it is 天 noon", messages=("one moment",))
EVENTS: tuple[AskEvent, ...] = (
    AskStarted(ask_id="a1", seq=1, generation=1, model="m"),
    MessageSent(ask_id="a1", seq=2, text="one moment"),
    TextDelta(ask_id="a1", seq=3, text="it is"),
)


@dataclass
class StubRuntime:
    """A runtime that gives one result after some events, and remembers what it was asked."""

    result: AskResult = RESULT
    events: tuple[AskEvent, ...] = EVENTS
    requests: list[AskRequest] = field(default_factory=list)
    files: list[Files] = field(default_factory=list)

    @asynccontextmanager
    async def opened(self, files: Files) -> AsyncIterator["StubRuntime"]:
        self.files.append(files)
        yield self

    async def ask(self, request: AskRequest, emit: Callable[[AskEvent], None]) -> AskResult:
        self.requests.append(request)
        for event in self.events:
            emit(event)
            await asyncio.sleep(0)
        emit(AskFinished(ask_id="a1", seq=len(self.events) + 1, result=self.result))
        return self.result


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> StubRuntime:
    stub = StubRuntime()
    monkeypatch.setattr(ask_module, "opened", stub.opened)
    return stub


@pytest.mark.requirement("INT-5")
def test_the_answer_is_printed_with_the_messages_before_it(run: Run, runtime: StubRuntime) -> None:
    assert run("ask", "what time is it") == Done(0, "one moment\nit is 天 noon\n", "")
    assert runtime.requests == [AskRequest("what time is it")]


@pytest.mark.requirement("INT-5")
def test_json_is_the_result_and_nothing_else(run: Run, runtime: StubRuntime) -> None:
    done = run("ask", "hi", "--json")
    assert (done.code, done.err, json.loads(done.out)) == (0, "", result_to_json(RESULT))


@pytest.mark.requirement("INT-5")
@pytest.mark.requirement("INT-3a")
def test_events_are_one_object_per_line(run: Run, runtime: StubRuntime) -> None:
    done = run("ask", "hi", "--events")
    everything = (*EVENTS, AskFinished(ask_id="a1", seq=4, result=RESULT))
    assert [json.loads(line) for line in done.out.splitlines()] == [
        event_to_json(event) for event in everything
    ]


@pytest.mark.requirement("INT-5")
def test_the_options_reach_the_request(run: Run, runtime: StubRuntime) -> None:
    identity = ("--user", "u", "--role", "a", "--role", "b", "--channel", "c", "--group", "g")
    run("ask", "hi", "--config", "x.toml", "--model", "fast", *identity)
    assert runtime.files == [Files("x.toml")]
    assert runtime.requests == [
        AskRequest("hi", identity=Identity("u", frozenset("ab"), "c", "g"), model="fast")
    ]


def test_a_failure_goes_to_the_error_stream(run: Run, runtime: StubRuntime) -> None:
    error = ErrorInfo("model.network", "no route\x1b[2J", True, 2.5)
    runtime.result, runtime.events = AskResult("a1", "failed", error=error), ()
    said = r"failed: no route\x1b[2J; try again in 2.5 s (model.network)"
    assert run("ask", "hi") == Done(exits.FAILED, "", said + "\n")


def test_what_was_said_before_a_limit_is_printed(run: Run, runtime: StubRuntime) -> None:
    error = ErrorInfo("limit.steps", "the limit is reached")
    runtime.result, runtime.events = AskResult("a1", "limit", "so far", error=error), ()
    assert run("ask", "hi") == Done(
        exits.LIMIT, "so far\n", "limit: the limit is reached (limit.steps)\n"
    )


def test_half_characters_of_a_model_do_not_stop_the_output(run: Run, runtime: StubRuntime) -> None:
    runtime.result, runtime.events = AskResult("a1", "answered", "a\ud83d"), ()
    assert run("ask", "hi").out == "a\ufffd\n"
    assert json.loads(run("ask", "hi", "--json").out)["text"] == "a\ufffd"


def test_an_interrupt_cancels_the_ask(
    run: Run, runtime: StubRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[bool] = []

    async def interrupted(request: AskRequest, emit: Callable[[AskEvent], None]) -> AskResult:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        raise AssertionError

    monkeypatch.setattr(runtime, "ask", interrupted)
    assert run("ask", "hi") == Done(exits.INTERRUPTED, "", "")
    assert cancelled == [True]


@pytest.mark.requirement("INT-5")
def test_an_ask_works_alone_without_any_configuration(run: Run) -> None:
    done = run("ask", "what is 2+3", "--json")
    result = json.loads(done.out)
    assert (done.code, result["outcome"], result["text"]) == (0, "answered", "5")


def test_an_unknown_model_exits_64(run: Run) -> None:
    done = run("ask", "hi", "--model", "nope")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "there is no model profile 'nope'" in done.err
