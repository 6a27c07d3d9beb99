"""Reads replies of mode ``json_schema``: the answer while it is written, the calls when all is there."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.models.base import OnText
from session_runtime.models.modes.schema import ANSWER, CALLS
from session_runtime.models.modes.told import Written
from session_runtime.wire.strict import strict_json

MAX_CALLS: Final = 1_000
SURE_CHARS: Final = 256
"""By so many characters a reply shows whether it is an answer."""

_FENCE: Final = r"\s*+(?:```(?:json)?+\s*+)?+"
_ANSWER: Final = re.compile(rf'{_FENCE}\{{\s*+"{ANSWER}"\s*+:\s*+"')
_OBJECT: Final = re.compile(rf'{_FENCE}\{{\s*+(?:"(?:{ANSWER}|{CALLS})"|\Z)')
_FENCED: Final = re.compile(r"\s*+```(?:json)?+\s*+(\{.*\})\s*+```\s*", re.DOTALL)
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
_PLAIN: Final = frozenset('"\\/')


@dataclass(frozen=True, slots=True)
class Read:
    """A reply: its answer and its calls; ``ours`` if it was written in the form, whole or not."""

    text: str = ""
    calls: tuple[Written, ...] = ()
    ours: bool = True


def read_reply(text: str) -> Read:
    """What an object says, a code fence around it or not; a text in no such form is the answer itself.

    An answer counts as far as it came, whatever is wrong behind it; calls only if all is well-formed.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        value = strict_json(text if fenced is None else fenced[1])
    except ValueError:
        return _broken(text)
    if not isinstance(value, dict) or not value.keys() & {ANSWER, CALLS}:
        return Read(text, ours=False)
    answer, calls = value.get(ANSWER), value.get(CALLS)
    listed = calls[:MAX_CALLS] if isinstance(calls, list) else []
    return Read(answer if isinstance(answer, str) else "", tuple(map(_call, listed)))


def _broken(text: str) -> Read:
    if head := _ANSWER.match(text):
        return Read(_decoded(_ready(text, head.end())))
    return Read() if _OBJECT.match(text) else Read(text, ours=False)


def _call(value: object) -> Written:
    """One call; what is none gets an empty name, so that the model is told that there is no such tool."""
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    name, given = fields.get("name"), fields.get("arguments")
    written = "" if given is None else given
    if not isinstance(written, str):
        written = json.dumps(written, ensure_ascii=False)
    return Written(name if isinstance(name, str) else "", written)


def _ready(text: str, begin: int) -> str:
    found = _READY.match(text, begin)
    return found[0] if found else ""


def _decoded(piece: str) -> str:
    """The text that JSON writes so; an escape that JSON does not have stays as it is."""
    return _ESCAPE.sub(_unescaped, piece)


def _unescaped(escape: re.Match[str]) -> str:
    marked = escape[0][1:]
    if len(marked) == 1:
        return marked if marked in _PLAIN else _SHORT.get(marked, escape[0])
    decoded = str(json.loads(f'"{escape[0]}"'))
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class StreamedAnswer:
    """Tells the answer inside of a reply while it is written, and nothing of any other object.

    A text that is clearly no object in this form is told as it comes; what is not clear is kept.
    """

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._kept = ""
        self._pieces: list[str] = []
        self._step: Callable[[str], None] = self._opening

    def add(self, piece: str) -> None:
        """Take the next piece of the reply."""
        self._step(piece)

    def release(self) -> None:
        """The reply is no object in this form: tell what was held back of it."""
        if held := "".join(self._pieces) + self._kept:
            self._on_text(held)
        self._pieces, self._kept = [], ""

    def _opening(self, piece: str) -> None:
        """Until it is clear that an answer has begun, or what it is instead."""
        self._kept += piece
        head = _ANSWER.match(self._kept)
        if head is not None:
            inside, self._kept, self._step = self._kept[head.end() :], "", self._inside
            self._inside(inside)
        elif (begun := self._kept.lstrip()) and not begun.startswith(("{", "`")):
            held, self._kept, self._step = self._kept, "", self._on_text
            self._on_text(held)
        elif len(self._kept) >= SURE_CHARS:
            self._pieces, self._kept, self._step = [self._kept], "", self._hold

    def _inside(self, piece: str) -> None:
        kept = self._kept + piece
        ready = _ready(kept, 0)
        if ready:
            self._on_text(_decoded(ready))
        self._kept = kept[len(ready) :]
        if self._kept.startswith('"'):
            self._kept, self._step = "", _drop

    def _hold(self, piece: str) -> None:
        self._pieces.append(piece)


def _drop(piece: str) -> None:
    """What stands behind an answer is not told."""
    del piece
