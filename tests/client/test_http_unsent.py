"""What the HTTP client tells of a request that never left, and of one that what is between lost (NET-1)."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from session_runtime.client.http import HttpClient
from session_runtime.client.pauses import Pauses
from session_runtime.errors import TransientError


@contextmanager
def full() -> Iterator[int]:
    """A port that is listened on, with no room for another connection."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = int(listener.getsockname()[1])
        for taken in (first, second):
            taken.setblocking(False)
            taken.connect_ex(("127.0.0.1", port))
        yield port


@pytest.mark.requirement("NET-1g")
async def test_an_ask_that_never_left_is_not_sent_once_its_time_is_over() -> None:
    left: list[str] = []

    class Line(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            left.append(f"{request.method} {request.url.path}")
            return await super().handle_async_request(request)

    with full() as port:
        async with HttpClient(f"http://127.0.0.1:{port}", transport=Line()) as client:
            with pytest.raises(TransientError, match="the request did not arrive") as late:
                await client.ask("go", timeout_s=0.2)
    assert (late.value.code, late.value.may_have_run) == ("daemon.no_answer", False)
    assert left == ["POST /v1/ask"]


@pytest.mark.parametrize(("status", "may_have_run"), [(503, False), (502, True), (504, True)])
async def test_what_stands_before_the_daemon_may_have_lost_sight_of_a_request_it_passed_on(
    status: int, may_have_run: bool
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.close()  # nobody is there any more
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} x\r\nconnection: close\r\n\r\n<html>".encode())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    pauses = Pauses(lambda seconds: asyncio.sleep(0), lambda: 1.0)
    async with HttpClient(url, timeout_s=8.0, pauses=pauses) as client:
        with pytest.raises(TransientError) as late:
            await client.start("go")
    assert late.value.may_have_run == may_have_run
