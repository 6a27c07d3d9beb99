"""Cuts a stream of server-sent events into events; what their data means is decided in ``stream``."""

import re
from dataclasses import dataclass
from typing import Final

from session_runtime.errors import PermanentError

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
_END_OF_LINE: Final = re.compile(rb"\r\n|\n|\r")
_EMPTY_LINES: Final = re.compile(rb"\n{3,}")
_PLAIN_EVENTS: Final = re.compile(rb"(?:data:[^\r\n]*\n\n)+")
"""How nearly all servers send nearly all events: whole, one line of data each."""
_DATA: Final = re.compile(rb"data: ?([^\n]*)\n\n")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event: the joined ``data`` lines and the event type (``message`` if not stated)."""

    data: str
    type: str = "message"


class SseParser:
    """Takes bytes in pieces of any size and returns the events that are complete.

    Lines end in CRLF, LF or CR; comments and unknown fields are skipped; a leading BOM is dropped.
    Unlike a browser it keeps an event that the end of the stream cuts off before its blank line,
    because many servers forget that line. ``feed`` raises PermanentError for a line, or the lines of
    one event, longer than ``max_event_bytes``; the size of the whole stream is bounded by whoever reads
    it.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._unfinished = bytearray()
        self._at_start = True
        self._after_cr = False
        self._data: list[str] = []
        self._data_bytes = 0
        self._type = ""

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Add bytes as they arrived; returns the events that they complete, in order."""
        if not piece:
            return []
        plain = self._plain_events(piece)
        if plain:
            self._at_start = False
        events = [
            SseEvent(data.decode("utf-8", "replace")) for data in _DATA.findall(piece, 0, plain)
        ]
        rest = piece[plain:]
        return events + self._lines(rest) if rest else events

    def _plain_events(self, piece: bytes) -> int:
        """How many bytes at the beginning of the piece are whole events in the usual form."""
        if len(piece) > self._max_event_bytes or not self._is_idle:
            return 0
        found = _PLAIN_EVENTS.match(piece)
        return found.end() if found else 0

    def _lines(self, piece: bytes) -> list[SseEvent]:
        if self._after_cr:
            piece = piece.removeprefix(b"\n")
        self._after_cr = piece.endswith(b"\r")
        first, *others = _END_OF_LINE.split(_EMPTY_LINES.sub(b"\n\n", piece))
        self._keep(first)
        events: list[SseEvent] = []
        for begin in others:
            events.extend(self._line(self._take()))
            self._keep(begin)
        return events

    def close(self) -> list[SseEvent]:
        """The stream ended: returns the event that lacked its end of line or blank line, if any."""
        return [*self._line(self._take()), *self._line(b"")]

    @property
    def _is_idle(self) -> bool:
        """Whether it stands between two events."""
        return not (self._unfinished or self._data or self._type or self._after_cr)

    def _keep(self, part: bytes) -> None:
        self._unfinished += part
        self._check("a line", len(self._unfinished))

    def _take(self) -> bytes:
        line = bytes(self._unfinished)
        self._unfinished.clear()
        if self._at_start:
            self._at_start = False
            return line.removeprefix(_BOM)
        return line

    def _check(self, what: str, size: int) -> None:
        if size > self._max_event_bytes:
            raise PermanentError(
                f"the model's stream holds {what} of more than {self._max_event_bytes} bytes",
                code="model.reply_too_large",
            )

    def _line(self, line: bytes) -> list[SseEvent]:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
            self._data_bytes += len(value)
            self._check("an event", self._data_bytes)
        elif name == b"event":
            self._type = text
        return []

    def _dispatch(self) -> list[SseEvent]:
        data, self._data, self._data_bytes = self._data, [], 0
        kind, self._type = self._type, ""
        return [SseEvent("\n".join(data), kind or "message")] if data else []
