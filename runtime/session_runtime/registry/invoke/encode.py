"""JSON text of what tools return, made in pieces, so that a large one never holds up other threads.

What a model reads of the text is decided in ``results``.
"""

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

PIECE_CHARS: Final = 16_384
MOST_CHARS: Final = 256 * 1024 * 1024
MOST_LEVELS: Final = 100

T = TypeVar("T")

compact_json: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole result: its length, and its text, or the beginning if it was too long to be put together."""

    chars: int
    text: str

    @property
    def complete(self) -> bool:
        """Whether ``text`` is all of it."""
        return len(self.text) == self.chars


def plain_text(text: str, most_chars: int) -> Whole:
    """Text as it is, made ``encodable``; more than ``most_chars`` are counted only."""
    return Whole(len(text), encodable(text[:most_chars]))


def json_text(value: object, most_chars: int) -> Whole | None:
    """Compact JSON of ``value``; None for what is no JSON data, nested too deeply, or above MOST_CHARS.

    The encoder of the standard library keeps the interpreter to itself until it is done, in a thread
    too; so it gets no more than about PIECE_CHARS at a time.
    """
    return _join(_pieces(value), most_chars)


def table_text(
    columns: Sequence[str], rows: Sequence[Sequence[object]], most_chars: int
) -> Whole | None:
    """JSON of a table, the names of its columns once and one row per line; None like ``json_text``."""
    return _join(_table(columns, rows), most_chars)


def base64_text(data: bytes) -> str:
    """Bytes as base64 in one line."""
    step = 3 * PIECE_CHARS
    parts = (data[at : at + step] for at in range(0, len(data), step))
    return "".join(b2a_base64(part, newline=False).decode("ascii") for part in parts)


def least_chars(value: object, enough: int) -> int:
    """Count how long the JSON of ``value`` is at least; stops soon after ``enough``, cycles or not."""
    least, waiting = 0, [value]
    while waiting and least <= enough:
        match waiting.pop():
            case str() as text:
                least += len(text) + 2
            case dict() as table:
                least += 2 + len(table)
                if least <= enough:
                    waiting.extend(table)
                    waiting.extend(table.values())
            case list() | tuple() as items:
                least += 2
                if least + len(items) <= enough:
                    waiting.extend(items)
                else:
                    least += len(items)
            case _:
                least += 1
    return least


def encodable(text: str) -> str:
    """Replace halves of characters, which no request to a model could carry."""
    if str.isascii(text):
        return str.__str__(text)
    return "".join(str.encode(piece, "utf-8", "replace").decode("utf-8") for piece in _slices(text))


def _join(pieces: Iterable[str], most_chars: int) -> Whole | None:
    chars, kept = 0, []
    try:
        for piece in pieces:
            chars += len(piece)
            if chars > MOST_CHARS:  # data that holds the same part again and again may never end
                return None
            if chars <= most_chars:
                kept.append(encodable(piece))
    except (TypeError, ValueError, RuntimeError):
        return None
    return Whole(chars, "".join(kept))


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield '{"columns":'
    yield from _pieces(list(columns))
    yield ',"rows":['
    before = "\n"
    for row in rows:
        yield before
        yield from _pieces(list(row))
        before = ",\n"
    yield "]}"


def _pieces(value: object, level: int = 0) -> Iterator[str]:
    """Each level that is larger than a piece costs a look at what lies below, so there is a limit."""
    if level > MOST_LEVELS:
        raise ValueError("nested too deeply")
    if least_chars(value, PIECE_CHARS) <= PIECE_CHARS:
        yield compact_json(value)
        return
    match value:
        case str():
            yield '"'
            yield from (compact_json(part)[1:-1] for part in _slices(value))
            yield '"'
        case dict():
            yield from _enclosed("{}", value.items(), _weigh_member, partial(_members, level + 1))
        case list() | tuple():
            yield from _enclosed("[]", value, _weigh, partial(_items, level + 1))


def _slices(text: str) -> Iterator[str]:
    return (text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))


def _enclosed(
    marks: str,
    parts: Iterable[T],
    weigh: Callable[[T], int],
    encode: Callable[[list[T]], Iterable[str]],
) -> Iterator[str]:
    yield marks[0]
    before = ""
    for batch in _batches(parts, weigh):
        yield before
        yield from encode(batch)
        before = ","
    yield marks[1]


def _batches(parts: Iterable[T], weigh: Callable[[T], int]) -> Iterator[list[T]]:
    """Neighbours that make no more than a piece together; a part that is longer stands alone."""
    batch: list[T] = []
    weight = 0
    for part in parts:
        own = weigh(part)
        if batch and weight + own > PIECE_CHARS:
            yield batch
            batch, weight = [], 0
        batch.append(part)
        weight += own
    if batch:
        yield batch


def _weigh(value: object) -> int:
    return least_chars(value, PIECE_CHARS)


def _weigh_member(member: tuple[Any, object]) -> int:
    return _weigh(member[1]) + _weigh(member[0])


def _items(level: int, batch: list[Any]) -> Iterator[str]:
    if len(batch) == 1:
        return _pieces(batch[0], level)
    return iter((compact_json(batch)[1:-1],))


def _members(level: int, batch: list[tuple[Any, object]]) -> Iterator[str]:
    if len(batch) > 1:
        yield compact_json(dict(batch))[1:-1]
        return
    ((key, value),) = batch
    yield compact_json({key: 0})[1:-2]
    yield from _pieces(value, level)
