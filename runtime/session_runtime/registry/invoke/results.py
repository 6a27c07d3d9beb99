"""How what a tool returned is shown to a model: as it is, or as a summary with a reference (ASK-8b).

Failures are put into words in ``wording``; where whole results are kept is the affair of ``Place``.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from session_runtime.handler import Image, Table
from session_runtime.registry.invoke.encode import (
    Whole,
    base64_text,
    compact_json,
    json_text,
    least_chars,
    plain_text,
    table_text,
)
from session_runtime.registry.invoke.stoppable import StoppableThreads, Stopped, never
from session_runtime.registry.invoke.summary import LEAST_CHARS, cut, summarise
from session_runtime.registry.names import RESULTS_READ

MOST_AT_ONCE: Final = 2
SLICE_CHARS: Final = 2_048
TIMES_FASTER: Final = 16
MOST_KEPT_CHARS: Final = 16 * 1024 * 1024
MEDIA_TYPES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
HASHED_AT_ONCE: Final = 1024 * 1024
_NOT_SHOWN: Final = "Not shown, it is no text."
_AS_BASE64: Final = f"{RESULTS_READ} gives it as base64 by its reference, from the next turn on."
_NOT_KEPT: Final = "It is not kept either."


@dataclass(frozen=True, slots=True)
class Place:
    """Where the whole of one call's result may be kept, and the reference that it can be read by.

    ``keep`` says whether there was room. It is called in the event loop, at most once, and only for a
    result that the model is given.
    """

    reference: str
    keep: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model reads; ``whole_chars`` is the length of the whole if this is not all of it."""

    content: str
    whole_chars: int | None = None


@dataclass(frozen=True, slots=True)
class Long:
    """A result that can be kept: its whole text, and what the model reads once it is."""

    text: str
    shown: Shown


@dataclass(frozen=True, slots=True)
class Draft:
    """What the model may be shown of a result: ``shown``, unless ``long`` is kept."""

    shown: Shown
    long: Long | None = None

    def settle(self, place: Place | None) -> Shown:
        """Decide what the model is shown, and keep what it will be able to read."""
        if place is None or self.long is None or not place.keep(self.long.text):
            return self.shown
        return self.long.shown


class Renderer:
    """Makes results readable; of those that take long, at most ``at_once`` at a time."""

    def __init__(self, at_once: int = MOST_AT_ONCE) -> None:
        self._threads = StoppableThreads(at_once)

    async def draft(self, value: object, limit: int, reference: str | None) -> Draft | None:
        """Make a result readable in at most ``limit`` characters; None for what cannot be shown.

        ``reference`` is what the whole would be kept under. What takes long is done in a thread, which
        ends soon once nobody waits for it.
        """
        if _weight(value) <= SLICE_CHARS:
            return _draft(value, limit, reference, never)
        work = partial(_draft, value, limit, reference)
        return await self._threads.run("showing a result", work)


def _weight(value: object) -> int:
    """How much work a result is at least, in characters of data; beyond a slice it is not exact.

    Text and bytes take TIMES_FASTER times less than data: there is nothing in them to be looked at.
    """
    match value:
        case str():
            return str.__len__(value) // TIMES_FASTER
        case Table(columns, rows):
            cells = (1 + len(rows)) * (1 + len(columns))
            if cells > SLICE_CHARS:
                return cells
            return least_chars([list(columns), *map(list, rows)], SLICE_CHARS)
        case Image(bytes() as data) | (bytes() as data):
            return bytes.__len__(data) // TIMES_FASTER
        case _:
            return least_chars(value, SLICE_CHARS)


def _draft(value: object, limit: int, reference: str | None, stopped: Stopped) -> Draft | None:
    drafting = _Drafting(limit, reference, stopped)
    match value:
        case bytes():
            return drafting.of_bytes(memoryview(value), "bytes", _media_type(value))
        case Image(bytes() as data, media_type):
            return drafting.of_bytes(memoryview(data), "image", media_type)
        case str():
            return drafting.of_data(str.__str__(value))
        case _:
            return drafting.of_data(value)


@dataclass(frozen=True, slots=True)
class _Drafting:
    """One draft being made, in any thread; what is stopped comes to None."""

    limit: int
    reference: str | None
    stopped: Stopped

    def of_data(self, value: object) -> Draft | None:
        """Show text or data as it is, or shortened."""
        whole = self._whole(value, max(self.limit, MOST_KEPT_CHARS))
        if whole is None:
            return None
        if whole.chars <= self.limit:
            return Draft(Shown(whole.text))
        if self.limit < LEAST_CHARS:
            return Draft(Shown(cut(whole.text, whole.chars, self.limit), whole.chars))
        shown = self._summary(value, whole, None)
        if self.reference is None or not whole.complete:
            return Draft(shown)
        return Draft(shown, Long(whole.text, self._summary(value, whole, self.reference)))

    def of_bytes(self, data: memoryview, kind: str, media_type: str | None) -> Draft | None:
        """Say what bytes are, without looking into them; images too: not every model takes them."""
        digest = _digest(data, self.stopped)
        if digest is None:
            return None
        chars = (len(data) + 2) // 3 * 4
        type_known = {} if media_type is None else {"media_type": media_type}
        facts = {"kind": kind, **type_known, "bytes": len(data), "digest": digest}
        text = compact_json({**facts, "note": f"{_NOT_SHOWN} {_NOT_KEPT}"})
        shown = Shown(text[: self.limit], chars)
        if self.reference is None or not 0 < chars <= MOST_KEPT_CHARS or self.limit < LEAST_CHARS:
            return Draft(shown)
        whole = base64_text(data, self.stopped)
        if whole is None:
            return None
        kept = {**facts, "reference": self.reference, "note": f"{_NOT_SHOWN} {_AS_BASE64}"}
        return Draft(shown, Long(whole.text, Shown(compact_json(kept), chars)))

    def _whole(self, value: object, most_chars: int) -> Whole | None:
        match value:
            case None:
                return plain_text("done", most_chars)
            case str():
                return plain_text(value, most_chars, self.stopped)
            case Table(columns, rows):
                return table_text(columns, rows, most_chars, self.stopped)
            case _:
                return json_text(value, most_chars, self.stopped)

    def _summary(self, value: object, whole: Whole, reference: str | None) -> Shown:
        return Shown(summarise(value, whole.chars, self.limit, reference), whole.chars)


def _digest(data: memoryview, stopped: Stopped) -> str | None:
    hasher = hashlib.blake2b(digest_size=8)
    for at in range(0, len(data), HASHED_AT_ONCE):
        if stopped():
            return None
        hasher.update(data[at : at + HASHED_AT_ONCE])
    return hasher.hexdigest()


def _media_type(data: bytes) -> str | None:
    start = bytes(memoryview(data)[:16])
    return next((kind for magic, kind in MEDIA_TYPES if start.startswith(magic)), None)
