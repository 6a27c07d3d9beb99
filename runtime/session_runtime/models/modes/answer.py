"""Finds the answer in an object of mode ``json_schema`` while it is written, wherever in it that stands."""

import json
import re
from collections.abc import Callable
from typing import Final

from session_runtime.models.modes.schema import ANSWER, CALLS

MOST_KEY_CHARS: Final = 256
"""A longer key, or a longer beginning, is not waited for."""

_BEGIN: Final = re.compile(r"\s*+(?:```(?:json)?+\s*+)?+\{")
_KEY: Final = re.compile(r'[\s,]*+"((?:[^"\\]++|\\.)*+)"\s*+:\s*+(?=\S)', re.DOTALL)
_PLAIN: Final = re.compile(r'[^"\[\]{},]*+')
_IN_STRING: Final = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_HIGH: Final = "u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = "u[dD][c-fC-F][0-9a-fA-F]{2}"
_READY: Final = re.compile(
    rf'(?:[^"\\]++|\\[^u]|\\{_HIGH}\\{_LOW}|\\(?!{_HIGH})u[0-9a-fA-F]{{4}}'
    rf"|\\{_HIGH}(?=[^\\]|\\[^u]|\\u[^dD]|\\u.[^c-fC-F])|\\u(?=[0-9a-fA-F]{{0,3}}[^0-9a-fA-F]))*+",
    re.DOTALL,
)
"""What of the inside of a JSON text can be told already: no half of an escape, none of a pair."""

_ESCAPE: Final = re.compile(rf"\\(?:{_HIGH}\\{_LOW}|u[0-9a-fA-F]{{4}}|.)", re.DOTALL)
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ITSELF: Final = frozenset('"\\/')


class AnswerFinder:
    """Takes a reply piece by piece and gives what is certain of its answer; it looks into nothing else.

    Of several answers the first counts. ``is_other`` says that the reply is clearly no object.
    """

    def __init__(self) -> None:
        self.is_other = False
        self._has_key = False
        self._answered = False
        self._kept = ""
        self._depth = 0
        self._in_string = False
        self._told: list[str] = []
        self._step: Callable[[str], str | None] = self._opening

    @property
    def ours(self) -> bool:
        """Whether the object has a key of the form, or broke off where one may have begun."""
        return self._has_key or (self._step == self._key and self._may_be_key())

    @property
    def inside(self) -> bool:
        """Whether what came last is a part of the answer, which goes on."""
        return self._step == self._answer

    def add(self, piece: str) -> str:
        """Take the next piece of the reply; returns the piece of the answer that is certain now."""
        self._told = []
        rest: str | None = self._kept + piece
        self._kept = ""
        while rest:
            rest = self._step(rest)
        return "".join(self._told)

    def _opening(self, text: str) -> str | None:
        found = _BEGIN.match(text)
        if found is not None:
            self._step = self._key
            return text[found.end() :]
        begun = text.lstrip()
        if (begun and not begun.startswith("`")) or len(text) > MOST_KEY_CHARS:
            self.is_other, self._step = True, _pass
            return None
        self._kept = text
        return None

    def _key(self, text: str) -> str | None:
        found = _KEY.match(text)
        if found is None:
            self._kept = text
            if len(text) > MOST_KEY_CHARS:
                self._kept, self._step = "", _pass
            return None
        key = decoded(found[1])
        self._has_key = self._has_key or key in (ANSWER, CALLS)
        value = text[found.end() :]
        if key == ANSWER and value.startswith('"') and not self._answered:
            self._answered = True
            self._step = self._answer
            return value[1:]
        self._depth, self._in_string, self._step = 0, False, self._skip
        return value

    def _answer(self, text: str) -> str | None:
        ready = _READY.match(text)
        end = ready.end() if ready else 0
        self._told.append(decoded(text[:end]))
        if not text.startswith('"', end):
            self._kept = text[end:]
            return None
        self._depth, self._in_string, self._step = 0, False, self._skip
        return text[end + 1 :]

    def _skip(self, text: str) -> str | None:
        """Pass a value, and what stands behind it up to the next key."""
        at = 0
        while True:
            inside = _IN_STRING if self._in_string else _PLAIN
            found = inside.match(text, at)
            at = found.end() if found else at
            if at == len(text):
                return None
            mark, at = text[at], at + 1
            if mark == "\\":
                self._kept = mark  # what it escapes is still to come
                return None
            if mark == '"':
                self._in_string = not self._in_string
            elif mark in "[{":
                self._depth += 1
            elif mark in "]}":
                self._depth -= 1
                if self._depth < 0:
                    self._step = _pass
                    return None
            elif not self._depth:
                self._step = self._key
                return text[at:]

    def _may_be_key(self) -> bool:
        begun = self._kept.lstrip(" \t\r\n,")
        return any(f'"{key}":'.startswith("".join(begun.split())) for key in (ANSWER, CALLS))


def decoded(piece: str) -> str:
    """The text that JSON writes so; an escape that JSON does not have stays as it is."""
    return _ESCAPE.sub(_unescaped, piece)


def _unescaped(escape: re.Match[str]) -> str:
    marked = escape[0][1:]
    if len(marked) == 1:
        return marked if marked in _ITSELF else _SHORT.get(marked, escape[0])
    found = str(json.loads(f'"{escape[0]}"'))
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _pass(text: str) -> None:
    """What stands behind the object, or is none, has no answer."""
    del text
