"""What a connection may cost that sends little, or what stands around the content of a request."""

import asyncio
import contextlib
import json
import socket
from contextlib import AsyncExitStack

import pytest

from session_runtime.transports.http.protocol import MAX_HEADERS, MOST_LINGERING, ConnectionBounds
from session_runtime.types import AskResult, MessageSent
from tests.transports.completing import playing
from tests.transports.stub import (
    EVENTS,
    TEXT,
    BlockedAsk,
    Served,
    StubDoor,
    head,
    read_answer,
    serving,
)

BODY = json.dumps(TEXT).encode()
HASTY = ConnectionBounds(head_s=0.05)
CHUNKED = ("content-type: application/json", "transfer-encoding: chunked")
pytestmark = pytest.mark.requirement("NET-5a")


async def answered_nothing(served: Served, sent: bytes) -> bool:
    async with served.connected() as (reader, writer):
        writer.write(sent)
        return await reader.read() == b""


async def test_a_connection_that_sends_nothing_is_closed() -> None:
    async with serving(bounds=HASTY) as served:
        assert await answered_nothing(served, b"")


@pytest.mark.parametrize("part", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nhost: a\r\n"])
async def test_a_head_that_stops_arriving_is_answered_and_given_up(part: bytes) -> None:
    async with serving(bounds=HASTY) as served, served.connected() as (reader, writer):
        writer.write(part)
        status, answer = await read_answer(reader)
        rest = await reader.read()
    assert (status, rest) == (408, b"")
    assert answer["error"] == {
        "code": "request.timeout",
        "message": "the request did not arrive within 0.05 seconds",
        "retryable": False,
    }


async def test_the_head_of_a_second_request_is_waited_for_no_longer() -> None:
    async with serving(bounds=HASTY) as served, served.connected() as (reader, writer):
        writer.write(head(served.port, target="GET /healthz") + b"GET /hea")
        assert (await read_answer(reader))[0] == 200
        assert (await read_answer(reader))[0] == 408
        assert await reader.read() == b""


async def test_a_connection_that_is_kept_for_another_request_is_not_kept_for_long() -> None:
    bounds = ConnectionBounds(keep_s=0.01)
    async with serving(bounds=bounds) as served, served.connected() as (reader, writer):
        writer.write(head(served.port, target="GET /healthz"))
        assert (await read_answer(reader))[0] == 200
        assert await reader.read() == b""


async def test_a_body_that_nobody_reads_is_not_waited_for() -> None:
    async with serving(bounds=HASTY) as served, served.connected() as (reader, writer):
        writer.write(head(served.port, *CHUNKED, target="GET /healthz") + b"5\r\nhel")
        assert (await read_answer(reader))[0] == 200
        assert await reader.read() == b""


async def test_a_caller_is_waited_with_as_long_as_its_ask_runs() -> None:
    ask = BlockedAsk()
    async with serving(StubDoor(ask), bounds=HASTY) as served:
        async with served.connected() as (_, writer):
            fields = ("content-type: application/json", f"content-length: {len(BODY)}")
            writer.write(head(served.port, *fields) + BODY)
            await ask.started.wait()
            assert await answered_nothing(served, b"")  # as long as a connection may idle
            assert not ask.cancelled.is_set()


@pytest.mark.parametrize("count", [MAX_HEADERS + 1, 4_000], ids=["one too many", "thousands"])
async def test_a_head_of_more_headers_than_anybody_needs_is_refused(count: int) -> None:
    async with serving() as served, served.connected() as (reader, writer):
        lines = [f"x{number}: y" for number in range(count - 2)]
        writer.write(head(served.port, "connection: close", *lines, target="GET /healthz"))
        status, answer = await read_answer(reader)
        assert await reader.read() == b""
    assert status == 431
    assert answer["error"] == {
        "code": "request.head_too_large",
        "message": f"the request has {count} headers, at most {MAX_HEADERS} are read",
        "retryable": False,
    }


async def test_a_head_of_as_many_headers_as_there_may_be_is_read() -> None:
    async with serving() as served, served.connected() as (reader, writer):
        lines = [f"x{number}: y" for number in range(MAX_HEADERS - 1)]
        writer.write(head(served.port, *lines, target="GET /healthz"))
        assert (await read_answer(reader))[0] == 200


@pytest.mark.parametrize("trickles", [False, True], ids=["not at all", "hardly"])
async def test_who_reads_no_events_is_not_held_on_to(trickles: bool) -> None:
    ask = BlockedAsk(*(MessageSent(ask_id="a", seq=n, text="x" * 100_000) for n in range(200)))
    async with serving(StubDoor(ask), bounds=ConnectionBounds(write_s=0.05)) as served:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", served.port))
        fields = ("content-type: application/json", f"content-length: {len(BODY)}")
        request = head(served.port, *fields, "accept: text/event-stream") + BODY
        await loop.sock_sendall(sock, request)
        while trickles and not ask.cancelled.is_set():
            with contextlib.suppress(TimeoutError, ConnectionError):
                await asyncio.wait_for(loop.sock_recv(sock, 1), 0.01)
        await ask.cancelled.wait()
        sock.close()


async def test_who_reads_events_slowly_gets_all_of_them() -> None:
    events = [MessageSent(ask_id="a", seq=n, text="x" * 100_000) for n in range(1, 100)]
    ask = playing(AskResult("a", "answered", "done"), *events)
    async with serving(StubDoor(ask), bounds=ConnectionBounds(write_s=0.05)) as served:
        async with served.client.stream("POST", "/v1/ask", json=TEXT, headers=EVENTS) as answer:
            pieces = []
            async for piece in answer.aiter_bytes(65_536):
                pieces.append(piece)
                await asyncio.sleep(0)
    assert b"".join(pieces).count(b"event: message\n") == 99


async def test_more_connections_than_there_may_be_are_told_to_come_back() -> None:
    bounds = ConnectionBounds(most=lambda: 2, for_probes=0)
    async with serving(bounds=bounds) as served, served.connected() as (reader, writer):
        async with served.connected() as (other, asking):
            asking.write(head(served.port, target="GET /healthz"))
            assert (await read_answer(other))[0] == 200
            async with served.connected() as (third, _):
                lines = (await third.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                error = json.loads(await third.read())["error"]
        writer.write(head(served.port, target="GET /healthz"))
        assert (await read_answer(reader))[0] == 200
    assert (lines[0], "retry-after: 1" in lines) == ("HTTP/1.1 503 Service Unavailable", True)
    assert error == {
        "code": "busy.connections",
        "message": "2 connections are open, no more are taken: try again",
        "retryable": True,
        "retry_after_s": 1.0,
    }


async def test_who_is_turned_away_and_stays_takes_no_place() -> None:
    bounds = ConnectionBounds(most=lambda: 1, for_probes=0)
    async with serving(bounds=bounds) as served:
        async with served.connected() as (reader, leaving), served.connected() as (away, writer):
            writer.write(head(served.port, target="GET /healthz"))
            assert (await read_answer(away))[0] == 503
            leaving.write(head(served.port, "connection: close", target="GET /healthz"))
            await reader.read()
            async with served.connected() as (other, asking):
                asking.write(head(served.port, target="GET /healthz"))
                assert (await read_answer(other))[0] == 200


async def test_of_those_who_stay_only_so_many_are_let_stay() -> None:
    bounds = ConnectionBounds(most=lambda: 0, for_probes=0)
    async with serving(bounds=bounds) as served, AsyncExitStack() as held:
        for _ in range(MOST_LINGERING):
            reader, writer = await held.enter_async_context(served.connected())
            writer.write(b"x")
            assert (await read_answer(reader))[0] == 503
        _, writer = await held.enter_async_context(served.connected())
        with pytest.raises(ConnectionError):
            await send(writer, b"x" * 1_000)


PROBES = ("GET /healthz", "GET /readyz?x=1", "GET /metrics")


async def test_where_all_connections_are_taken_probes_are_answered_and_nothing_else() -> None:
    bounds = ConnectionBounds(most=lambda: 1, for_probes=1)
    async with serving(bounds=bounds) as served, served.connected():
        async with served.connected() as (reader, writer), served.connected() as (third, _):
            assert b"503" in await third.readline()
            writer.write(b"".join(head(served.port, target=each) for each in PROBES[:2]))
            assert [(await read_answer(reader))[0] for _ in PROBES[:2]] == [200, 200]
            fields = ("content-type: application/json", f"content-length: {len(BODY)}")
            writer.write(head(served.port, *fields) + BODY)
            status, answer = await read_answer(reader)
            rest = await reader.read()
    assert (status, rest) == (503, b"")
    assert answer["error"] == {
        "code": "busy.connections",
        "message": "1 connections are open, no more are taken: try again",
        "retryable": True,
        "retry_after_s": 1.0,
    }


async def test_metrics_can_be_read_where_all_connections_are_taken() -> None:
    bounds = ConnectionBounds(most=lambda: 0, for_probes=1)
    async with serving(bounds=bounds) as served:
        assert (await served.client.get("/metrics")).text == "up 1\n"


async def test_a_connection_for_probes_is_one_like_any_other_once_there_is_room() -> None:
    bounds = ConnectionBounds(most=lambda: 1, for_probes=1)
    async with serving(bounds=bounds) as served:
        async with served.connected() as (first, leaving):
            async with served.connected() as (reader, writer):
                leaving.write(head(served.port, "connection: close", target="GET /healthz"))
                await first.read()
                fields = ("content-type: application/json", f"content-length: {len(BODY)}")
                writer.write(head(served.port, *fields) + BODY)
                assert (await read_answer(reader))[0] == 200


async def trickle(writer: asyncio.StreamWriter, for_s: float) -> None:
    """Send a body that does not end, a little at a time."""
    end = asyncio.get_running_loop().time() + for_s
    while asyncio.get_running_loop().time() < end:
        writer.write(b"5\r\nhello\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


async def test_a_body_that_was_answered_before_its_end_may_go_on_to_arrive() -> None:
    async with serving(bounds=HASTY) as served, served.connected() as (reader, writer):
        writer.write(head(served.port, *CHUNKED, target="GET /healthz"))
        await trickle(writer, 4 * HASTY.head_s)
        writer.write(b"0\r\n\r\n" + head(served.port, target="GET /healthz"))
        assert [(await read_answer(reader))[0] for _ in range(2)] == [200, 200]


async def test_a_body_that_was_answered_has_no_longer_to_arrive_than_any_other() -> None:
    bounds = ConnectionBounds(head_s=0.05, body_s=0.1)
    async with serving(bounds=bounds) as served, served.connected() as (_, writer):
        writer.write(head(served.port, *CHUNKED, target="GET /healthz"))
        with pytest.raises(ConnectionError):
            await trickle(writer, 60.0)


async def send(writer: asyncio.StreamWriter, more: bytes) -> None:
    """Send up to 60 MB, far more than the sockets in between take."""
    for _ in range(60 * 2**20 // len(more)):
        writer.write(more)
        await writer.drain()


@pytest.mark.parametrize(
    ("last", "more"),
    [
        (b"0\r\nx: y", b"x: " + b"y" * 1_000 + b"\r\n"),
        (b"0\r\nx: y", b"y" * 1_000),
        (b"5;y", b"y" * 1_000),
    ],
    ids=["trailers", "one trailer", "beside the size of a chunk"],
)
@pytest.mark.parametrize("target", ["POST /v1/ask", "GET /healthz"])
async def test_nothing_without_an_end_is_taken_around_chunks(
    last: bytes, more: bytes, target: str
) -> None:
    async with serving() as served, served.connected() as (_, writer):
        writer.write(head(served.port, *CHUNKED, target=target) + b"5\r\nhello\r\n" + last)
        with pytest.raises(ConnectionError):
            await send(writer, more * 100)


async def test_trailers_are_no_headers() -> None:
    async with serving() as served, served.connected() as (reader, writer):
        body = b"%x\r\n%b\r\n0\r\nexpect: nothing\r\nhost: evil.example\r\n\r\n" % (len(BODY), BODY)
        writer.write(head(served.port, *CHUNKED) + body)
        writer.write(head(served.port, target="GET /healthz"))
        answers = [await read_answer(reader) for _ in range(2)]
    assert [status for status, _ in answers] == [200, 200]


async def test_a_large_body_in_small_chunks_is_no_head() -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % char for char in BODY)
    padding = b"1\r\n \r\n" * 9_000
    async with serving() as served, served.connected() as (reader, writer):
        writer.write(head(served.port, *CHUNKED) + padding + chunks + b"0\r\n\r\n")
        status, _ = await read_answer(reader)
    assert status == 200


async def test_no_refusal_ends_up_in_an_answer_that_is_under_way() -> None:
    ask = BlockedAsk()
    async with serving(StubDoor(ask)) as served, served.connected() as (reader, writer):
        fields = ("content-type: application/json", f"content-length: {len(BODY)}")
        writer.write(head(served.port, *fields) + BODY)
        await ask.started.wait()
        writer.write(b"no http at all\r\n\r\n")
        assert await reader.read() == b""
