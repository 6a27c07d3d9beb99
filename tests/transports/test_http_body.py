import asyncio
import gzip
import json
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from session_runtime.errors import RequestError
from session_runtime.transports.http.body import parsed
from session_runtime.transports.http.door import HttpLimits
from session_runtime.transports.http.protocol import MAX_HEAD_BYTES
from session_runtime.wire import is_soon_read
from tests.transports.stub import LIMITS, TEXT, calling, head, read_answer, serving

BODY = json.dumps(TEXT).encode()
JSON = {"content-type": "application/json"}


async def in_chunks(size: int) -> AsyncIterator[bytes]:
    yield b'{"text": "'
    for _ in range(size // 1_000):
        yield b"x" * 1_000
    yield b'"}'


async def send_without_end(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"100000\r\n" + b"x" * 2**20 + b"\r\n")
        await writer.drain()


@pytest.mark.requirement("NET-2a")
@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "Application/JSON; charset=utf-8",
        'application/json; charset="UTF-8"',
    ],
)
async def test_json_bodies_are_taken(media: str) -> None:
    async with calling() as client:
        response = await client.post("/v1/ask", content=BODY, headers={"content-type": media})
    assert response.status_code == 200


@pytest.mark.requirement("NET-2a")
@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({}, "there is no content-type; send application/json"),
        ({"content-type": "text/plain"}, "the content-type is 'text/plain'; send application/json"),
        ({"content-type": "application/x-www-form-urlencoded"}, "send application/json"),
        ({"content-type": "application/json; charset=latin-1"}, "send application/json in UTF-8"),
        (
            {**JSON, "content-encoding": "gzip"},
            "content-encoding is 'gzip'; send the body as it is",
        ),
    ],
)
async def test_other_bodies_are_refused_with_what_to_send(
    headers: dict[str, str], reason: str
) -> None:
    body = gzip.compress(BODY) if "content-encoding" in headers else BODY
    async with calling() as client:
        response = await client.post("/v1/ask", content=body, headers=headers)
    assert response.status_code == 415
    assert reason in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "request.json"),
        (b"{", "request.json"),
        (b'{"text": NaN}', "request.json"),
        (b"[" * 9_000, "request.json"),
        (b'{"a":' * 1_500 + b"1" + b"}" * 1_500, "request.json"),
        (rb'{"text": "\ud800"}', "request.json"),
        (b"[]", "request.invalid"),
        (b'{"txt": 1}', "request.invalid"),
    ],
)
async def test_a_wrong_body_is_a_400(body: bytes, code: str) -> None:
    async with calling() as client:
        response = await client.post("/v1/ask", content=body, headers=JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)


async def test_a_wrong_body_leaves_the_connection_usable() -> None:
    async with serving() as served, served.connected() as (reader, writer):
        fields = ("content-type: application/json", "content-length: 1")
        writer.write(head(served.port, *fields) + b"{")
        assert (await read_answer(reader))[0] == 400
        writer.write(head(served.port, target="GET /healthz"))
        assert await read_answer(reader) == (200, {"status": "ok"})


async def test_a_large_body_is_read_like_a_small_one() -> None:
    text = "天" * 100_000
    async with calling(limits=HttpLimits(max_body_bytes=10**6)) as client:
        good = await client.post("/v1/ask", json={"text": text})
        bad = await client.post("/v1/ask", json={"txt": text})
    assert (good.status_code, good.json()["text"]) == (200, f"you said {text}")
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "request.invalid")


@pytest.mark.requirement("NET-5a")
@pytest.mark.parametrize(
    ("body", "aside"),
    [
        (b'{"text": "hello"}', False),
        (b'{"text": "%s"}' % (b"x" * 60_000), False),
        (b'{"text": "%s"}' % (b"x" * 70_000), True),
        (b"[%s]" % b",".join([b"{}"] * 21_000), True),
        (b"[%s]" % b",".join([b"1"] * 21_000), True),
        (b"[" * 2_000 + b"]" * 2_000, True),
    ],
)
async def test_a_body_that_takes_a_while_to_read_holds_up_nobody(body: bytes, aside: bool) -> None:
    threads: list[threading.Thread] = []
    with suppress(RequestError):  # one that is too deep
        await parsed(body, lambda data: threads.append(threading.current_thread()))
    assert is_soon_read(body) is not aside
    assert all((each is not threading.main_thread()) is aside for each in threads)


async def test_a_body_of_the_largest_size_is_taken() -> None:
    body = json.dumps({"text": "x"}).encode()
    async with calling(limits=HttpLimits(max_body_bytes=len(body))) as client:
        response = await client.post("/v1/ask", content=body, headers=JSON)
    assert response.status_code == 200


@pytest.mark.parametrize("size", [20_000, 5_000_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
async def test_a_larger_body_is_refused(size: int, chunked: bool) -> None:
    content = in_chunks(size) if chunked else b"x" * size
    async with serving() as served:
        response = await served.client.post("/v1/ask", content=content, headers=JSON)
        after = await served.client.get("/healthz")
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "request.too_large"
    assert f"more than {LIMITS.max_body_bytes} bytes" in response.json()["error"]["message"]
    assert after.status_code == 200


async def test_a_client_that_asks_first_need_not_send_a_large_body() -> None:
    async with serving() as served, served.connected() as (reader, writer):
        fields = ("content-type: application/json", "content-length: 20000", "expect: 100-continue")
        writer.write(head(served.port, *fields))
        status, answer = await read_answer(reader)
    assert (status, answer["error"]["code"]) == (413, "request.too_large")


async def test_a_body_without_an_end_is_cut_off() -> None:
    async with serving() as served, served.connected() as (_, writer):
        fields = ("content-type: application/json", "transfer-encoding: chunked")
        writer.write(head(served.port, *fields))
        with pytest.raises(ConnectionError):
            await send_without_end(writer)
        after = await served.client.get("/healthz")
    assert after.status_code == 200


async def test_a_body_that_stops_arriving_is_given_up() -> None:
    limits = HttpLimits(max_body_bytes=1_000, body_timeout_s=0.02)
    async with serving(limits=limits) as served, served.connected() as (reader, writer):
        fields = ("content-type: application/json", "content-length: 100")
        writer.write(head(served.port, *fields) + b'{"text":')
        status, answer = await read_answer(reader)
        rest = await reader.read()
    assert (status, answer["error"]["code"], rest) == (408, "request.timeout", b"")


async def test_a_client_that_leaves_while_sending_harms_nobody() -> None:
    async with serving() as served:
        async with served.connected() as (_, writer):
            fields = ("content-type: application/json", "content-length: 100")
            writer.write(head(served.port, *fields) + b'{"text":')
            await writer.drain()
        after = await served.client.get("/healthz")
    assert after.status_code == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /healthz HTTP/1.1\r\nx: " + b"x" * 100_000,
        b"GET /" + b"x" * 100_000,
        b"GET /healthz HTTP/1.1\r\n" + b"x: y\r\n" * 20_000,
    ],
    ids=["one header", "target", "many headers"],
)
async def test_a_head_without_an_end_is_refused_early(request_bytes: bytes) -> None:
    async with serving() as served, served.connected() as (reader, writer):
        writer.write(request_bytes)
        status, answer = await read_answer(reader)
    assert (status, answer["error"]["code"]) == (431, "request.head_too_large")


async def test_a_complete_head_that_is_too_large_is_refused() -> None:
    async with serving() as served:
        response = await served.client.get("/healthz", headers={"x-large": "x" * MAX_HEAD_BYTES})
        target = await served.client.get("/healthz?x=" + "x" * MAX_HEAD_BYTES)
    assert (response.status_code, target.status_code) == (431, 431)


async def test_many_requests_on_one_connection_are_counted_one_by_one() -> None:
    large = {"x-large": "x" * (MAX_HEAD_BYTES - 2_000)}
    async with serving() as served:
        for _ in range(5):
            response = await served.client.post("/v1/ask", json=TEXT, headers=large)
            assert response.status_code == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"hello\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
    ids=["no http", "bytes in the target", "tls"],
)
async def test_what_is_not_http_is_answered_in_json(request_bytes: bytes) -> None:
    async with serving() as served, served.connected() as (reader, writer):
        writer.write(request_bytes)
        status, answer = await read_answer(reader)
    assert (status, answer["error"]["code"]) == (400, "request.http")


async def test_pipelined_requests_are_answered_in_order() -> None:
    fields = ("content-type: application/json", f"content-length: {len(BODY)}")
    async with serving() as served, served.connected() as (reader, writer):
        ask = head(served.port, *fields) + BODY
        writer.write(ask + head(served.port, target="GET /healthz") + ask)
        answers = [await read_answer(reader) for _ in range(3)]
    assert [status for status, _ in answers] == [200, 200, 200]
    assert answers[1][1] == {"status": "ok"}


async def test_asks_run_side_by_side() -> None:
    async with serving() as served:
        asks = [served.client.post("/v1/ask", json={"text": str(n)}) for n in range(20)]
        responses = await asyncio.gather(*asks)
    assert [r.json()["text"] for r in responses] == [f"you said {n}" for n in range(20)]


async def test_answers_do_not_wait_for_acknowledgements() -> None:
    async with serving() as served:
        await served.client.get("/healthz")
        assert served.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
