"""The body of an answer, unpacked in small pieces and never beyond a limit (SEC-2)."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Final

from session_runtime.errors import ToolError

_PIECE: Final = 64 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Body:
    """What was read; ``truncated`` tells that there was more, or that the end is missing."""

    content: bytes
    truncated: bool


async def read_body(chunks: AsyncIterator[bytes], coding: str, max_bytes: int) -> Body:
    """Read up to ``max_bytes``, of what is sent as well as of what it unpacks to.

    ``coding`` is the header Content-Encoding. ToolError ``web.bad_answer`` for one that was not asked
    for, and for what cannot be unpacked.
    """
    unpacker = _Gzip() if _is_gzip(coding) else None
    content = bytearray()
    sent = 0
    async for chunk in chunks:
        sent += len(chunk)
        for piece in unpacker.pieces(chunk) if unpacker is not None else (chunk,):
            content += piece
            if len(content) > max_bytes:
                return Body(bytes(content[:max_bytes]), truncated=True)
            await asyncio.sleep(0)  # a chunk can unpack to the thousandfold
        if sent > max_bytes:
            return Body(bytes(content), truncated=True)
    return Body(bytes(content), truncated=unpacker is not None and not unpacker.ended)


def _is_gzip(coding: str) -> bool:
    match coding.strip().lower():
        case "" | "identity":
            return False
        case "gzip" | "x-gzip":
            return True
        case _:
            raise ToolError(
                "The page is packed in a way that was not asked for.", code="web.bad_answer"
            )


class _Gzip:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP)

    @property
    def ended(self) -> bool:
        return self._stream.eof

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Unpack what a chunk adds, at most 64 KiB at a time; what follows the end is left out."""
        while True:
            try:
                piece = self._stream.decompress(chunk, _PIECE)
            except zlib.error:
                raise ToolError(
                    "The page is damaged: it cannot be unpacked.", code="web.bad_answer"
                ) from None
            chunk = self._stream.unconsumed_tail
            yield piece
            if len(piece) < _PIECE:
                return
