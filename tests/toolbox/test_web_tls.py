"""Over TLS, the certificate has to be that of the name, whatever address was connected to."""

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator

import pytest
import trustme

from tests.toolbox.sites import LOOPBACK, client, names, page, refusal, routes, says, site, to

pytestmark = pytest.mark.requirement("SEC-2")

AUTHORITY = trustme.CA()


def of_server(*hosts: str) -> ssl.SSLContext:
    """A server's side, with a certificate for ``hosts``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(*hosts).configure_cert(context)
    return context


def of_client() -> ssl.SSLContext:
    """A client's side that trusts the authority of these tests."""
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


async def test_the_name_is_announced_and_proved_while_the_checked_address_is_connected_to() -> None:
    announced: list[str | None] = []
    context = of_server("site.test")
    context.sni_callback = lambda connection, name, own: announced.append(name)
    async with site(says("hello"), context=context) as served:
        fetched = await client(served, context=of_client()).fetch(
            served.url("/", "site.test", "https")
        )
    assert (fetched.body, announced) == (b"hello", ["site.test"])
    assert f"Host: site.test:{served.port}\r\n" in served.heads[0]


@pytest.mark.parametrize("host", ["other.test", LOOPBACK])
async def test_a_certificate_for_another_name_is_refused(host: str) -> None:
    async with site(says("secret"), context=of_server("site.test")) as served:
        web = client(served, context=of_client(), look_up=names(other_test=LOOPBACK))
        url = served.url("/", host, "https")
        assert "has no certificate that proves it" in await refusal(web, url, "web.unreachable")
    assert served.heads == []


async def test_a_certificate_from_nobody_known_is_refused() -> None:
    async with site(says("secret"), context=of_server("site.test")) as served:
        url = served.url("/", "site.test", "https")
        assert "certificate" in await refusal(client(served), url, "web.unreachable")
    assert served.heads == []


async def test_a_certificate_for_an_address_is_enough_to_read_from_that_address() -> None:
    async with site(says("hello"), context=of_server(LOOPBACK)) as served:
        web = client(served, context=of_client())
        assert (await web.fetch(served.url("/", LOOPBACK, "https"))).body == b"hello"


async def test_a_redirect_from_https_to_http_is_told_and_not_followed() -> None:
    async with site(says("plain")) as plain:
        answers = routes({"/": to(plain.url("/page", "site.test"))})
        async with site(answers, context=of_server("site.test")) as served:
            web = client(served, plain, context=of_client())
            told = await refusal(web, served.url("/", "site.test", "https"), "web.refused")
    assert f"read {plain.url('/page', 'site.test')} itself" in told
    assert plain.connections == 0


async def test_a_redirect_from_http_to_https_is_followed() -> None:
    async def answer(head: str) -> AsyncIterator[bytes]:
        yield page("safe")

    async with site(answer, context=of_server("site.test")) as served:
        async with site(routes({"/": to(served.url("/", "site.test", "https"))})) as plain:
            web = client(served, plain, context=of_client())
            fetched = await web.fetch(plain.url("/", "site.test"))
    assert fetched.body == b"safe"


async def test_a_read_that_is_cancelled_in_the_handshake_closes_its_connection_at_once() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        begun.set()
        await reader.read()
        ended.set()
        writer.close()

    server = await asyncio.start_server(silent, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    web = client(context=of_client(), ports=(port,))
    reading = asyncio.create_task(web.fetch(f"https://{LOOPBACK}:{port}/"))
    gc.disable()  # which would close it some time
    try:
        async with server, asyncio.timeout(5):
            await begun.wait()
            reading.cancel()
            await asyncio.wait([reading])
            await ended.wait()
    finally:
        gc.enable()
