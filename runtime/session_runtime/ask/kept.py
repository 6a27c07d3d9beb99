"""Keeps the long results of one ask until it ends; what is too long is decided in the pipeline."""

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from session_runtime.errors import ToolError
from session_runtime.registry.invoke.results import MOST_KEPT_CHARS, Place
from session_runtime.services import Part
from session_runtime.types import Message, TextPart

MOST_KEPT: Final = 64
MOST_KEPT_BYTES: Final = 256 * 1024 * 1024
SEARCHED_AT_ONCE: Final = 1024 * 1024
_REFERENCE: Final = re.compile(r"result_(\d{1,6})(?!\d)")

_log = logging.getLogger(__name__)


class Room:
    """The memory that the kept results of all running asks share, in bytes; the event loop's alone."""

    def __init__(self, most_bytes: int = MOST_KEPT_BYTES) -> None:
        self._free = most_bytes

    @property
    def free(self) -> int:
        """How much more may be kept."""
        return self._free

    def take(self, size: int) -> None:
        """Count something that is kept from now on."""
        self._free -= size

    def give_back(self, size: int) -> None:
        """Count something that is kept no more."""
        self._free += size


@dataclass(frozen=True, slots=True)
class _Kept:
    """A whole result, whose it is, and its size in memory when it was kept; Python may add to that."""

    text: str
    tool: str
    size: int


class KeptResults:
    """Whole results by reference, readable in parts: the ``Results`` of handlers (ASK-8b).

    At most MOST_KEPT results of ``most_chars`` characters together, and no more than there is ``room``;
    the oldest go first. References count from ``first``. What reads may be called from any thread. Of a
    tool that is ``revoked`` by now nothing can be read any more (REL-9); that too is asked in any thread.
    """

    def __init__(
        self,
        max_chars: int = 0,
        first: int = 1,
        most_chars: int = MOST_KEPT_CHARS,
        room: Room | None = None,
        revoked: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._max_chars = max_chars
        self._most_chars = most_chars
        self._room = room or Room()
        self._revoked = revoked
        self._next = first
        self._kept: dict[str, _Kept] = {}
        self._shown: dict[str, str] = {}
        self._dropped: set[str] = set()
        self._closed = False
        self._lock = threading.Lock()

    @property
    def max_chars(self) -> int:
        """The longest result that the model is shown, in characters."""
        return self._max_chars

    @property
    def used(self) -> bool:
        """Whether a reference was ever given."""
        return bool(self._kept or self._dropped)

    def place(self, *, readable: bool, tool: str = "") -> Place | None:
        """Where the result of the next call, of ``tool``, is kept; None if the model could not read it.

        The reference is fixed here, so that it does not depend on which call is done first.
        """
        number, self._next = self._next, self._next + 1
        reference = f"result_{number}"
        return Place(reference, partial(self._keep, reference, tool)) if readable else None

    def note(self, shown: str, place: Place | None) -> None:
        """Remember that a model was shown this text in place of a result, if that was kept."""
        if place is not None and self.tool_of(place.reference) is not None:
            self._shown[shown] = place.reference

    def reference_of(self, shown: str) -> str | None:
        """The reference of the whole of which a model was shown just this text; None if there is none."""
        reference = self._shown.get(shown)
        return None if reference is None or self.tool_of(reference) is None else reference

    def another(self) -> "KeptResults":
        """Results of somebody else in the same ask: a sub-agent reads its own alone (ASK-11)."""
        return KeptResults(
            self._max_chars, 1, self._most_chars, room=self._room, revoked=self._revoked
        )

    def close(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._closed = True
            self._drop(list(self._kept))

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
        """Where ``text`` first occurs at or after ``offset``, None if it does not.

        A search keeps the interpreter to itself until it is done, so it is one of many short ones.
        """
        whole = self._text(reference)
        step = max(SEARCHED_AT_ONCE, len(text))
        for at in range(offset, len(whole) + 1, step):
            found = whole.find(text, at, at + step + len(text) - 1)
            if found >= 0:
                return found
        return None

    def tool_of(self, reference: str) -> str | None:
        """The name of the tool that gave a result, None for a reference that there is not."""
        with self._lock:
            kept = self._kept.get(reference)
        return None if kept is None else kept.tool

    def _keep(self, reference: str, tool: str, text: str) -> bool:
        new = _Kept(text, tool, sys.getsizeof(text))
        with self._lock:
            in_the_way = None if self._closed else self._in_the_way(new)
            if in_the_way is None:
                _log.warning("there is no room to keep a result of %d bytes", new.size)
                return False
            self._drop(in_the_way)
            self._room.take(new.size)
            self._kept[reference] = new
        return True

    def _in_the_way(self, new: _Kept) -> list[str] | None:
        """The oldest results without which there is room; None if there is none even so."""
        chars = self._most_chars - len(new.text) - sum(len(old.text) for old in self._kept.values())
        free = self._room.free - new.size
        places = MOST_KEPT - 1 - len(self._kept)
        dropped: list[str] = []
        for reference, old in self._kept.items():
            if min(chars, free, places) >= 0:
                break
            dropped.append(reference)
            chars, free, places = chars + len(old.text), free + old.size, places + 1
        return dropped if min(chars, free, places) >= 0 else None

    def _drop(self, references: Iterable[str]) -> None:
        for reference in references:
            self._room.give_back(self._kept.pop(reference).size)
            self._dropped.add(reference)
        self._shown = {text: each for text, each in self._shown.items() if each in self._kept}

    def _text(self, reference: str) -> str:
        with self._lock:
            if reference in self._dropped:
                raise ToolError(
                    f"{reference} had to make room for later results. Call its tool again.",
                    code="results.dropped",
                )
            if reference not in self._kept:
                known = ", ".join(self._kept) or "none"
                raise ToolError(
                    f"There is no result {reference[:80]!r} in this request. There is: {known}.",
                    code="results.unknown",
                )
            kept = self._kept[reference]
        if self._revoked(kept.tool):
            raise ToolError(
                f"{reference} cannot be read any more: an operator has taken {kept.tool} away.",
                code="tool.revoked",
            )
        return kept.text


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
