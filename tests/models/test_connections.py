"""Connections to a service: used again, one per request in flight, and not kept for ever."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from session_runtime.models.connections import Connections
from session_runtime.testing.replies import Pace, Reply, reply_bytes, reply_text
from session_runtime.testing.upstream import Upstream

QUESTION = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@asynccontextmanager
async def client_of(
    *, max_idle: int = 100, idle_s: float = 5.0
) -> AsyncIterator[httpx2.AsyncClient]:
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    transport = Connections(plain, max_idle=max_idle, idle_s=idle_s)
    async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
        yield client


async def ask(client: httpx2.AsyncClient, upstream: Upstream) -> int:
    answer = await client.post(f"{upstream.base_url}/chat/completions", json=QUESTION)
    return answer.status_code


async def ask_at_once(client: httpx2.AsyncClient, upstream: Upstream, gate: asyncio.Event) -> None:
    """Three requests that are in flight together."""
    gate.clear()
    asking = [asyncio.create_task(ask(client, upstream)) for _ in range(3)]
    await upstream.received(3)
    gate.set()
    assert await asyncio.gather(*asking) == [200, 200, 200]


async def fall_to(upstream: Upstream, count: int) -> None:
    """Wait until the service has seen that only ``count`` connections are left."""
    async with asyncio.timeout(5):
        while upstream.open_connections != count:  # noqa: ASYNC110 - the other end has no event
            await asyncio.sleep(0)


def gated(count: int) -> tuple[asyncio.Event, list[Reply]]:
    gate = asyncio.Event()
    return gate, [reply_text("hi", pace=Pace(gate=gate)) for _ in range(count)]


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with Upstream([reply_text("hi")] * 3) as upstream, client_of() as client:
        assert [await ask(client, upstream) for _ in range(3)] == [200, 200, 200]
        assert upstream.open_connections == 1


async def test_each_request_in_flight_has_a_connection_that_is_used_again() -> None:
    gate, replies = gated(4)
    async with Upstream(replies) as upstream, client_of() as client:
        await ask_at_once(client, upstream, gate)
        assert upstream.open_connections == 3
        await ask(client, upstream)
        assert upstream.open_connections == 3


async def test_more_idle_connections_than_wanted_are_closed() -> None:
    gate, replies = gated(3)
    async with Upstream(replies) as upstream, client_of(max_idle=1) as client:
        await ask_at_once(client, upstream, gate)
        await fall_to(upstream, 1)


async def test_connections_that_nobody_needs_for_long_are_closed_although_no_request_comes() -> (
    None
):
    gate, replies = gated(3)
    async with Upstream(replies) as upstream, client_of(idle_s=0.01) as client:
        await ask_at_once(client, upstream, gate)
        await fall_to(upstream, 0)


async def test_a_connection_that_the_service_closed_is_not_used_again() -> None:
    cut = reply_bytes(b"a", b"b", pace=Pace(cut_after=2))
    async with Upstream([cut, reply_text("hi")]) as upstream, client_of() as client:
        with pytest.raises(httpx2.TransportError):
            await ask(client, upstream)
        assert await ask(client, upstream) == 200


async def test_a_request_that_is_given_up_gives_its_connection_up() -> None:
    never = reply_text("hi", pace=Pace(gate=asyncio.Event()))
    async with Upstream([never, reply_text("hi")]) as upstream, client_of() as client:
        asking = asyncio.create_task(ask(client, upstream))
        await upstream.received(1)
        asking.cancel()
        await asyncio.wait([asking])
        await upstream.left()
        assert await ask(client, upstream) == 200


async def test_closing_closes_every_connection() -> None:
    gate, replies = gated(3)
    async with Upstream(replies) as upstream:
        async with client_of() as client:
            await ask_at_once(client, upstream, gate)
        await upstream.left()
        assert upstream.open_connections == 0


async def test_a_request_that_is_given_up_in_the_handshake_closes_its_connection_at_once() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        begun.set()
        await reader.read()
        ended.set()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    gc.disable()  # which would close it some time
    try:
        async with client_of() as client, server, asyncio.timeout(5):
            asking = asyncio.create_task(client.get(f"https://127.0.0.1:{port}/"))
            await begun.wait()
            asking.cancel()
            await asyncio.wait([asking])
            await ended.wait()
    finally:
        gc.enable()
