"""Calls whose values are literals of a language and no JSON: Python (Llama, Gemma), FunctionGemma."""

import json
import re
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Final

from session_runtime.models.recovery.written import (
    MAX_CALLS,
    Cursor,
    NoEnvelopeError,
    WrittenCall,
)

PYTHON: Final = re.compile(r"\[\s*+([A-Za-z_][\w.-]*+)(\(?)")
"""How a list of calls in Python begins: the name of the first, and whether it is whole."""

_MAX_DEPTH: Final = 32
_STRING: Final = re.compile(r""" "(?:[^"\\\n]++|\\.)*+" | '(?:[^'\\\n]++|\\.)*+' """, re.VERBOSE)
_HALF_STRING: Final = re.compile(
    r""" "(?:[^"\\\n]++|\\.)*+\\?\Z | '(?:[^'\\\n]++|\\.)*+\\?\Z """, re.VERBOSE
)
_KEY: Final = re.compile(r"[\w.-]++")
_NUMBER: Final = re.compile(r"-?+(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][+-]?+\d++)?+(?![\w.])")
_MAX_DIGITS: Final = 400
_ESCAPE: Final = re.compile(r"""\\(?:([\\'"])|([nrtbf/])|u([0-9a-fA-F]{4}))|\\""")
_SIGNS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "/": "/"}


@dataclass(frozen=True, slots=True)
class _Notation:
    """How values are written: what stands around a text ("" for quotes), and the words.

    With marks around texts the keys of objects are bare.
    """

    quote: str
    words: tuple[tuple[str, Any], ...]


_JSON_WORDS: Final = (("true", True), ("false", False), ("null", None))
_OF_PYTHON: Final = _Notation("", (("True", True), ("False", False), ("None", None), *_JSON_WORDS))


def read_python(cursor: Cursor) -> list[WrittenCall]:
    """``[name(key="value"), name()]``: one list of calls with values for named parameters."""
    cursor.expect("[")
    calls = [_python_call(cursor)]
    while cursor.takes(",") and len(calls) <= MAX_CALLS:
        calls.append(_python_call(cursor))
    cursor.expect("]")
    return calls


def read_gemma(cursor: Cursor, opening: str, closing: str, quote: str) -> list[WrittenCall]:
    """``call:name{key:value}`` between its marks, once or several times in a row."""
    notation = _Notation(quote, _JSON_WORDS)
    calls: list[WrittenCall] = []
    while cursor.takes(opening):
        cursor.expect("call:")
        name = cursor.word()
        if not cursor.sees("{"):
            raise NoEnvelopeError
        calls.append(WrittenCall(name, _written(_value(cursor, notation, 0))))
        cursor.close(closing)
    return calls


def _python_call(cursor: Cursor) -> WrittenCall:
    name = cursor.word()
    cursor.expect("(")
    values: dict[str, Any] = {}
    while not cursor.takes(")"):
        key = cursor.word()
        cursor.expect("=")
        _put(values, key, _value(cursor, _OF_PYTHON, 0))
        if not cursor.takes(","):
            cursor.expect(")")
            break
    return WrittenCall(name, _written(values))


def _value(cursor: Cursor, notation: _Notation, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise NoEnvelopeError
    if cursor.takes("["):
        return _items(cursor, notation, depth)
    if cursor.takes("{"):
        return _members(cursor, notation, depth)
    if (text := _text(cursor, notation)) is not None:
        return text
    if (digits := cursor.match(_NUMBER)) is not None:
        return _number(digits)
    for word, value in notation.words:
        if cursor.takes(word):
            return value
    raise NoEnvelopeError


def _number(digits: str) -> int | float:
    value = float(digits) if len(digits) <= _MAX_DIGITS else inf
    if not isfinite(value):
        raise NoEnvelopeError
    return int(digits) if digits.lstrip("-").isdigit() else value


def _items(cursor: Cursor, notation: _Notation, depth: int) -> list[Any]:
    found: list[Any] = []
    while not cursor.takes("]"):
        found.append(_value(cursor, notation, depth + 1))
        if not cursor.takes(","):
            cursor.expect("]")
            break
    return found


def _members(cursor: Cursor, notation: _Notation, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while not cursor.takes("}"):
        key = _text(cursor, notation)
        if key is None and notation.quote:
            key = cursor.match(_KEY)
        if key is None:
            raise NoEnvelopeError
        cursor.expect(":")
        _put(found, key, _value(cursor, notation, depth + 1))
        if not cursor.takes(","):
            cursor.expect("}")
            break
    return found


def _text(cursor: Cursor, notation: _Notation) -> str | None:
    if notation.quote:
        return cursor.before(notation.quote) if cursor.takes(notation.quote) else None
    literal = cursor.match(_STRING)
    if literal is None and cursor.match(_HALF_STRING) is not None:
        cursor.expect('"')  # of which the text has run out
    return None if literal is None else _joined(_ESCAPE.sub(_unescaped, literal[1:-1]))


def _joined(text: str) -> str:
    """The two halves of a character as one."""
    return (
        text
        if text.isascii()
        else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def _unescaped(escape: re.Match[str]) -> str:
    itself, sign, code = escape.groups()
    if code is not None:
        return chr(int(code, 16))
    return itself or _SIGNS.get(sign or "", "\\")


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    if key in values:
        raise NoEnvelopeError
    values[key] = value


def _written(values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)
