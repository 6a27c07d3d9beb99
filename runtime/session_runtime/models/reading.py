"""Reads the bytes of an answer, streamed or whole, as they arrive; an assembly gives them meaning.

What was asked for does not decide: some servers answer a stream request with one JSON object, others
stream although nobody asked.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Protocol

from session_runtime.errors import PermanentError, TransientError
from session_runtime.models import faults
from session_runtime.models.base import OnText
from session_runtime.models.sse import SseEvent, SseParser

MAX_BODY_BYTES: Final = 32 * 1024 * 1024
MAX_DOCUMENT_BYTES: Final = 8 * 1024 * 1024
_DECODER: Final = json.JSONDecoder()
_DONE: Final = "[DONE]"
_TOO_LARGE: Final = "model.reply_too_large"
_TYPE: Final = "type"
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"
_DOCUMENTS: Final = frozenset({b"{", b"[", b"<"})


State = Literal["open", "complete", "over"]
"""Of a reply: more must come; it is whole and something may follow; nothing more follows."""


class Assembly(Protocol):
    """A reply in the making, in the words of one wire.

    ``add`` and ``add_whole`` return the text that is new, and raise TransientError or PermanentError
    for what is no answer. Neither is given what is an error object as a whole.
    """

    @property
    def state(self) -> State:
        """How far the reply has come."""

    def add(self, chunk: dict[str, Any]) -> str:
        """Take one object of a stream."""

    def add_whole(self, document: dict[str, Any]) -> str:
        """Take the one object of an answer that is not streamed; the reply is whole then."""

    def add_end_mark(self) -> None:
        """``[DONE]`` arrived; what that says about the reply depends on the wire."""


class ReplyReader:
    """Takes the body of a successful response piece by piece and fills an assembly.

    ``feed`` and ``close`` raise TransientError or PermanentError for what cannot be used, and for
    error objects inside a success; RefusedError only as long as no text was told.
    """

    def __init__(
        self,
        endpoint: faults.Endpoint,
        content_type: str,
        assembly: Assembly,
        on_text: OnText,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_document_bytes: int = MAX_DOCUMENT_BYTES,
    ) -> None:
        self._endpoint = endpoint
        self._content_type = content_type.partition(";")[0].strip().lower()
        self._assembly = assembly
        self._on_text = on_text
        self._told = False
        self._max_bytes = max_body_bytes
        self._max_document_bytes = max_document_bytes
        self._bytes = 0
        self._first_byte = b""
        self._document = bytearray()
        self._parser = SseParser()
        self._saw_end_mark = False
        self._count = 0

    @property
    def events(self) -> int:
        """How many events with data have come."""
        return self._count

    @property
    def done(self) -> bool:
        """Whether the stream said that nothing more will come."""
        return self._saw_end_mark or self._assembly.state == "over"

    @property
    def complete(self) -> bool:
        """Whether the reply is whole, even if no more arrives."""
        return self._assembly.state != "open"

    def feed(self, piece: bytes) -> None:
        """Add bytes as they arrived; new text is told at once."""
        self._bytes += len(piece)
        self._check_size(self._bytes, self._max_bytes)
        self._first_byte = self._first_byte or piece.lstrip(_BLANK)[:1]
        if self._first_byte in _DOCUMENTS:
            self._document += piece
            self._check_size(len(self._document), self._max_document_bytes)
        else:
            self._add_events(self._parser.feed(piece))

    def close(self) -> None:
        """The body ended: the reply is whole, or this raises."""
        if self._first_byte in _DOCUMENTS:
            self._add_document(bytes(self._document))
            return
        self._add_events(self._parser.close())
        self._check_end()

    def _check_size(self, size: int, most: int) -> None:
        if size > most:
            raise PermanentError(
                f"the answer of the model at {self._endpoint.base_url} is larger than the "
                f"{most} bytes that are accepted",
                code="model.reply_too_large",
            )

    def _check_end(self) -> None:
        if self.complete:
            return
        if self._count or self._content_type == "text/event-stream":
            raise faults.broken_reply(self._endpoint, "the stream ended in the middle")
        if not self._first_byte:
            raise faults.broken_reply(self._endpoint, "an empty body")
        raise faults.not_an_api(self._endpoint, f"content type {self._content_type or 'unknown'}")

    def _add_events(self, events: Iterable[SseEvent]) -> None:
        """Take events; behind a whole reply garbage, half of one or an error does no harm."""
        for event in events:
            try:
                self._add_event(event)
            except (TransientError, PermanentError) as error:
                if not self.complete or error.code == _TOO_LARGE:
                    raise

    def _add_event(self, event: SseEvent) -> None:
        data = event.data.strip()
        if self.done or not data:
            return
        self._count += 1
        if data == _DONE:
            self._saw_end_mark = True
            self._assembly.add_end_mark()
            return
        chunk = self._parsed_event(data)
        if event.type == "error":
            raise self._fault(chunk)
        if isinstance(chunk, dict):
            chunk.setdefault(_TYPE, event.type)
            self._take(self._assembly.add, chunk)

    def _add_document(self, document: bytes) -> None:
        if self._first_byte == b"<":
            raise faults.not_an_api(self._endpoint, "it sent a web page")
        value = self._parsed(document.strip(_BLANK))
        whole = value[0] if isinstance(value, list) and value else value
        if not isinstance(whole, dict):
            raise faults.not_an_api(self._endpoint, "JSON that is no object")
        self._take(self._assembly.add_whole, whole)

    def _take(self, add: Callable[[dict[str, Any]], str], chunk: dict[str, Any]) -> None:
        error = _error_in(chunk)
        if error is not None:
            raise self._fault(error)
        try:
            text = add(chunk)
        except RecursionError as error:
            raise faults.broken_reply(self._endpoint, "JSON that is nested too deeply") from error
        except faults.RefusedError as refusal:
            raise self._final(refusal) from None
        if text:
            self._told = True
            self._on_text(text)

    def _fault(self, error: object) -> faults.ModelFault:
        return self._final(faults.from_error_object(self._endpoint, error))

    def _final(self, fault: faults.ModelFault) -> faults.ModelFault:
        """A request of which text was told is not sent once more in another form."""
        if self._told and isinstance(fault, faults.RefusedError):
            return PermanentError(str(fault), code=fault.code)
        return fault

    def _parsed_event(self, data: str) -> object:
        """Parse text without blanks around it, of which a stream has hundreds."""
        try:
            chunk, end = _DECODER.raw_decode(data)
        except (ValueError, RecursionError):
            return self._parsed(data)  # which says what is wrong
        return chunk if end == len(data) else self._parsed(data)

    def _parsed(self, text: str | bytes) -> object:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise faults.broken_reply(self._endpoint, f"no JSON: {error}") from error


def _error_in(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """The object that holds an error: the chunk itself, or the response that it tells of."""
    if chunk.get("error") or "error" in (chunk.get("object"), chunk.get(_TYPE)):
        return chunk
    response = chunk.get("response")
    return response if isinstance(response, dict) and response.get("error") else None
