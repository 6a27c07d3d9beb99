"""Decides whether a whole text is one envelope of calls and nothing more."""

import re
from dataclasses import dataclass
from typing import Final

from session_runtime.models.recovery import json_calls
from session_runtime.models.recovery.beginning import FENCE, HEAD_CHARS, Known, beginning, is_marked
from session_runtime.models.recovery.blanks import without_around
from session_runtime.models.recovery.grammars import GRAMMARS
from session_runtime.models.recovery.literals import PYTHON, read_python
from session_runtime.models.recovery.written import (
    MAX_CALLS,
    Cursor,
    NoEnvelopeError,
    WrittenCall,
)

MAX_TEXT_CHARS: Final = 262_144
"""A longer text is never read as calls."""

END_TOKENS: Final = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "</s>",
    "<start_function_response>",
    "<|tool_response>",
    "<turn|>",
    "<eos>",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The calls of a text; with none, ``unfinished`` if it begins as they do and ends before they do."""

    calls: tuple[WrittenCall, ...] = ()
    unfinished: bool = False


_NOTHING: Final = Reading()
_SAYS_ALL: Final = re.compile(
    r'<(?:\|?tool_calls?\|?|TOOL_CALL|function_call)>\s*+\[?+\s*+\{\s*+"name"\s*+:\s*+"[\w./-]++"\s*+,'
    r'\s*+"(?:arguments|parameters)"\s*+:\s*+\{\s*+"'
)
"""A mark, a name and the beginning of arguments: nobody writes so about calls, and ends there."""


def says_all(text: str) -> bool:
    """Whether a text begins as nothing but a call does, whether or not there is a tool of the name."""
    return _SAYS_ALL.match(text) is not None


def read(text: str, known: Known, *, unclosed: bool = False) -> Reading:
    """The calls of an envelope with nothing around it but blanks, a code fence, a token of the end.

    Nothing for any other text. What does not say itself that it is a call, or stands in a fence, is one only
    if there are tools of all its names, and a Python list is none in a fence. With ``unclosed``, whole calls
    behind a mark of which only what closes them is missing are calls too. Takes time in proportion to the
    text.
    """
    begun = _without_end_token(without_around(text))
    if len(begun) > MAX_TEXT_CHARS or beginning(begun[:HEAD_CHARS], known) != "envelope":
        return _NOTHING
    inside = _unfenced(begun)
    if inside is not begun and PYTHON.match(inside) is not None:
        return _NOTHING  # a fence is where code is shown
    marked = is_marked(begun)
    cursor = Cursor(inside, unclosed=unclosed and marked)
    try:
        calls, says_so = _read_whole(inside, cursor)
    except NoEnvelopeError:
        return Reading(unfinished=inside is begun and cursor.ran_out)
    if not cursor.done:
        return Reading(unfinished=inside is begun and cursor.ran_out)
    is_meant = says_so and inside is begun and (not cursor.lacks_end or says_all(inside))
    if len(calls) > MAX_CALLS or not (is_meant or all(known(call.name) for call in calls)):
        return _NOTHING
    return Reading(tuple(calls))


def _without_end_token(text: str) -> str:
    token = next((each for each in END_TOKENS if text.endswith(each)), "")
    return text.removesuffix(token).rstrip()


def _unfenced(text: str) -> str:
    """The inside of a code fence around the whole; the same object where there is none."""
    if not text.startswith(FENCE) or not text.endswith(FENCE):
        return text
    return text.partition("\n")[2].removesuffix(FENCE).strip()


def _read_whole(text: str, cursor: Cursor) -> tuple[list[WrittenCall], bool]:
    """The calls, and whether the envelope says itself that they are calls."""
    mark = next((mark for mark in GRAMMARS if text.startswith(mark)), None)
    if mark is not None:
        return GRAMMARS[mark](cursor), True
    if PYTHON.match(text) is not None:
        return read_python(cursor), False
    begin = cursor.place
    calls = json_calls.read_envelope(cursor.json())
    if calls is not None:
        return calls, True
    cursor.look_again(begin)
    return json_calls.read_calls(cursor, marked=False), False
