"""Keeps the long results of one ask until it ends; what is too long is decided in the pipeline."""

import re
import threading
from collections.abc import Iterable
from functools import partial
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.registry.invoke.results import MOST_KEPT_CHARS, Keep, keep_nothing
from session_runtime.services import Part
from session_runtime.types import Message, TextPart

MOST_KEPT: Final = 64
_REFERENCE: Final = re.compile(r"result_(\d{1,6})(?!\d)")


class KeptResults:
    """Whole results by reference, readable in parts: the ``Results`` of handlers (ASK-8).

    At most MOST_KEPT results of ``most_chars`` characters together; the oldest make room. References
    count from ``first``. May be used from any thread.
    """

    def __init__(
        self, max_chars: int = 0, first: int = 1, most_chars: int = MOST_KEPT_CHARS
    ) -> None:
        self._max_chars = max_chars
        self._most_chars = most_chars
        self._next = first
        self._texts: dict[str, str] = {}
        self._dropped: set[str] = set()
        self._lock = threading.Lock()

    @property
    def max_chars(self) -> int:
        """The longest result that the model is shown, in characters."""
        return self._max_chars

    @property
    def used(self) -> bool:
        """Whether a reference was ever given."""
        return bool(self._texts or self._dropped)

    def keeper(self, *, readable: bool) -> Keep:
        """What keeps the result of the next call; nothing is kept if the model could not read it.

        The reference is fixed here, so that it does not depend on which call is done first.
        """
        number, self._next = self._next, self._next + 1
        return partial(self._keep, f"result_{number}") if readable else keep_nothing

    def read(self, reference: str, offset: int, length: int) -> Part:
        """At most ``length`` characters from ``offset`` on; ToolError for an offset beyond the end."""
        text = self._text(reference)
        if offset >= len(text):
            raise ToolError(
                f"{reference} has {len(text)} characters: there is nothing at offset {offset}.",
                code="results.out_of_range",
            )
        return Part(text[offset : offset + length], offset, len(text))

    def find(self, reference: str, text: str, offset: int) -> int | None:
        """Where ``text`` first occurs at or after ``offset``, None if it does not."""
        found = self._text(reference).find(text, offset)
        return None if found < 0 else found

    def _keep(self, reference: str, text: str) -> str | None:
        with self._lock:
            if len(text) > self._most_chars:
                return None
            self._texts[reference] = text
            while len(self._texts) > MOST_KEPT or self._chars() > self._most_chars:
                oldest = next(iter(self._texts))
                del self._texts[oldest]
                self._dropped.add(oldest)
        return reference

    def _chars(self) -> int:
        return sum(map(len, self._texts.values()))

    def _text(self, reference: str) -> str:
        with self._lock:
            if reference in self._dropped:
                raise ToolError(
                    f"{reference} had to make room for later results. Call its tool again.",
                    code="results.dropped",
                )
            if reference not in self._texts:
                known = ", ".join(self._texts) or "none"
                raise ToolError(
                    f"There is no result {reference[:80]!r} in this request. There is: {known}.",
                    code="results.unknown",
                )
            return self._texts[reference]


def next_number(earlier: Iterable[Message]) -> int:
    """The first number that no tool result among ``earlier`` messages mentions.

    A model may try a reference of an earlier ask; it must not get some other result of this one.
    """
    numbers = (
        int(number)
        for message in earlier
        if message.role == "tool"
        for text in _texts(message)
        for number in _REFERENCE.findall(text)
    )
    return max(numbers, default=0) + 1


def _texts(message: Message) -> Iterable[str]:
    match message.content:
        case None:
            return ()
        case str() as text:
            return (text,)
        case parts:
            return (part.text for part in parts if isinstance(part, TextPart))
