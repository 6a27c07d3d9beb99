"""What a service may leave on a connection that is used again: nothing that reaches another request."""

import asyncio
import contextlib
import itertools
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
import trustme

from session_runtime.models.connections import Connections
from session_runtime.models.sockets import MAX_HEAD_BYTES
from tests.models.building import opened, profile, request
from tests.models.clock import Clock, hurried

INFORM = b"HTTP/1.1 100 Continue\r\n\r\n"
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def ok(text: str, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"content-length: {len(text)}", *headers]
    return "\r\n".join([*lines, "", text]).encode()


class Service:
    """Answers each request with what ``answer`` gives for the numbers of connection and request.

    None in place of bytes closes the connection; ``end`` closes it after each answer.
    """

    def __init__(self, answer: Callable[[int, int], bytes | None], *, end: bool = False) -> None:
        self._answer = answer
        self._end = end
        self.url = ""
        self.asked: list[tuple[int, int]] = []
        self._connections = 0
        self.open = 0

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = self._connections
        self._connections += 1
        self.open += 1
        number = 0
        try:
            while True:
                if not await _read_request(reader):
                    writer.transport.abort()
                    break
                self.asked.append((connection, number))
                answer = self._answer(connection, number)
                number += 1
                if answer is None:
                    break
                writer.write(answer)
                if self._end:
                    break
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self.open -= 1

    async def left(self) -> None:
        """Wait until it has seen that no connection is open."""
        async with asyncio.timeout(5):
            while self.open:  # noqa: ASYNC110 - the other end has no event
                await asyncio.sleep(0)
        await _turns()


async def _read_request(reader: asyncio.StreamReader) -> bool:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    return True


@asynccontextmanager
async def running(
    service: Service, context: ssl.SSLContext | None = None
) -> AsyncIterator[Service]:
    server = await asyncio.start_server(service.speak, "127.0.0.1", 0, ssl=context)
    scheme = "https" if context else "http"
    service.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server:
        yield service
        await service.left()


@asynccontextmanager
async def client(
    verify: ssl.SSLContext = PLAIN, idle_s: float = 5.0
) -> AsyncIterator[httpx2.AsyncClient]:
    transport = Connections(verify, idle_s=idle_s)
    async with httpx2.AsyncClient(transport=transport, trust_env=False, timeout=3.0) as asking:
        yield asking


async def texts(asking: httpx2.AsyncClient, service: Service, count: int = 2) -> list[str]:
    return [(await asking.post(service.url, content=b"{}")).text for _ in range(count)]


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """One for a service, and one for those who trust it."""
    ca, serving = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(serving)
    trusting = ssl.create_default_context()
    ca.configure_trust(trusting)
    return serving, trusting


LEFT: dict[str, bytes] = {
    "a second response": ok("stale"),
    "half a second response": ok("stale")[:20],
    "a second response without its body": ok("stale")[:-5],
    "bytes without meaning": b"junk",
    "more than is read at once": ok("s" * 100_000),
    "an end of line": b"\r\n",
}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("secure", [False, True])
async def test_a_connection_with_more_than_its_response_is_not_used_again(
    left: str, secure: bool
) -> None:
    serving, trusting = contexts()
    service = Service(lambda connection, _: ok(f"{connection}") + LEFT[left])
    async with (
        running(service, serving if secure else None),
        client(trusting) as asking,
    ):
        assert await texts(asking, service) == ["0", "1"]
    assert service.asked == [(0, 0), (1, 0)]


async def test_a_connection_that_closes_as_it_is_used_again_costs_no_request() -> None:
    service = Service(lambda connection, number: None if number else ok(f"{connection}"))
    async with running(service), client() as asking:
        assert await texts(asking, service) == ["0", "1"]
    assert service.asked == [(0, 0), (0, 1), (1, 0)]


async def test_a_new_connection_that_closes_is_not_tried_again() -> None:
    service = Service(lambda *_: None)
    async with running(service), client() as asking:
        with pytest.raises(httpx2.RemoteProtocolError):
            await texts(asking, service, 1)
    assert service.asked == [(0, 0)]


async def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    service = Service(lambda _, number: b"HTTP/1.1 2" + INFORM if number else ok("a"))
    async with running(service), client() as asking:
        with pytest.raises(httpx2.RemoteProtocolError):
            await texts(asking, service)
    assert service.asked == [(0, 0), (0, 1)]


async def test_an_end_that_came_with_the_answer_ends_a_tls_connection() -> None:
    serving, trusting = contexts()
    service = Service(lambda connection, _: ok(f"{connection}"), end=True)
    async with running(service, serving), client(trusting) as asking:
        assert await texts(asking, service, 3) == ["0", "1", "2"]


async def test_an_idle_connection_is_closed_when_its_own_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    service = Service(lambda *_: ok("a"))
    async with running(service), client(idle_s=1_000) as asking:
        await texts(asking, service, 1)
        for later_s in (800, 300, 701):
            clock.advance(later_s)
            await _turns()
            if later_s == 800:
                await texts(asking, service, 1)
        await service.left()


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_heads_that_only_inform_do_not_prolong_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def inform(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        service.open += 1
        await _read_request(reader)
        while not reader.at_eof():
            writer.write(INFORM)
            await asyncio.sleep(0.5)
        writer.transport.abort()
        service.open -= 1

    service = Service(lambda *_: None)
    monkeypatch.setattr(service, "speak", inform)
    async with hurried(monkeypatch), running(service), client() as asking:
        with pytest.raises(httpx2.ReadTimeout):
            await texts(asking, service, 1)


async def test_heads_that_only_inform_are_bounded_in_size() -> None:
    service = Service(lambda *_: INFORM * (MAX_HEAD_BYTES // len(INFORM) + 1) + ok("late"))
    async with running(service), client() as asking:
        with pytest.raises(httpx2.RemoteProtocolError, match=f"more than {MAX_HEAD_BYTES} bytes"):
            await texts(asking, service, 1)


async def test_others_have_their_turn_while_much_arrives_in_small_pieces() -> None:
    body = b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n"
    service = Service(lambda *_: b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body)
    turns = pieces = most = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with running(service), client() as asking:
        ticking = asyncio.create_task(tick())
        async with asking.stream("POST", service.url, content=b"{}") as response:
            began = turns
            async for _ in response.aiter_raw():
                pieces = pieces + 1 if turns == began else 1
                began, most = turns, max(most, pieces)
        ticking.cancel()
    assert 0 < most < 3_000


async def test_others_have_their_turn_while_an_answer_takes_long_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 1,000 events that arrive at once, each takes a millisecond of the clock."""
    clock = Clock(monkeypatch)
    event = b'data: {"choices": [{"delta": {"content": "H"}}]}\n\n'
    events = [event] * 1_000 + [b"data: [DONE]\n\n", b""]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in events)
    service = Service(lambda *_: b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunks)
    turns: list[float] = []

    async def tick() -> None:
        while True:
            turns.append(clock.now())
            await asyncio.sleep(0)

    async with running(service):
        model = opened(profile(service.url, wire="chat"))
        ticking = asyncio.create_task(tick())
        await model.reply(request(), lambda _: clock.advance(0.001))
        turns.append(clock.now())
        ticking.cancel()
        await model.aclose()
    longest = max(later - earlier for earlier, later in itertools.pairwise(turns))
    assert longest < 0.2


async def test_cookies_are_dropped() -> None:
    service = Service(lambda *_: ok("a", "Set-Cookie: a=1", "set-cookie2: b=2", "x-kept: yes"))
    async with running(service), client() as asking:
        answer = await asking.post(service.url, content=b"{}")
        assert dict(answer.headers) == {"content-length": "1", "x-kept": "yes"}
        assert not asking.cookies


async def test_chunks_that_arrived_together_are_one_piece_and_what_breaks_behind_them_is_told() -> (
    None
):
    chunks = b"".join(b"1\r\n%d\r\n" % number for number in range(9)) + b"no length\r\n"
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    async with running(Service(lambda *_: head + chunks)) as service, client() as asking:
        async with asking.stream("POST", service.url, content=b"{}") as response:
            pieces = response.aiter_raw()
            assert await anext(pieces) == b"012345678"
            with pytest.raises(httpx2.RemoteProtocolError, match="illegal chunk header"):
                await anext(pieces)
