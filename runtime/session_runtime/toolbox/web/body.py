"""The body of an answer, unpacked in small pieces and never beyond a limit (SEC-2)."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from session_runtime.errors import ToolError
from session_runtime.threads import in_thread

MOST_MEMBERS: Final = 1000

_PIECE: Final = 64 * 1024
_USUAL_CHUNKS: Final = 1000
_LEAST_CHUNK: Final = 128
_GZIP: Final = 16 + zlib.MAX_WBITS
_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Body:
    """What was read; ``truncated`` tells that there was more, or that the end is missing."""

    content: bytes
    truncated: bool


async def read_body(chunks: AsyncIterator[bytes], coding: str, max_bytes: int) -> Body:
    """Read up to ``max_bytes``, of what is sent as well as of what it unpacks to.

    ``coding`` is the header Content-Encoding. Of chunks there may be a thousand, and more if they have
    128 bytes on average: each costs as much, however small. Nothing is read beyond the end of what was
    packed. ToolError ``web.bad_answer`` for a coding that was not asked for, and for what cannot be
    unpacked.
    """
    unpacker = _unpacker(coding)
    pieces: list[bytes] = []
    room, sent = max_bytes, 0
    chunks_left = _USUAL_CHUNKS + max_bytes // _LEAST_CHUNK
    async for chunk in chunks:
        sent += len(chunk)
        chunks_left -= 1
        for piece in unpacker.pieces(chunk):
            pieces.append(piece[:room])
            room -= len(piece)
            if room < 0:
                return await _joined(pieces, truncated=True)
            await asyncio.sleep(0)  # a chunk can unpack to the thousandfold
        if unpacker.over:
            break
        if sent > max_bytes or not chunks_left:
            return await _joined(pieces, truncated=True)
    return await _joined(pieces, truncated=not unpacker.whole)


async def _joined(pieces: list[bytes], *, truncated: bool) -> Body:
    """Put the body together, in a thread: that takes 10 ms for 16 MiB, and needs no interpreter."""
    content = await in_thread("put a page together", partial(b"".join, pieces))
    return Body(content, truncated)


class _Unpacker(Protocol):
    """Gives the content of chunks; ``whole`` so far, ``over`` when no further chunk can add to it."""

    @property
    def whole(self) -> bool: ...

    @property
    def over(self) -> bool: ...

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Unpack what a chunk adds, at most 64 KiB at a time."""


def _unpacker(coding: str) -> _Unpacker:
    match coding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Gzip()
        case _:
            raise ToolError(
                "The page is packed in a way that was not asked for.", code="web.bad_answer"
            )


class _Plain:
    whole = True
    over = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk


class _Gzip:
    """Up to MOST_MEMBERS packed members, which are one page; what follows the last is none of it."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP)
        self._members = 1
        self._before = b""  # after a member: too little to tell whether a further one begins
        self._cut = False
        self.over = False

    @property
    def whole(self) -> bool:
        return self._stream.eof and not self._cut

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        rest = self._before + chunk
        while not self._stream.eof or self._begins(rest):
            piece = self._unpacked(rest)
            yield piece
            if self._stream.eof:
                rest = self._stream.unused_data
            elif len(piece) < _PIECE:
                return
            else:
                rest = self._stream.unconsumed_tail

    def _begins(self, rest: bytes) -> bool:
        """Whether a further member begins, which is unpacked from now on."""
        undecided = len(rest) < len(_MAGIC) and _MAGIC.startswith(rest)
        self._before = rest if undecided else b""
        if undecided:
            return False
        follows = rest.startswith(_MAGIC)
        self._cut = follows and self._members == MOST_MEMBERS
        self.over = self._cut or not follows
        if not self.over:
            self._members += 1
            self._stream = zlib.decompressobj(_GZIP)
        return not self.over

    def _unpacked(self, chunk: bytes) -> bytes:
        try:
            return self._stream.decompress(chunk, _PIECE)
        except zlib.error:
            raise ToolError(
                "The page is damaged: it cannot be unpacked.", code="web.bad_answer"
            ) from None
