import asyncio
import json

import httpx2
import pytest

from session_runtime.transports.http.door import HttpLimits
from session_runtime.types import (
    AskFinished,
    AskRequest,
    AskResult,
    AskStarted,
    ErrorInfo,
    Identity,
    Message,
    MessageSent,
    TextDelta,
)
from session_runtime.wire import event_to_json, result_to_json
from tests.transports.stub import (
    EVENTS,
    TEXT,
    BlockedAsk,
    Emit,
    StubDoor,
    calling,
    finish,
    frames,
    head,
    serving,
)

LAST_CHUNK = b"\r\n0\r\n\r\n"
STARTED = AskStarted(ask_id="a1", seq=1, generation=1, model="m")


def streaming_request(port: int) -> bytes:
    body = json.dumps(TEXT).encode()
    fields = ("accept: text/event-stream", "content-type: application/json")
    return head(port, *fields, f"content-length: {len(body)}") + body


@pytest.mark.requirement("NET-1a")
async def test_an_ask_is_answered_with_its_result() -> None:
    async with serving() as served:
        response = await served.client.post("/v1/ask", json=TEXT)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.json() == result_to_json(AskResult("a1", "answered", "you said hi"))


async def test_the_request_reaches_the_ask_as_it_was_sent() -> None:
    seen: list[AskRequest] = []

    async def remember(request: AskRequest, emit: Emit) -> AskResult:
        seen.append(request)
        return finish(AskResult("a1", "answered"), emit)

    async with serving(StubDoor(remember)) as served:
        body = {
            "messages": [{"role": "user", "content": "天气?"}],
            "identity": {"user": "u", "roles": ["r"]},
        }
        await served.client.post("/v1/ask", json=body)
    assert seen == [
        AskRequest(messages=(Message("user", "天气?"),), identity=Identity("u", frozenset({"r"})))
    ]


@pytest.mark.requirement("NET-1a")
@pytest.mark.requirement("INT-3a")
async def test_a_stream_is_one_frame_per_event_and_ends_with_the_result() -> None:
    events = [STARTED, TextDelta(ask_id="a1", seq=2, text="a\nb 天"), MessageSent(text="one")]
    result = AskResult("a1", "answered", "done")

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        for event in events:
            emit(event)
            await asyncio.sleep(0)
        return finish(result, emit)

    async with serving(StubDoor(ask)) as served:
        response = await served.client.post("/v1/ask", json=TEXT, headers=EVENTS)
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-accel-buffering"] == "no"
    everything = [*events, AskFinished(ask_id="a1", seq=1, result=result)]
    assert frames(response.text) == [(event.type, event_to_json(event)) for event in everything]


@pytest.mark.requirement("INT-3a")
async def test_a_silent_stream_is_kept_alive_by_comment_lines() -> None:
    go_on = asyncio.Event()

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        await go_on.wait()
        return finish(AskResult("a1", "answered"), emit)

    limits = HttpLimits(max_body_bytes=1_000, ping_s=0.01)
    async with (
        serving(StubDoor(ask), limits) as served,
        served.client.stream("POST", "/v1/ask", json=TEXT, headers=EVENTS) as response,
    ):
        lines = response.aiter_lines()
        begun = [await anext(lines) for _ in range(4)]
        go_on.set()
        rest = [line async for line in lines if line and line != ": ping"]
    assert begun == [": ping", "", ": ping", ""]
    assert [line.partition(":")[0] for line in rest] == ["event", "data"]


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "stream"])
@pytest.mark.parametrize("events", [(), (STARTED,)], ids=["silent", "talking"])
async def test_a_client_that_goes_away_cancels_its_ask(
    headers: dict[str, str], events: tuple[AskStarted, ...]
) -> None:
    ask = BlockedAsk(*events)
    async with serving(StubDoor(ask)) as served:
        asking = asyncio.create_task(served.client.post("/v1/ask", json=TEXT, headers=headers))
        await ask.started.wait()
        asking.cancel()
        await ask.cancelled.wait()


@pytest.mark.requirement("ASK-1")
async def test_a_client_that_reads_slowly_loses_text_and_delays_nobody() -> None:
    emitted = asyncio.Event()
    many = 20_000

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        for seq in range(1, many + 1):
            emit(TextDelta(ask_id="a1", seq=seq, text="x" * 2_000))
            if seq % 50 == 0:
                await asyncio.sleep(0)
        emit(MessageSent(ask_id="a1", seq=many + 1, text="not lost"))
        result = AskResult("a1", "answered")
        emit(AskFinished(ask_id="a1", seq=many + 2, result=result))
        emitted.set()
        return result

    async with serving(StubDoor(ask)) as served:
        async with served.connected() as (reader, writer):
            writer.transport.pause_reading()
            writer.write(streaming_request(served.port))
            await emitted.wait()
            writer.transport.resume_reading()
            text = (await reader.readuntil(LAST_CHUNK)).decode()
    lines = [line for line in text.split("\r\n") if line.startswith("event: ")]
    got = [json.loads(line.split("\n")[1].removeprefix("data: ")) for line in lines]
    assert [event["type"] for event in got][-2:] == ["message", "ask.finished"]
    assert len(got) + sum(event.get("lost", 0) for event in got) == many + 2
    assert sum(event.get("lost", 0) for event in got) > 0


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "stream"])
@pytest.mark.parametrize(
    ("error", "status", "wait"),
    [
        (ErrorInfo("busy.capacity", "full", True, 2.2), 503, "3"),
        (ErrorInfo("busy", "full", True, 0.1), 503, "1"),
        (ErrorInfo("request.unknown_model", "no such profile"), 400, None),
    ],
)
async def test_an_ask_that_is_refused_is_an_http_error(
    error: ErrorInfo, status: int, wait: str | None, headers: dict[str, str]
) -> None:
    async def refuse(request: AskRequest, emit: Emit) -> AskResult:
        return finish(AskResult("a1", "failed", error=error, refused=True), emit)

    async with calling(StubDoor(refuse)) as client:
        response = await client.post("/v1/ask", json=TEXT, headers=headers)
    assert response.status_code == status
    assert response.headers.get("retry-after") == wait
    assert response.headers["content-type"] == "application/json"
    assert response.json()["error"]["code"] == error.code
    assert response.json()["error"]["message"] == error.message


async def test_an_ask_that_failed_on_its_way_is_a_result() -> None:
    result = AskResult("a1", "failed", error=ErrorInfo("model.network", "gone", True))

    async def fail(request: AskRequest, emit: Emit) -> AskResult:
        return finish(result, emit)

    async with calling(StubDoor(fail)) as client:
        response = await client.post("/v1/ask", json=TEXT)
    assert (response.status_code, response.json()) == (200, result_to_json(result))


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["json", "stream"])
async def test_a_fault_of_ours_is_a_plain_error_without_details(headers: dict[str, str]) -> None:
    async def break_down(request: AskRequest, emit: Emit) -> AskResult:
        raise ZeroDivisionError("secret details")

    async with calling(StubDoor(break_down)) as client:
        response = await client.post("/v1/ask", json=TEXT, headers=headers)
    assert response.status_code == 500
    assert response.json() == {
        "error": {
            "code": "internal",
            "message": "the daemon failed; its log has the details",
            "retryable": False,
        }
    }


async def test_a_stream_that_breaks_does_not_end_like_a_whole_one() -> None:
    break_now = asyncio.Event()

    async def break_down(request: AskRequest, emit: Emit) -> AskResult:
        emit(STARTED)
        await break_now.wait()
        raise ZeroDivisionError

    async with (
        serving(StubDoor(break_down)) as served,
        served.client.stream("POST", "/v1/ask", json=TEXT, headers=EVENTS) as response,
    ):
        lines = response.aiter_lines()
        assert await anext(lines) == "event: ask.started"
        break_now.set()
        with pytest.raises(httpx2.RemoteProtocolError):
            [line async for line in lines]


async def test_stopping_ends_open_streams_with_their_last_event() -> None:
    ask = BlockedAsk(STARTED)
    async with serving(StubDoor(ask)) as served:
        asking = asyncio.create_task(served.client.post("/v1/ask", json=TEXT, headers=EVENTS))
        await ask.started.wait()
        served.stop.set()
        response = await asking
    assert [event for event, _ in frames(response.text)] == ["ask.started", "ask.finished"]
    assert frames(response.text)[-1][1]["result"]["outcome"] == "cancelled"


async def test_stopping_answers_asks_that_still_run_as_busy() -> None:
    ask = BlockedAsk()
    async with serving(StubDoor(ask)) as served:
        asking = asyncio.create_task(served.client.post("/v1/ask", json=TEXT))
        await ask.started.wait()
        served.stop.set()
        response = await asking
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert response.json()["error"]["code"] == "busy.stopping"


async def test_stopping_does_not_wait_for_a_client_that_does_not_read() -> None:
    flooded = asyncio.Event()

    async def flood(request: AskRequest, emit: Emit) -> AskResult:
        for number in range(1_000):
            emit(MessageSent(seq=number, text="x" * 30_000))
        flooded.set()
        return finish(AskResult("a1", "answered"), emit)

    async with serving(StubDoor(flood), grace_s=0.05) as served:
        async with served.connected() as (reader, writer):
            writer.transport.pause_reading()
            writer.write(streaming_request(served.port))
            await flooded.wait()
            served.stop.set()
            await served.running
            writer.transport.resume_reading()
            assert not (await reader.read()).endswith(LAST_CHUNK)
