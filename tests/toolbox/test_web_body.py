"""A body is unpacked piece by piece, up to the limit, whatever was packed."""

import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.toolbox.web.body import Body, read_body

pytestmark = pytest.mark.requirement("SEC-2")


async def in_pieces(content: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


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
