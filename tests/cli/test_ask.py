import asyncio
import io
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

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
from tests.cli.conftest import Done, Run, start
from tests.support import calls, scripted, write_config, write_handler

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


FAULTY = """
import sys
from session_runtime.ask.run import AskRun
from session_runtime.cli import main

async def execute(self):
    raise KeyError("nobody thought of this")

AskRun.execute = execute
sys.exit(main(["ask", "hi"]))
"""


def test_the_log_that_a_failure_refers_to_is_on_the_error_stream(tmp_path: Path) -> None:
    with start(tmp_path, code=FAULTY) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (exits.FAILED, "")
    assert "failed: the runtime failed; its log has the details (internal)\n" in err
    assert "KeyError: 'nobody thought of this'" in err


def test_a_failure_that_says_it_all_is_not_told_twice(tmp_path: Path) -> None:
    with start(tmp_path, "ask", "hi", "--model", "nope") as process:
        _, err = process.communicate()
    assert len(err.splitlines()) == 1


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


def interrupted_ask(stub: StubRuntime) -> Callable[..., Awaitable[AskResult]]:
    """An ask that a signal interrupts, and that ends as the service ends those."""

    async def ask(request: AskRequest, emit: Callable[[AskEvent], None]) -> AskResult:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            emit(MessageSent(ask_id="a1", seq=1, text="one moment"))
            emit(AskFinished(ask_id="a1", seq=2, result=stub.result))
        raise AssertionError

    return ask


CANCELLED = AskResult(
    "a1", "cancelled", "so far", error=ErrorInfo("cancelled.caller", "the caller went away")
)


@pytest.mark.requirement("INT-5")
def test_an_interrupted_ask_still_tells_how_it_ended(
    run: Run, runtime: StubRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.result = CANCELLED
    monkeypatch.setattr(runtime, "ask", interrupted_ask(runtime))
    assert run("ask", "hi") == Done(
        exits.INTERRUPTED,
        "one moment\nso far\n",
        "cancelled: the caller went away (cancelled.caller)\n",
    )
    done = run("ask", "hi", "--json")
    assert (done.code, done.err) == (exits.INTERRUPTED, "")
    assert json.loads(done.out) == result_to_json(CANCELLED)


WAITS = """
import asyncio

async def execute(args, context):
    print("waiting", flush=True)
    await asyncio.Event().wait()
"""


@pytest.mark.requirement("INT-5")
def test_a_signal_from_the_keyboard_ends_the_tools_and_prints_the_result(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "wait", code=WAITS)
    text = scripted(tmp_path, calls(("wait", {})))
    write_config(tmp_path, f'{text}[handlers]\npaths = ["tools"]\n')
    with start(tmp_path, "ask", "hi", "--json") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    result = json.loads(out)
    assert (process.returncode, err) == (exits.INTERRUPTED, "")
    assert (result["outcome"], result["error"]["code"]) == ("cancelled", "cancelled.caller")


@pytest.mark.requirement("INT-5")
@pytest.mark.parametrize("given", [b"what time\nis it\r\n", b"\xef\xbb\xbfwhat time\nis it"])
def test_the_question_can_come_from_standard_input(
    run: Run, runtime: StubRuntime, monkeypatch: pytest.MonkeyPatch, given: bytes
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "latin-1"))
    assert run("ask", "-").code == 0
    assert runtime.requests == [AskRequest("what time\nis it")]


@pytest.mark.requirement("INT-5")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (b"", "standard input is empty: there is nothing to ask"),
        (b"\n", "standard input is empty: there is nothing to ask"),
        (b"caf\xe9", "standard input is not UTF-8 (byte 3)"),
    ],
)
def test_standard_input_that_is_no_question_is_refused(
    run: Run, runtime: StubRuntime, monkeypatch: pytest.MonkeyPatch, given: bytes, told: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    done = run("ask", "-")
    assert (done.code, done.out, runtime.requests) == (exits.USAGE, "", [])
    assert told in done.err


@pytest.mark.requirement("INT-5")
def test_an_ask_works_alone_without_any_configuration(run: Run) -> None:
    done = run("ask", "what is 2+3", "--json")
    result = json.loads(done.out)
    assert (done.code, result["outcome"], result["text"]) == (0, "answered", "5")


def test_an_unknown_model_exits_64(run: Run) -> None:
    done = run("ask", "hi", "--model", "nope")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "there is no model profile 'nope'" in done.err
