"""Whatever a server sends, it is a page or no answer, and costs no more than a bounded time."""

import gzip
import ssl
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from tests.toolbox.sites import client, endless, refusal, site

pytestmark = pytest.mark.requirement("SEC-2")

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (OK, b"X-Header: value\r\n"),
        (OK, b"x" * 1000),
        (OK, b"Set-Cookie: a=b\r\n" * 100),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100),
        (CHUNKED, b"x" * 1000),
        (CHUNKED + b"5;", b"x" * 1000),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", b"x: y\r\n"),
    ],
)
async def test_a_server_that_sends_anything_but_content_without_end_gives_no_answer(
    first: bytes, piece: bytes
) -> None:
    async with site(lambda _: endless(first, piece)) as served:
        told = await refusal(client(served, timeout_s=60), served.url(), "web.unreachable")
    assert "did not answer as a web server does" in told


@pytest.mark.parametrize("head", [OK, CHUNKED + b"0\r\n"])
async def test_a_head_of_many_lines_is_no_answer(head: bytes) -> None:
    async def answer(_: str) -> AsyncIterator[bytes]:
        yield head + b"a:\r\n" * 20_000 + b"\r\n"

    async with site(answer) as served:
        await refusal(client(served), served.url(), "web.unreachable")


async def test_a_page_in_many_chunks_with_long_heads_is_read() -> None:
    async def answer(_: str) -> AsyncIterator[bytes]:
        yield CHUNKED
        for _ in range(50):
            yield b"5;" + b"x" * 1000 + b"\r\nhello\r\n"
        yield b"0\r\nTrailer: x\r\n\r\n"

    async with site(answer) as served:
        assert (await client(served).fetch(served.url())).body == b"hello" * 50


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ],
)
async def test_what_is_no_http_is_told_as_such(sent: bytes) -> None:
    async def answer(head: str) -> AsyncIterator[bytes]:
        yield sent

    async with site(answer) as served:
        await refusal(client(served), served.url(), "web.unreachable")


PARTS = st.sampled_from(
    [
        *(
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.0 302 Found\r\n",
            b"HTTP/1.1 101 Switch\r\nUpgrade: x\r\n",
        ),
        *(b"HTTP/1.1 204 None\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/2 200\r\n"),
        *(b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n"),
        *(b"Content-Encoding: gzip\r\n", b"Content-Type: \xff; charset=\xfe\r\n", b" folded\r\n"),
        *(b"Location: /next\r\n", b"Location: http:////[x\r\n", b"Location: //\xff\r\n"),
        *(
            b"\r\n",
            b"\r\n\r\n",
            b"5\r\nhello\r\n",
            b"0\r\n\r\n",
            b"fffffffffffffff\r\n",
            b"\0",
            b"\xff",
        ),
        *(gzip.compress(b"page"), b"\x1f\x8b"),
    ]
)


PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the usual one takes long to make


@settings(max_examples=50)
@given(st.lists(PARTS, max_size=8).map(b"".join))
async def test_whatever_a_server_sends_is_a_page_or_an_error_with_a_code(sent: bytes) -> None:
    async def answer(head: str) -> AsyncIterator[bytes]:
        yield sent

    async with site(answer) as served:
        try:
            fetched = await client(served, max_redirects=2, context=PLAIN).fetch(served.url())
        except ToolError as error:
            code = error.code
        else:
            code = f"web.{fetched.status}"
    assert code.startswith("web.")
