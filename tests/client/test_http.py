"""The HTTP client of backends, with a daemon: what it sends again, and what runs once (NET-1)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.client.http import HttpClient, Pauses
from session_runtime.errors import PermanentError, RequestError, TransientError
from session_runtime.types import AskResult, ErrorInfo
from tests.client.cutting import Way, way
from tests.support import calls, opened, says, scripted, tool_folder, write_handler
from tests.transports.stub import Emit, StubDoor, finish, key_of, refused, serving

WAITS = """
async def execute(args, context):
    context.resources["ran"].append(context.ask_id)
    context.resources["started"].set()
    try:
        await context.resources["go_on"].wait()
    finally:
        context.resources["over"].set()
    return "done"
"""
QUICK = "def execute(args, context):\n    return {'user': context.identity.user}\n"
EVENTS = ["ask.started", "turn.started", "tool.started", "tool.finished", "turn.started"]
INVOKE = '[http.invoke]\nenabled = true\nallow = ["*"]\n'


@dataclass
class Here:
    """A daemon whose tool waits, the way to it, a client, and what the client waited for."""

    folder: Path
    way: Way
    resources: dict[str, Any]
    waited: list[float] = field(default_factory=list)
    has_waited: asyncio.Event = field(default_factory=asyncio.Event)
    on_wait: Any = None

    @property
    def ran(self) -> int:
        return len(self.resources["ran"])

    def client(self, **options: Any) -> HttpClient:
        return HttpClient(self.way.url, pauses=Pauses(self.sleep, lambda: 1.0), **options)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        self.has_waited.set()
        if self.on_wait is not None:
            await self.on_wait()
        await asyncio.sleep(0)

    @asynccontextmanager
    async def daemon(self, more: str = "") -> AsyncIterator[Runtime]:
        config = (
            "[skills]\nprefetch_tools = []\n"
            + scripted(self.folder, calls(("wait", {})), says("hello"))
            + tool_folder(self.folder)
            + "bundled = false\n"
            + more
        )
        async with (
            opened(self.folder, config, resources=self.resources) as runtime,
            serving(runtime) as served,
        ):
            self.way.target = served.port
            yield runtime
            self.way.target = None
            self.way.cut()


@asynccontextmanager
async def here(folder: Path) -> AsyncIterator[Here]:
    write_handler(folder / "tools", "wait", code=WAITS)
    write_handler(folder / "tools", "quick", code=QUICK, runtime={"aliases": ["fast"]})
    resources: dict[str, Any] = {"ran": []}
    resources |= {name: asyncio.Event() for name in ("started", "go_on", "over")}
    async with way(None) as there, asyncio.timeout(60):
        yield Here(folder, there, resources)


def after_start(runtime: Runtime, then: Iterator[Callable[[], None]]) -> None:
    """Do the next of these each time that the daemon has just begun to keep an ask."""
    start = runtime.kept.start

    async def start_and_do(*args: Any, **more: Any) -> Any:
        kept = await start(*args, **more)
        next(then, lambda: None)()
        return kept

    runtime.kept.start = start_and_do  # type: ignore[method-assign]


@pytest.mark.requirement("NET-1g")
async def test_an_ask_gives_its_result_and_its_events(tmp_path: Path) -> None:
    events: list[Mapping[str, Any]] = []
    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        at.resources["go_on"].set()
        answer = await client.ask("go", on_event=events.append)
    assert (answer.outcome, answer.text, answer.attempt) == ("answered", "hello", 1)
    assert (answer.ask_id, answer.may_have_run_twice) == (events[0]["ask_id"], False)
    assert [event["type"] for event in events if event["type"] != "text.delta"] == [
        *EVENTS,
        "ask.finished",
    ]
    assert events[-1]["result"] == answer.result


@pytest.mark.requirement("NET-1g")
async def test_a_cut_connection_is_made_anew_and_no_event_is_lost_or_told_twice(
    tmp_path: Path,
) -> None:
    events: list[Mapping[str, Any]] = []
    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        asking = asyncio.create_task(client.ask("go", on_event=events.append))
        await at.resources["started"].wait()
        at.way.cut()
        at.resources["go_on"].set()
        answer = await asking
    assert (answer.text, answer.may_have_run_twice, at.ran) == ("hello", False, 1)
    assert at.way.connections == 2
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


@pytest.mark.requirement("NET-1g")
async def test_a_request_that_was_cut_before_its_answer_is_joined_and_runs_once(
    tmp_path: Path,
) -> None:
    async with here(tmp_path) as at:
        async with at.daemon() as runtime, at.client() as client:
            after_start(runtime, iter([at.way.cut]))
            at.resources["go_on"].set()
            answer = await client.ask("go")
    assert (answer.text, answer.attempt, at.ran) == ("hello", 2, 1)


@pytest.mark.requirement("NET-1g")
async def test_what_is_busy_is_sent_again_no_sooner_than_the_daemon_says(tmp_path: Path) -> None:
    async with here(tmp_path) as at, at.client() as client:
        async with at.daemon("[runtime]\nmax_concurrent_asks = 1\n"):
            first = asyncio.create_task(client.ask("go"))
            await at.resources["started"].wait()

            async def end_the_first() -> None:
                at.resources["go_on"].set()
                await first

            at.on_wait = end_the_first
            answer = await client.ask("go")
    assert (answer.text, answer.attempt, answer.may_have_run_twice) == ("hello", 2, False)
    assert at.waited == [1.25]


@pytest.mark.requirement("NET-1g")
async def test_a_restarted_daemon_is_asked_again_and_the_answer_says_so(tmp_path: Path) -> None:
    async with here(tmp_path) as at, at.client() as client:
        async with at.daemon():
            asking = asyncio.create_task(client.ask("go"))
            await at.resources["started"].wait()
            at.way.target = None
            at.way.cut()
            await at.has_waited.wait()
        at.resources["go_on"].set()
        async with at.daemon():
            answer = await asking
    assert (answer.text, answer.attempt, answer.may_have_run_twice) == ("hello", 2, True)
    assert at.ran == 2


@pytest.mark.requirement("NET-1g")
async def test_a_function_that_fails_is_told_once_and_the_ask_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Mapping[str, Any]) -> None:
        raise ValueError("mine")

    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        at.resources["go_on"].set()
        assert (await client.ask("go", on_event=fail)).text == "hello"
    assert caplog.text.count("on_event failed") == 1


@pytest.mark.requirement("NET-1g")
async def test_whoever_is_cancelled_or_has_no_more_time_cancels_the_ask(tmp_path: Path) -> None:
    async with here(tmp_path) as at, at.daemon() as runtime, at.client() as client:
        asking = asyncio.create_task(client.ask("go"))
        await at.resources["started"].wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await at.resources["over"].wait()
        at.resources["started"].clear()
        with pytest.raises(TransientError, match=r"no answer came in 0\.3 s") as late:
            await client.ask("go", timeout_s=0.3)
        assert (late.value.code, late.value.may_have_run) == ("daemon.no_answer", True)
        await runtime.running.idle()
        assert at.resources["started"].is_set()


@pytest.mark.requirement("NET-1g")
async def test_an_ask_that_waits_for_its_turn_can_be_left_too(tmp_path: Path) -> None:
    async with here(tmp_path) as at, at.daemon() as runtime, at.client() as client:
        first = asyncio.create_task(client.ask({"text": "go", "conversation": "c"}))
        await at.resources["started"].wait()
        kept = asyncio.Event()
        after_start(runtime, iter([kept.set]))
        second = asyncio.create_task(client.ask({"text": "go", "conversation": "c"}))
        await kept.wait()
        assert [ask.state for ask in runtime.running.list()] == ["tools", "queued"]
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert len(runtime.running.list()) == 1
        at.resources["go_on"].set()
        assert (await first).text == "hello"


@pytest.mark.requirement("NET-1g")
async def test_whoever_comes_back_with_a_key_of_its_own_gets_the_answer(tmp_path: Path) -> None:
    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        with pytest.raises(TransientError) as late:
            await client.ask("go", idempotency_key="order-1", timeout_s=0.5)
        assert (late.value.code, late.value.may_have_run) == ("daemon.no_answer", True)
        at.resources["go_on"].set()
        answer = await client.ask("go", idempotency_key="order-1")
    assert (answer.outcome, answer.text, at.ran) == ("answered", "hello", 1)


@pytest.mark.requirement("NET-1g")
async def test_one_who_gives_up_leaves_the_ask_to_others_with_the_same_key(tmp_path: Path) -> None:
    joined = asyncio.Event()
    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        first = asyncio.create_task(client.ask("go", idempotency_key="order-1"))
        await at.resources["started"].wait()
        second = asyncio.create_task(
            client.ask("go", idempotency_key="order-1", on_event=lambda event: joined.set())
        )
        await joined.wait()
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        at.resources["go_on"].set()
        answer = await first
    assert (answer.outcome, answer.text, at.ran) == ("answered", "hello", 1)


@pytest.mark.requirement("NET-1g")
async def test_a_detached_ask_is_looked_at_followed_and_ended(tmp_path: Path) -> None:
    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        ask_id = await client.start(AskRequest("go", identity=Identity("u1", frozenset({"r"}))))
        await at.resources["started"].wait()
        running = await client.get(ask_id)
        seen = []
        async for event in client.events(ask_id, after=1):
            seen.append(event["type"])
            if event["type"] == "tool.started":
                at.way.cut()
                assert await client.cancel(ask_id)
        ended = await client.get(ask_id)
        assert not await client.cancel(ask_id)
    assert (running["state"], running["user"], running["steps"]) == ("tools", "u1", 1)
    assert seen == ["turn.started", "tool.started", "tool.finished", "ask.finished"]
    assert ended["result"]["outcome"] == "cancelled"


@pytest.mark.requirement("NET-1g")
async def test_a_tool_is_called_and_a_destructive_one_once_a_person_agrees(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "wipe", code=QUICK, runtime={"destructive": True})
    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    write_handler(tmp_path / "tools", "number", parameters=number)
    async with here(tmp_path) as at, at.daemon(INVOKE), at.client() as client:
        quick = await client.invoke("fast", identity=Identity("u1"))
        waits = await client.invoke("wipe")
        tokens = [call["token"] for call in waits.pending]
        done = await client.invoke("wipe", confirmations=tokens)
        asked_again = await client.invoke("wipe")
        no = [call["token"] for call in asked_again.pending]
        declined = await client.confirm(asked_again.answer.ask_id, declined=no)
        wrong = await client.invoke("number", {"n": "x"})
        with pytest.raises(RequestError) as unknown:
            await client.invoke("nothing")
    assert (quick.ok, quick.structured, quick.error) == (True, {"user": "u1"}, None)
    assert (waits.ok, waits.error and waits.error["code"]) == (False, "tool.needs_confirmation")
    assert (done.ok, done.text) == (True, '{"user":null}')
    assert declined.error is not None
    assert declined.error["code"] == "tool.declined"
    assert (wrong.ok, wrong.error and wrong.error["code"]) == (False, "tool.invalid_arguments")
    assert unknown.value.code == "request.unknown_tool"


@pytest.mark.requirement("NET-1g")
async def test_models_and_tools_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_runtime.transports.http.pages.MOST_TOOLS", 1)
    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        assert await client.models() == ("main",)
        listed = await client.tools(Identity("u1"), schemas=True)
    assert [tool["name"] for tool in listed] == ["quick", "wait"]
    assert listed[0]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.requirement("NET-1g")
async def test_what_has_to_be_changed_is_raised_at_once_with_its_code(tmp_path: Path) -> None:
    async with here(tmp_path) as at, at.daemon(), at.client() as client:
        for request, code in (
            ({"txt": "go"}, "request.invalid"),
            ({"text": "go", "model": "nobody"}, "request.unknown_model"),
            ({"text": "go", "confirmations": ["x"]}, "confirmation.invalid"),
        ):
            with pytest.raises(RequestError) as refused:
                await client.ask(request)
            assert refused.value.code == code
        with pytest.raises(RequestError) as unknown:
            await client.get("ask_none")
        async with at.client(key=key_of("bot")) as other:
            assert await other.models() == ("main",)
    assert (unknown.value.code, at.waited) == ("request.unknown_ask", [])


async def test_something_else_that_answers_is_no_daemon(tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 X\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with HttpClient(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(PermanentError) as told:
                await client.models()
    assert told.value.code == "daemon.bad_answer"


async def test_what_is_busy_for_longer_than_anybody_waits_is_told_at_once() -> None:
    asked: list[AskRequest] = []

    async def refuse(request: AskRequest, emit: Emit) -> AskResult:
        asked.append(request)
        error = ErrorInfo("busy.queue", "too many wait", True, 3_600.0)
        return finish(refused(error), emit)

    async with serving(StubDoor(refuse)) as served:
        async with HttpClient(f"http://127.0.0.1:{served.port}") as client:
            with pytest.raises(TransientError, match="too many wait") as busy:
                await client.ask("go", timeout_s=60)
    assert (busy.value.code, busy.value.retry_after_s, len(asked)) == ("busy.queue", 3_600.0, 1)
