"""The events of an ask as the stream of a chat completion: text while it is written, and nothing twice."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from session_runtime.ask.event_log import EventLog
from session_runtime.transports.http.answers import STOPPING, error_answer
from session_runtime.transports.http.completions_errors import (
    COMPLETIONS,
    Heard,
    error_object,
    error_of,
    failure,
    in_style,
)
from session_runtime.transports.http.completions_reply import (
    BREAK,
    DONE,
    Heading,
    chunk,
    usage_chunk,
    waiting,
)
from session_runtime.transports.http.completions_request import Wanted
from session_runtime.transports.http.events import PING, Item
from session_runtime.transports.outbox import Delivery
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskResult,
    MessageSent,
    TextDelta,
    TurnStarted,
)
from session_runtime.wire import to_bytes


class CompletionForm:
    """Writes the pieces of one answer; the stream itself is ``events``'.

    A model's text is passed on as it comes if ``live``. It is not gone on with where it turned out void,
    since the model was asked again, or where pieces were lost to a slow reader. At its end the stream has
    the rest of the final text, or all of it if it does not go on as it had begun, and the messages that were
    lost. ``log`` is that of a kept ask, which still knows what events told that have made room.
    """

    def __init__(
        self, wanted: Wanted, created: int, *, live: bool, log: EventLog | None = None
    ) -> None:
        self._log = log
        self._wanted = wanted
        self._created = created
        self._live = live
        self._heard = Heard(wanted.asked.model)
        self._is_void = False
        self._shown: set[str] = set()
        self._sent: Counter[str] = Counter()
        self._said = ""
        self._is_open = False
        self._has_begun = False
        self._has_text = False

    def instead_of(self, item: Item) -> Response | None:
        """Answer an ask that came to nothing before anything of it was told."""
        if item != "ping" and isinstance(item.event, AskFinished):
            self._recall(item)
            return failure(item.event.result, self._heard)
        return None

    def written(self, item: Item) -> bytes:
        """What the stream goes on with; nothing for most events."""
        if item == "ping":
            return PING
        self._recall(item)
        return b"".join(map(_frame, self._pieces(item.event))) + self._end(item.event)

    def _recall(self, item: Delivery) -> None:
        """Do without the events that were lost before this one."""
        if not item.lost:
            return
        self._live = False
        if self._log is not None:
            self._heard.recall(self._log)

    def stopped(self) -> Response:
        """Answer for an ask of which there was nothing."""
        return in_style(COMPLETIONS, error_answer(STOPPING, 503))

    def _pieces(self, event: AskEvent) -> list[dict[str, Any]]:
        self._heard.emit(event)
        match event:
            case TurnStarted():
                self._turn(event.attempt)
                return []
            case TextDelta() if self._live and not self._is_void:
                return self._go_on(event, event.text)
            case MessageSent():
                return self._message(event, event.text)
            case AskFinished(result=result):
                return self._last(event, result)
            case _:
                return []

    def _turn(self, attempt: int) -> None:
        if attempt == 1:
            self._shown.add(self._said)
            self._said, self._is_void, self._is_open = "", False, False
        elif self._said:
            self._is_void = True

    def _go_on(self, event: AskEvent, text: str) -> list[dict[str, Any]]:
        """Add to the paragraph of this turn."""
        self._said += text
        if self._is_open:
            return [self._piece(event, text)]
        self._is_open = True
        return self._paragraph(event, text)

    def _paragraph(self, event: AskEvent, text: str) -> list[dict[str, Any]]:
        if not text:
            return []
        text = f"{BREAK}{text}" if self._has_text else text
        self._has_text = True
        return [self._piece(event, text)]

    def _piece(self, event: AskEvent, text: str) -> dict[str, Any]:
        begin = {} if self._has_begun else {"role": "assistant"}
        self._has_begun = True
        return chunk(self._heading(event), {**begin, "content": text}, self._wanted)

    def _last(self, event: AskEvent, result: AskResult) -> list[dict[str, Any]]:
        if error_of(result, self._heard) is not None:
            return []
        if self._is_open and result.text.startswith(self._said):  # it goes on where it stopped
            pieces = self._rest(event, result.text) + self._missed(event, result.messages)
        else:
            pieces = self._missed(event, result.messages) + self._rest(event, result.text)
        pieces += self._paragraph(event, waiting(result.pending))
        if not self._has_begun:
            pieces.append(self._piece(event, ""))
        heading = self._heading(event)
        pieces.append(chunk(heading, {}, self._wanted, ended=result))
        if self._wanted.include_usage:
            pieces.append(usage_chunk(heading, result.usage))
        return pieces

    def _message(self, event: AskEvent, text: str) -> list[dict[str, Any]]:
        self._is_open = False
        self._sent[text] += 1
        return self._paragraph(event, text)

    def _missed(self, event: AskEvent, messages: Sequence[str]) -> list[dict[str, Any]]:
        """Messages whose events were lost, in their order."""
        left = self._sent.copy()
        missed: list[str] = []
        for text in reversed(messages):  # what was lost is the oldest
            if left[text]:
                left[text] -= 1
            else:
                missed.insert(0, text)
        return [piece for text in missed for piece in self._message(event, text)]

    def _rest(self, event: AskEvent, text: str) -> list[dict[str, Any]]:
        """What of the final text was not sent yet."""
        if text in self._shown:
            return []
        if not text.startswith(self._said):
            self._said, self._is_open = "", False
        rest = text[len(self._said) :]
        return self._go_on(event, rest) if rest else []

    def _end(self, event: AskEvent) -> bytes:
        if not isinstance(event, AskFinished):
            return b""
        error = error_of(event.result, self._heard)
        return DONE if error is None else _frame(error_object(error))

    def _heading(self, event: AskEvent) -> Heading:
        return Heading(event.ask_id, self._created, self._heard.model)


def _frame(data: object) -> bytes:
    return b"data: %s\n\n" % to_bytes(data)
