"""A body is unpacked piece by piece, up to the limit, whatever was packed."""

import gzip
import itertools
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.toolbox.web.body import MOST_MEMBERS, Body, read_body

pytestmark = pytest.mark.requirement("SEC-2")


async def in_pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


class Sent:
    """Chunks of an answer that never ends; ``taken`` counts those that were asked for."""

    def __init__(self, *chunks: bytes, then: bytes) -> None:
        self._chunks = chunks
        self._then = then
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in itertools.chain(self._chunks, itertools.repeat(self._then)):
            self.taken += 1
            yield chunk


@given(st.binary(max_size=300), st.integers(1, 50), st.integers(1, 400), st.booleans())
async def test_what_was_sent_comes_out_cut_at_the_limit(
    content: bytes, size: int, limit: int, packed: bool
) -> None:
    sent = gzip.compress(content) if packed else content
    body = await read_body(in_pieces(sent, size), "gzip" if packed else "", limit)
    assert content.startswith(body.content)
    assert body.content == content or body.truncated
    assert len(body.content) <= limit
    assert body.truncated or len(sent) <= limit


@pytest.mark.parametrize("coding", ["gzip", " X-GZIP "])
async def test_a_large_page_is_unpacked_whole(coding: str) -> None:
    content = bytes(range(256)) * 4096 + bytes(3_000_000)
    body = await read_body(in_pieces(gzip.compress(content), 65_536), coding, 10_000_000)
    assert body == Body(content, truncated=False)


async def test_a_body_that_ends_too_early_is_marked_as_cut() -> None:
    sent = gzip.compress(b"hello" * 100)[:-9]
    body = await read_body(in_pieces(sent, 10), "gzip", 1000)
    assert body.truncated


@pytest.mark.parametrize("rest", [b"", b"\0" * 100, b"<!-- no gzip -->"])
async def test_nothing_is_asked_for_after_the_end_of_what_was_packed(rest: bytes) -> None:
    sent = Sent(gzip.compress(b"page") + rest, then=b"x" * 60_000)
    assert await read_body(aiter(sent), "gzip", 1_000_000) == Body(b"page", truncated=False)
    assert sent.taken <= 2


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.integers(1, 50))
async def test_what_was_packed_in_several_members_is_one_page(
    contents: list[bytes], size: int
) -> None:
    sent = b"".join(map(gzip.compress, contents))
    body = await read_body(in_pieces(sent, size), "gzip", 100_000)
    assert body == Body(b"".join(contents), truncated=False)


async def test_a_page_of_too_many_members_is_cut() -> None:
    sent = Sent(then=gzip.compress(b"x") * 100)
    body = await read_body(aiter(sent), "gzip", 10_000_000)
    assert body == Body(b"x" * MOST_MEMBERS, truncated=True)


async def test_a_member_that_ends_too_early_is_marked_as_cut() -> None:
    sent = gzip.compress(b"one") + gzip.compress(b"two")[:-9]
    assert (await read_body(in_pieces(sent, 7), "gzip", 1000)).truncated


async def test_a_page_in_crumbs_is_cut_long_before_they_are_as_many_as_its_bytes() -> None:
    sent = Sent(then=b"x")
    body = await read_body(aiter(sent), "", 1_000_000)
    assert body.truncated
    assert sent.taken < 10_000
    assert len(body.content) == sent.taken


async def test_a_short_page_in_crumbs_is_whole() -> None:
    assert await read_body(in_pieces(b"hello", 1), "", 5) == Body(b"hello", truncated=False)


async def test_what_unpacks_to_nothing_counts_as_it_was_sent() -> None:
    packer = zlib.compressobj(0, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    nothing = packer.flush(zlib.Z_SYNC_FLUSH) + packer.flush(zlib.Z_FULL_FLUSH) * 10_000
    body = await read_body(in_pieces(nothing, 1000), "gzip", 5000)
    assert body == Body(b"", truncated=True)


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "gzip, gzip", "gzip, br", "\u00ff"])
async def test_what_was_not_asked_for_is_not_unpacked(coding: str) -> None:
    with pytest.raises(ToolError, match="not asked for") as caught:
        await read_body(in_pieces(b"hello", 5), coding, 1000)
    assert caught.value.code == "web.bad_answer"


@given(st.binary(min_size=1, max_size=100))
async def test_what_is_not_packed_is_damaged_or_cut(content: bytes) -> None:
    try:
        body = await read_body(in_pieces(content, 10), "gzip", 1000)
    except ToolError as error:
        if error.code != "web.bad_answer":
            raise
    else:
        assert body.truncated
