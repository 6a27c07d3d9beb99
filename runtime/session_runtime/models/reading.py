"""Reads the bytes of an answer, streamed or whole, as they arrive; ``stream`` gives them meaning.

What was asked for does not decide: some servers answer a stream request with one JSON object, others
stream although nobody asked.
"""

import json
from collections.abc import Set
from typing import Any, Final

from session_runtime.errors import PermanentError
from session_runtime.models import faults
from session_runtime.models.base import ModelReply, OnText
from session_runtime.models.sse import SseEvent, SseParser
from session_runtime.models.stream import ReplyAssembly
from session_runtime.registry.names import WireNames

MAX_BODY_BYTES: Final = 32 * 1024 * 1024
_DONE: Final = "[DONE]"
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"


class ReplyReader:
    """Takes the body of a successful response piece by piece and ends with a reply.

    ``feed`` and ``reply`` raise TransientError or PermanentError for what cannot be used, and for
    error objects inside a success. ``complete`` tells that a reply is there even if no more arrives.
    """

    def __init__(
        self,
        endpoint: faults.Endpoint,
        content_type: str,
        on_text: OnText,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._endpoint = endpoint
        self._content_type = content_type.partition(";")[0].strip().lower()
        self._on_text = on_text
        self._max_bytes = max_body_bytes
        self._bytes = 0
        self._first_byte = b""
        self._document: list[bytes] = []
        self._events = SseParser()
        self._saw_event = False
        self._done = False
        self._assembly = ReplyAssembly()

    @property
    def done(self) -> bool:
        """Whether the stream said that nothing more will come."""
        return self._done

    @property
    def complete(self) -> bool:
        """Whether the reply is whole: the model stopped, or the stream said that it is over."""
        return self._done or self._assembly.finished

    def feed(self, piece: bytes) -> None:
        """Add bytes as they arrived; new text is told at once."""
        self._bytes += len(piece)
        if self._bytes > self._max_bytes:
            raise PermanentError(
                f"the answer of the model at {self._endpoint.base_url} is larger than the "
                f"{self._max_bytes} bytes that are accepted",
                code="model.reply_too_large",
            )
        self._first_byte = self._first_byte or piece.lstrip(_BLANK)[:1]
        if self._first_byte in {b"{", b"[", b"<"}:
            self._document.append(piece)
        else:
            for event in self._events.feed(piece):
                self._add_event(event)

    def reply(self, names: WireNames, taken_ids: Set[str]) -> ModelReply:
        """The body ended: the whole reply, its names canonical, its ids not in ``taken_ids``."""
        if self._first_byte in {b"{", b"[", b"<"}:
            self._add_document(b"".join(self._document))
        else:
            for event in self._events.close():
                self._add_event(event)
            self._check_end()
        return self._assembly.reply(names, taken_ids)

    def _check_end(self) -> None:
        if self.complete:
            return
        if self._saw_event or self._content_type == "text/event-stream":
            raise faults.broken_reply(self._endpoint, "the stream ended in the middle")
        if not self._first_byte:
            raise faults.broken_reply(self._endpoint, "an empty body")
        raise faults.not_an_api(self._endpoint, f"content type {self._content_type or 'unknown'}")

    def _add_event(self, event: SseEvent) -> None:
        data = event.data.strip()
        if self._done or not data:
            return
        self._saw_event = True
        if data == _DONE:
            self._done = True
            return
        chunk = self._parsed(data)
        if event.type == "error":
            raise faults.from_error_object(self._endpoint, chunk)
        if isinstance(chunk, dict):
            self._add_chunk(chunk)

    def _add_document(self, document: bytes) -> None:
        if self._first_byte == b"<":
            raise faults.not_an_api(self._endpoint, "it sent a web page")
        value = self._parsed(document.strip(_BLANK))
        chunk = value[0] if isinstance(value, list) and value else value
        if not isinstance(chunk, dict):
            raise faults.not_an_api(self._endpoint, "JSON that is no object")
        self._add_chunk(chunk)
        if "choices" not in chunk:
            raise faults.not_an_api(self._endpoint, "a JSON object without 'choices'")

    def _add_chunk(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error") or chunk.get("object") == "error":
            raise faults.from_error_object(self._endpoint, chunk)
        if text := self._assembly.add(chunk):
            self._on_text(text)

    def _parsed(self, text: str | bytes) -> object:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise faults.broken_reply(self._endpoint, f"no JSON: {error}") from error
