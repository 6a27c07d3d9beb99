"""Reads replies of mode ``json_schema``: the answer while it is written, the calls when all is there."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.models.base import OnText
from session_runtime.models.modes.answer import AnswerFinder
from session_runtime.models.modes.schema import ANSWER, CALLS
from session_runtime.models.modes.told import Written
from session_runtime.models.recovery.json_calls import read_call
from session_runtime.models.recovery.written import NoEnvelopeError
from session_runtime.wire.strict import strict_json

MAX_CALLS: Final = 1_000
_FENCED: Final = re.compile(r"\s*+```(?:json)?+\s*+(\{.*\})\s*+```\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Read:
    """A reply: its answer and its calls; ``ours`` if it was written in the form, whole or not.

    ``broke_off`` if it ended in the middle of the answer.
    """

    text: str = ""
    calls: tuple[Written, ...] = ()
    ours: bool = True
    broke_off: bool = False


def read_reply(text: str) -> Read:
    """What an object says, a code fence around it or not; a text in no such form is the answer itself.

    An answer counts as far as it came, whatever is wrong behind it, and one that is no text as its JSON;
    calls count only if all is well-formed.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        value = strict_json(text if fenced is None else fenced[1])
    except ValueError:
        return _broken(text)
    if not isinstance(value, dict) or not value.keys() & {ANSWER, CALLS}:
        return Read(text, ours=False)
    answer, calls = value.get(ANSWER), value.get(CALLS)
    listed = calls[:MAX_CALLS] if isinstance(calls, list) else list(filter(None, [calls]))
    return Read("" if answer is None else _as_text(answer), tuple(map(_call, listed)))


def _broken(text: str) -> Read:
    finder = AnswerFinder()
    answer = finder.add(text)
    return Read(answer, broke_off=finder.inside) if finder.ours else Read(text, ours=False)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _call(value: object) -> Written:
    """One call; what is none gets an empty name, so that the model is told that there is no such tool.

    What says anything beside name and arguments gets arguments that no tool takes, so that none is lost.
    """
    try:
        call = read_call(value, marked=True)
    except NoEnvelopeError:
        return _unclear(value)
    return Written(call.name, _as_text(call.arguments))


def _unclear(value: object) -> Written:
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    function = fields.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, dict) else {}
    name = fields.get("name", inner.get("name"))
    return Written(name if isinstance(name, str) else "", json.dumps([value], ensure_ascii=False))


class StreamedAnswer:
    """Tells the answer inside of a reply while it is written, and nothing of any other object.

    A text that is clearly no object is told as it comes; what is not clear is kept.
    """

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._finder = AnswerFinder()
        self._kept: list[str] = []
        self._told: list[str] = []

    def add(self, piece: str) -> None:
        """Take the next piece of the reply."""
        if self._finder.is_other:
            self._tell(piece)
            return
        self._kept.append(piece)
        answer = self._finder.add(piece)
        self._tell("".join(self._kept) if self._finder.is_other else answer)

    def end(self, read: Read) -> None:
        """The reply ended and says this: tell what of it was held back."""
        told = "".join(self._told)
        if read.text.startswith(told):
            self._tell(read.text[len(told) :])

    def _tell(self, text: str) -> None:
        if text:
            self._told.append(text)
            self._on_text(text)
