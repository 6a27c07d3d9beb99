"""Pages are read from where they may be read, and from nowhere else, within every bound."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Sequence

import pytest

from session_runtime.errors import ToolError
from session_runtime.services import Fetched
from tests.toolbox.sites import (
    LOOPBACK,
    client,
    endless,
    names,
    page,
    refusal,
    routes,
    says,
    site,
    to,
)

pytestmark = pytest.mark.requirement("SEC-2")


async def test_a_page_is_read_with_its_type_and_bytes() -> None:
    async with site(says("héllo".encode("latin-1"), "Text/Plain; Charset=ISO-8859-1")) as served:
        url = served.url("/a%20b?q=ä#part", "site.test")
        assert await client(served).fetch(url) == Fetched(
            url=served.url("/a%20b?q=%C3%A4", "site.test"),
            status=200,
            media_type="text/plain",
            charset="iso-8859-1",
            body="héllo".encode("latin-1"),
            truncated=False,
        )


async def test_a_request_says_the_name_and_nothing_about_who_asks() -> None:
    async with site(says("hello")) as served:
        await client(served).fetch(served.url("/page", "SITE.test."))
    (head,) = served.heads
    first, *lines = head.strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first == "GET /page HTTP/1.1"
    assert headers.pop("User-Agent").startswith("session-runtime/")
    assert headers.pop("Accept").startswith("text/html,")
    assert headers == {
        "Host": f"site.test:{served.port}",
        "Accept-Encoding": "gzip",
        "Connection": "close",
    }


@pytest.mark.parametrize(
    "host",
    [
        LOOPBACK,
        "localhost",
        "LOCALHOST.",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "１２７.0.0.1",
        "127。0。0。1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[fe80::1%25lo]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "loopback.test",
        "mapped.test",
        "both.test",
        "metadata.test",
    ],
)
async def test_what_is_not_public_is_refused_without_a_connection(host: str) -> None:
    look_up = names(
        localhost=f"::1 {LOOPBACK}",
        loopback_test=LOOPBACK,
        mapped_test=f"::ffff:{LOOPBACK}",
        both_test=f"93.184.216.34 {LOOPBACK}",
        metadata_test="169.254.169.254",
    )
    async with site(says("secret")) as served:
        web = client(served, allow_networks=(), look_up=look_up)
        with pytest.raises(ToolError, match="no address") as caught:
            await web.fetch(served.url(host=host))
    assert caught.value.code in ("web.refused", "web.invalid_url")
    assert served.connections == 0


async def test_a_refusal_tells_nothing_of_what_there_is_inside() -> None:
    web = client(look_up=names(wiki_corp="10.0.0.7", meta_corp="169.254.169.254"), ports=(80,))
    told = {
        (await refusal(web, f"http://{name}/", "web.refused")).replace(name, "NAME")
        for name in ("wiki.corp", "meta.corp", "no-such-name.corp", "10.0.0.8", "[fd00::1]")
    }
    assert len({text.replace("[fd00::1]", "NAME").replace("fd00::1", "NAME") for text in told}) == 1


async def test_a_redirect_to_an_address_inside_is_refused_without_a_connection() -> None:
    async with site(says("secret"), host="127.0.0.2") as inside:
        answers = {"/ip": to(inside.url(host="127.0.0.2")), "/name": to(inside.url(host="in.test"))}
        async with site(routes(answers)) as served:
            web = client(served, inside, look_up=names(in_test="127.0.0.2"))
            for path in answers:
                await refusal(web, served.url(path), "web.refused")
    assert (served.paths, inside.connections) == (["/ip", "/name"], 0)


async def test_a_name_that_changes_its_address_after_the_check_gains_nothing() -> None:
    asked = []

    async def rebinding(name: str) -> Sequence[str]:
        asked.append(name)
        return [LOOPBACK if len(asked) == 1 else "127.0.0.2"]

    async with site(says("public")) as served:
        web = client(served, look_up=rebinding)
        first = await web.fetch(served.url(host="site.test"))
        assert (first.body, asked) == (b"public", ["site.test"])
        await refusal(web, served.url(host="site.test"), "web.refused")
    assert served.connections == 1


async def test_redirects_are_followed_to_the_end() -> None:
    async def answer(head: str) -> AsyncIterator[bytes]:
        match head.split()[1]:
            case "/a/1":
                yield to("2?x=1#there", "301 Moved Permanently")
            case "/a/2?x=1":
                yield to("//site.test:" + str(served.port) + "/3", "307 Temporary Redirect")
            case _:
                yield page("here")

    async with site(answer) as served:
        fetched = await client(served).fetch(served.url("/a/1"))
    assert (fetched.url, fetched.body) == (served.url("/3", "site.test"), b"here")


@pytest.mark.parametrize(
    ("location", "code", "says_why"),
    [
        ("/", "web.bad_answer", "redirects more than 5 times"),
        ("ftp://site.test/", "web.invalid_url", "must begin with https:// or http://"),
        ("file:///etc/passwd", "web.invalid_url", "must begin with"),
        ("http://u:p@site.test/", "web.invalid_url", "a name or password before an @"),
        ("http://0x7f.1/", "web.invalid_url", "its host is a number"),
        ("http://site.test:22/", "web.refused", "Port 22 may not be read from"),
    ],
)
async def test_a_redirect_that_leads_nowhere_good_is_not_followed(
    location: str, code: str, says_why: str
) -> None:
    async with site(routes({"/": to(location)})) as served:
        assert says_why in await refusal(client(served), served.url(), code)


async def test_a_redirect_without_an_address_is_an_answer_like_any_other() -> None:
    async with site(routes({"/": page("moved", status="302 Found")})) as served:
        fetched = await client(served).fetch(served.url())
    assert (fetched.status, fetched.body) == (302, b"moved")


async def test_hosts_are_allowed_and_denied_by_patterns_and_deny_wins() -> None:
    hosts = names(**dict.fromkeys(("a_example_org", "b_example_org", "example_com"), LOOPBACK))
    async with site(says("hello")) as served:
        web = client(
            served, look_up=hosts, allow_hosts=("*.Example.org",), deny_hosts=("b.example.org",)
        )
        assert (await web.fetch(served.url(host="A.example.org"))).body == b"hello"
        for host in ("b.example.org", "b.example.org.", "example.com", LOOPBACK):
            assert "is not allowed here" in await refusal(web, served.url(host=host), "web.refused")
    assert served.connections == 1


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
async def test_proxy_variables_are_ignored(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with site(says("proxied")) as proxy, site(says("direct")) as served:
        monkeypatch.setenv(variable, proxy.url())
        assert (await client(served).fetch(served.url())).body == b"direct"
    assert proxy.connections == 0


async def test_cookies_are_not_kept() -> None:
    async with site(says("hello", Set_Cookie="a=b")) as served:
        web = client(served)
        await web.fetch(served.url())
        await web.fetch(served.url())
    assert "cookie" not in "".join(served.heads).lower()


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with site(says("hello"), host="127.0.0.2") as served:
        web = client(
            served,
            look_up=names(site_test="127.0.0.1 127.0.0.2"),
            allow_networks=("127.0.0.0/8",),
        )
        assert (await web.fetch(served.url(host="site.test"))).body == b"hello"


def _bomb(megabytes: int) -> bytes:
    """Zeros, packed to a thousandth: one piece that stands for a megabyte, as often as wanted."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    piece = packer.compress(bytes(1024 * 1024)) + packer.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + piece * megabytes


async def test_a_decompression_bomb_stops_at_the_limit() -> None:
    bomb = _bomb(1024)
    async with site(says(bomb, Content_Encoding="gzip")) as served:
        web = client(served, max_bytes=100_000)
        await web.fetch(served.url())
        tracemalloc.start()
        try:
            fetched = await web.fetch(served.url())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (fetched.body, fetched.truncated) == (bytes(100_000), True)
    assert peak < 4 * len(bomb), "a second copy of the bomb is the server's"


async def test_an_endless_page_is_cut() -> None:
    async with site(lambda _: endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000)) as served:
        fetched = await client(served, max_bytes=10_500).fetch(served.url())
    assert (fetched.body, fetched.truncated) == (b"x" * 10_500, True)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhel",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
async def test_a_server_that_falls_silent_is_left_when_the_time_is_up(sent: bytes) -> None:
    async def silent(head: str) -> AsyncIterator[bytes]:
        yield sent
        await asyncio.Event().wait()

    async with site(silent) as served:
        assert "within 0.2 s" in await refusal(
            client(served, timeout_s=0.2), served.url(), "web.timeout"
        )


async def test_a_resolver_that_falls_silent_is_left_when_the_time_is_up() -> None:
    async def silent(name: str) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    web = client(look_up=silent, timeout_s=0.2, ports=(80,))
    await refusal(web, "http://site.test/", "web.timeout")


async def test_a_closed_port_is_told_as_such() -> None:
    async with site(says("hello")) as served:
        pass
    assert "could not be reached" in await refusal(client(served), served.url(), "web.unreachable")


async def test_only_so_many_pages_are_read_at_once() -> None:
    two = asyncio.Event()

    async def answer(head: str) -> AsyncIterator[bytes]:
        if served.open_now == 2:
            two.set()
        await two.wait()
        yield page("hello")

    async with site(answer) as served:
        web = client(served, max_concurrent=2)
        await asyncio.gather(*(web.fetch(served.url()) for _ in range(6)))
    assert (served.connections, served.most_open) == (6, 2)


async def test_a_cancelled_read_closes_its_connection_and_frees_its_place() -> None:
    arrived = asyncio.Event()

    async def answer(head: str) -> AsyncIterator[bytes]:
        if "/slow" in head:
            arrived.set()
            await asyncio.Event().wait()
        yield page("hello")

    async with site(answer) as served:
        web = client(served, max_concurrent=1)
        task = asyncio.create_task(web.fetch(served.url("/slow")))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await web.fetch(served.url())).body == b"hello"
