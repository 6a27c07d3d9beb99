"""Cuts what a server says into lines, none of them longer than a limit.

Public: ``Framer``, ``Line``. What a line means is decided in ``messages``.
"""

from dataclasses import dataclass
from typing import Final

MAX_LINE_BYTES: Final = 32 * 1024 * 1024
_EDGE_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end, in the pieces it came in; of one that was ``cut``, both ends."""

    pieces: tuple[bytes, ...]
    size: int
    cut: bool = False

    def whole(self) -> bytes:
        """The line in one piece."""
        return b"".join(self.pieces)


class Framer:
    """Gathers pieces until a line is complete; keeps no more than ``max_bytes`` of it."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._tail: bytes | None = None  # of a line that is too long

    def feed(self, data: bytes) -> list[Line]:
        """Take the next bytes and give the lines they complete, but for empty ones."""
        *ends, rest = data.split(b"\n")
        lines = [self._complete(end) for end in ends if end or self._size]
        self._add(rest)
        return lines

    def end(self) -> Line | None:
        """Give the last line where the output ended without an end of line."""
        return self._complete(b"") if self._size else None

    def _complete(self, piece: bytes) -> Line:
        self._add(piece)
        cut = self._tail is not None
        pieces = (*self._pieces, self._tail) if self._tail is not None else tuple(self._pieces)
        line = Line(pieces, self._size, cut)
        self._pieces, self._size, self._tail = [], 0, None
        return line

    def _add(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._tail is None and self._size <= self._max_bytes:
            self._pieces.append(piece)
            return
        if self._tail is None:
            gathered = b"".join(self._pieces[:1])[:_EDGE_BYTES] or piece[:_EDGE_BYTES]
            self._pieces, self._tail = [gathered], b"".join(self._pieces[-1:])
        self._tail = (self._tail + piece)[-_EDGE_BYTES:]
