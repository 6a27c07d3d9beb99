"""JSON text of what tools return, made in pieces, so that a large one never holds up other threads.

What a model reads of the text is decided in ``results``.
"""

import json
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from session_runtime.registry.invoke.stoppable import Stopped, never

PIECE_CHARS: Final = 16_384
BATCH: Final = 256
MOST_CHARS: Final = 32 * 1024 * 1024
MOST_LEVELS: Final = 100
MOST_NUMBER_BITS: Final = 50_000

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


def plain_text(text: str, most_chars: int, stopped: Stopped = never) -> Whole | None:
    """Text as it is, made ``encodable``; more than ``most_chars`` are counted only. None once stopped."""
    pieces = map(encodable, _slices(text[:most_chars]))
    whole = _Encoding(most_chars, stopped).whole(pieces)
    return None if whole is None else Whole(len(text), whole.text)


def json_text(value: object, most_chars: int, stopped: Stopped = never) -> Whole | None:
    """Compact JSON of ``value``; what is beyond ``most_chars`` is counted only.

    None for what is no JSON data, is nested too deeply, holds a number of too many digits or has more
    than MOST_CHARS, and once it is ``stopped``. The encoder of the standard library keeps the
    interpreter to itself until it is done, in a thread too; so it gets no more than about PIECE_CHARS
    at a time.
    """
    encoding = _Encoding(most_chars, stopped)
    return encoding.whole(encoding.pieces(value))


def table_text(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    most_chars: int,
    stopped: Stopped = never,
) -> Whole | None:
    """JSON of a table, the names of its columns once and one row per line; None like ``json_text``."""
    encoding = _Encoding(most_chars, stopped)
    return encoding.whole(encoding.table(columns, rows))


def base64_text(data: bytes | memoryview, stopped: Stopped = never) -> Whole | None:
    """Bytes, at most three quarters of MOST_CHARS, as base64 in one line; None once it is stopped."""
    step = 3 * PIECE_CHARS
    parts = (data[at : at + step] for at in range(0, len(data), step))
    pieces = (b2a_base64(part, newline=False).decode("ascii") for part in parts)
    return _Encoding(MOST_CHARS, stopped).whole(pieces)


def least_chars(value: object, enough: int) -> int:
    """Count how long the JSON of ``value`` is at least; stops soon after ``enough``, cycles or not."""
    least, waiting = 0, [value]
    while waiting and least <= enough:
        match waiting.pop():
            case str() as text:
                least += 2 + str.__len__(text)
            case int() as number:
                # a bound of its digits: to find them out takes seconds for a huge number
                least += (int.bit_length(number) * 3 + 7) // 10 or 1
            case float():
                least += 3
            case dict() as table:
                least += max(2, 1 + 2 * len(table))
                if least <= enough:
                    waiting.extend(table)
                    waiting.extend(table.values())
            case list() | tuple() as items:
                least += max(2, 1 + len(items))
                if least <= enough:
                    waiting.extend(items)
            case _:
                least += 1
    return least


def encodable(text: str) -> str:
    """Replace halves of characters, which no request to a model could carry."""
    if str.isascii(text):
        return str.__str__(text)
    return "".join(str.encode(piece, "utf-8", "replace").decode("utf-8") for piece in _slices(text))


def _json(value: object) -> str:
    return encodable(compact_json(value))


def _slices(text: str) -> Iterator[str]:
    return (text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))


def _batches(parts: Iterable[T]) -> Iterator[list[T]]:
    """Neighbours that make no more than a piece together; a part that is longer stands alone."""
    rest = iter(parts)
    while batch := list(islice(rest, BATCH)):
        yield from _light(batch)


def _light(batch: list[T]) -> Iterator[list[T]]:
    if len(batch) == 1 or least_chars(batch, PIECE_CHARS) <= PIECE_CHARS:
        yield batch
        return
    middle = len(batch) // 2
    yield from _light(batch[:middle])
    yield from _light(batch[middle:])


class _Encoding:
    """Makes the pieces of one result and puts the first ``most_chars`` characters together.

    Pieces of a part that is longer than one are made once, however often the part occurs: data that
    holds the same part again and again may be longer than anybody could wait for.
    """

    def __init__(self, most_chars: int, stopped: Stopped) -> None:
        self._most_chars = most_chars
        self._stopped = stopped
        self._chars = 0
        self._made: dict[int, tuple[object, list[str]]] = {}

    def whole(self, pieces: Iterable[str]) -> Whole | None:
        """Put pieces together; None if that is too much, impossible or no longer wanted.

        Asked is once for about PIECE_CHARS of text, however short its pieces are: after each time other
        threads may keep the interpreter for long.
        """
        kept, asked_at = [], 0
        try:
            for piece in pieces:
                self._chars += len(piece)
                if self._chars > MOST_CHARS:
                    return None
                if self._chars - asked_at >= PIECE_CHARS:
                    asked_at = self._chars
                    if self._stopped():
                        return None
                if self._chars <= self._most_chars:
                    kept.append(piece)
        except (TypeError, ValueError, RuntimeError):
            return None
        return Whole(self._chars, "".join(kept))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
        """The pieces of a table."""
        yield '{"columns":'
        yield from self.pieces(list(columns))
        yield ',"rows":['
        before = "\n"
        for batch in _batches(map(list, rows)):
            yield before
            if len(batch) > 1:
                yield ",\n".join(map(_json, batch))
            else:
                yield from self.pieces(batch[0])
            before = ",\n"
        yield "]}"

    def pieces(self, value: object, level: int = 0) -> Iterator[str]:
        """The pieces of any value; TypeError or ValueError for what has no text.

        Each level that is longer than a piece costs a look at what lies below, so there is a limit.
        """
        if level > MOST_LEVELS:
            raise ValueError("nested too deeply")
        if id(value) in self._made:
            yield from self._made[id(value)][1]
            return
        if least_chars(value, PIECE_CHARS) <= PIECE_CHARS:
            yield _json(value)
            return
        match value:
            case str():
                yield '"'
                yield from (_json(part)[1:-1] for part in _slices(str.__str__(value)))
                yield '"'
            case dict():
                yield from self._remembered(value, self._object(value, level + 1))
            case list() | tuple():
                yield from self._remembered(value, self._array(value, level + 1))
            case int() if int.bit_length(value) > MOST_NUMBER_BITS:
                raise ValueError("a number of too many digits")
            case _:
                yield _json(value)

    def _remembered(self, value: object, pieces: Iterator[str]) -> Iterator[str]:
        """Remember a part, which may occur again; holding on to it keeps its id from being reused."""
        made: list[str] = []
        for piece in pieces:
            made.append(piece)
            yield piece
        self._made[id(value)] = value, made

    def _object(self, value: dict[object, object], level: int) -> Iterator[str]:
        yield "{"
        before = ""
        for batch in _batches(value.items()):
            yield before
            if len(batch) > 1:
                yield _json(dict(batch))[1:-1]
            else:
                yield from self._member(*batch[0], level)
            before = ","
        yield "}"

    def _member(self, key: object, value: object, level: int) -> Iterator[str]:
        match key:
            case str():
                yield from self.pieces(key)
            case int() | float() | None:
                yield '"'
                yield from self.pieces(key)
                yield '"'
            case _:
                raise TypeError(f"a {type(key).__name__} is no key of JSON")
        yield ":"
        yield from self.pieces(value, level)

    def _array(self, value: Sequence[object], level: int) -> Iterator[str]:
        yield "["
        before = ""
        for batch in _batches(value):
            yield before
            if len(batch) > 1:
                yield _json(batch)[1:-1]
            else:
                yield from self.pieces(batch[0], level)
            before = ","
        yield "]"
