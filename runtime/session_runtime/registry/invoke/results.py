"""How what a tool returned is shown to a model: as it is, or as a summary with a reference (ASK-8b).

Failures are put into words in ``pipeline``; where whole results are kept is the affair of ``Keep``.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from session_runtime.handler import Image, Table
from session_runtime.registry.invoke.encode import (
    PIECE_CHARS,
    Whole,
    base64_text,
    compact_json,
    json_text,
    least_chars,
    plain_text,
    table_text,
)
from session_runtime.registry.invoke.summary import LEAST_CHARS, cut, summarise
from session_runtime.registry.names import RESULTS_READ
from session_runtime.threads import in_thread

Keep = Callable[[str], str | None]

MOST_KEPT_CHARS: Final = 16 * 1024 * 1024
MEDIA_TYPES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_NOT_SHOWN: Final = "Not shown, it is no text."
_AS_BASE64: Final = f"{RESULTS_READ} gives it as base64 by its reference, from the next turn on."


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model reads; ``whole_chars`` is the length of the whole if this is not all of it."""

    content: str
    whole_chars: int | None = None


def keep_nothing(text: str) -> None:
    """A ``Keep`` for calls whose results nobody can read later."""
    del text


async def show(value: object, limit: int, keep: Keep) -> Shown | None:
    """Make a result readable in at most ``limit`` characters; None for what cannot be shown.

    ``keep`` is given the whole if the model does not get all of it. It gives the reference to it, or
    None if it is not kept, and may be called in any thread: what takes long is done in another one.
    """
    if _weight(value) <= PIECE_CHARS:
        return _show(value, limit, keep)
    return await in_thread("showing a result", partial(_show, value, limit, keep))


def _weight(value: object) -> int:
    match value:
        case Table(_, rows):
            return least_chars(list(islice(rows, PIECE_CHARS)), PIECE_CHARS)
        case Image(data):
            return len(data)
        case bytes():
            return len(value)
        case _:
            return least_chars(value, PIECE_CHARS)


def _show(value: object, limit: int, keep: Keep) -> Shown | None:
    most = max(limit, MOST_KEPT_CHARS)
    match value:
        case None:
            whole: Whole | None = plain_text("done", most)
        case bytes():
            return _describe(value, "bytes", _media_type(value), limit, keep)
        case Image(data, media_type):
            return _describe(data, "image", media_type, limit, keep)
        case str():
            whole = plain_text(value, most)
        case Table(columns, rows):
            whole = table_text(columns, rows, most)
        case _:
            whole = json_text(value, most)
    return None if whole is None else _shorten(value, whole, limit, keep)


def _shorten(value: object, whole: Whole, limit: int, keep: Keep) -> Shown:
    if whole.chars <= limit:
        return Shown(whole.text)
    if limit < LEAST_CHARS:
        return Shown(cut(whole.text, whole.chars, limit), whole.chars)
    reference = keep(whole.text) if whole.complete else None
    return Shown(summarise(value, whole.chars, limit, reference), whole.chars)


def _describe(data: bytes, kind: str, media_type: str | None, limit: int, keep: Keep) -> Shown:
    """Say what bytes are, without looking into them; images too, since not every model takes them."""
    chars = (len(data) + 2) // 3 * 4
    readable = 0 < chars <= MOST_KEPT_CHARS and limit >= LEAST_CHARS
    reference = keep(base64_text(data)) if readable else None
    facts = {
        "kind": kind,
        "media_type": media_type,
        "bytes": len(data),
        "digest": hashlib.blake2b(data, digest_size=8).hexdigest(),
        "reference": reference,
        "note": _NOT_SHOWN if reference is None else f"{_NOT_SHOWN} {_AS_BASE64}",
    }
    known = {name: fact for name, fact in facts.items() if fact is not None}
    return Shown(compact_json(known)[:limit], chars)


def _media_type(data: bytes) -> str | None:
    return next((kind for magic, kind in MEDIA_TYPES if data.startswith(magic)), None)
