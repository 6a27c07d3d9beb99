"""Reads JSON of any size and depth in slices, so that a thread that does it lets the others go on.

Public: ``read_json``, ``TooMuch``, ``MAX_DEPTH``, ``TOO_DEEP``. The parser of the standard library holds the
interpreter for as long as the whole text takes; here it gets a window at a time. Which texts need a thread
is decided in ``stdio``.
"""

import json
import re
from json.scanner import make_scanner
from typing import Any, Final, NoReturn, TypeAlias, cast

from session_runtime.wire import well_formed

_Container: TypeAlias = dict[str, Any] | list[Any]

MAX_DEPTH: Final = 200
TOO_DEEP: Final = "[nested too deep]"

_MAX_OPEN: Final = 4_000
_MAX_COMMAS: Final = 1_500_000
_WINDOW_CHARS: Final = 96 * 1024
_LEAST_CHARS: Final = 32 * 1024
_STEPS: Final = 500
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_BLANK: Final = (" ", "\t", "\n", "\r")
_PIECE: Final = re.compile(r'(?:[^"\\\x00-\x1f]+|\\(?:u[0-9a-fA-F]{4}|[^u]))+', re.DOTALL)
_HALVES: Final = re.compile(r"\\u[dD][89a-fA-F]")


class TooMuch(ValueError):
    """The text has more values, or is nested deeper, than is kept in memory for it."""


def read_json(text: str) -> Any:
    """Give the value that the text is, which can be encoded again, and walked through by recursion.

    NaN and infinities become None, lone halves of surrogate pairs U+FFFD, and what is nested deeper than
    MAX_DEPTH becomes TOO_DEEP. Raises TooMuch (a ValueError), or ValueError if it is no JSON.
    """
    value = _read(text)
    return _tidied(value, 0) if _HALVES.search(text) else value


def _read(text: str) -> Any:
    if len(text) <= _LEAST_CHARS:
        try:
            value = json.loads(text, parse_constant=_nothing)
        except RecursionError:
            pass
        else:
            return _tidied(value, 0) if _may_be_deep(text, 0, len(text), 0) else value
    return _Reader(text).whole()


def _may_be_deep(text: str, start: int, end: int, depth: int) -> bool:
    return depth + text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH


def _tidied(value: Any, depth: int) -> Any:
    """The value with well formed strings and cut where it is too deep; itself stands at this depth."""
    root = [value]
    waiting: list[tuple[_Container, int]] = [(root, depth)]
    while waiting:
        container, depth = waiting.pop()
        if isinstance(container, dict):
            for key, item in container.items():
                container[key] = _part(item, depth, waiting)
        else:
            container[:] = [_part(item, depth, waiting) for item in container]
    return root[0]


def _part(item: Any, depth: int, waiting: list[tuple[_Container, int]]) -> Any:
    match item:
        case str() if not item.isascii():
            return well_formed(item)
        case dict() | list() if depth >= MAX_DEPTH:
            return TOO_DEEP
        case dict() | list():
            waiting.append((item, depth + 1))
    return item


class _Reader:
    """One pass over one text; ``_at`` is where it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._window = ""
        self._base = 0
        self._commas = 0
        self._depth = 0
        self._steps = 0  # levels to go down without trying: the last try went too deep
        self._scan: Final = make_scanner(cast(Any, json.JSONDecoder(parse_constant=_nothing)))

    def whole(self) -> Any:
        """The value of the text: in one go what is small, else part by part, with a stack of its own."""
        root: list[Any] = []
        around: list[tuple[_Container, str]] = []  # what is open, and the key that it goes under
        container: _Container = root
        key = ""
        while True:
            self._depth = len(around)
            value, is_open = self._value()
            if is_open:
                around.append((container, key))
                container = value
                goes_on = not self._closes(container)
            else:
                _put(container, key, value)
                goes_on = bool(around) and self._goes_on(container)
            while around and not goes_on:
                value = container if len(around) <= MAX_DEPTH else TOO_DEEP
                container, key = around.pop()
                _put(container, key, value)
                goes_on = bool(around) and self._goes_on(container)
            if not around:
                break
            key = self._key() if isinstance(container, dict) else ""
        if self._next():
            self._fail("nothing more")
        return root[0]

    def _value(self) -> tuple[Any, bool]:
        """The next value; or, of one that is large, an empty container, and True."""
        first = self._next()
        if self._steps and first in ("[", "{"):
            self._steps -= 1
            return self._large(first)
        start = self._in_window()
        try:
            value, end = self._scan(self._window, start)
        except RecursionError:
            self._steps = _STEPS
            return self._large(first)
        except (StopIteration, ValueError):
            if self._base + len(self._window) == len(self._text):
                self._fail("the rest of a value")  # no more text would help
            return self._large(first)
        if end == len(self._window) < len(self._text) - self._base and first not in '[{"':
            self._fail("the end of a number")
        self._commas += self._window.count(",", start, end)
        if self._commas > _MAX_COMMAS:
            raise TooMuch(f"it holds more than {_MAX_COMMAS} values")
        if _may_be_deep(self._window, start, end, self._depth):
            value = _tidied(value, self._depth)
        self._at = self._base + end
        return value, False

    def _large(self, first: str) -> tuple[Any, bool]:
        """What does not fit into the window, or is not right there."""
        match first:
            case "{" | "[" if self._depth >= _MAX_OPEN:
                raise TooMuch(f"it is nested more than {_MAX_OPEN} levels deep")
            case "{" | "[":
                self._at += 1
                return ({} if first == "{" else []), True
            case '"':
                return self._string(), False
            case _:
                self._fail("a value")

    def _string(self) -> str:
        """A long string, piece by piece."""
        self._at += 1
        pieces: list[str] = []
        while found := _PIECE.match(self._text, self._at, self._at + _WINDOW_CHARS):
            piece = found[0]
            pieces.append(json.loads(f'"{piece}"') if "\\" in piece else piece)
            self._at = found.end()
        if self._text[self._at : self._at + 1] != '"':
            self._fail('the end of a string, which is "')
        self._at += 1
        return "".join(pieces)

    def _key(self) -> str:
        if self._next() != '"':
            self._fail('a name in "')
        name, _ = self._value()
        if self._next() != ":":
            self._fail("a colon")
        self._at += 1
        return str(name)

    def _closes(self, container: _Container) -> bool:
        """Go past the end of the container if that is what comes."""
        if self._next() != ("}" if isinstance(container, dict) else "]"):
            return False
        self._at += 1
        return True

    def _goes_on(self, container: _Container) -> bool:
        """Go past what stands behind a value: True for a comma, False for the end of the container."""
        if self._closes(container):
            return False
        if self._next() != ",":
            self._fail("a comma")
        self._at += 1
        return True

    def _next(self) -> str:
        """Skip blanks and give the character after them, which may be ``""``."""
        char = self._text[self._at : self._at + 1]
        if char in _BLANK:
            blanks = _BLANKS.match(self._text, self._at)
            assert blanks is not None
            self._at = blanks.end()
            char = self._text[self._at : self._at + 1]
        return char

    def _in_window(self) -> int:
        """Have enough text from here on in the window, and give where in it we are."""
        if self._at + _LEAST_CHARS > self._base + len(self._window):
            self._base = self._at
            self._window = self._text[self._at : self._at + _WINDOW_CHARS]
        return self._at - self._base

    def _fail(self, wanted: str) -> NoReturn:
        raise ValueError(f"{wanted} is missing at character {self._at}")


def _put(container: _Container, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    else:
        container.append(value)


def _nothing(_: str) -> None:
    return None
