"""Decides whether a whole text is one envelope of calls and nothing more."""

from typing import Final

from session_runtime.models.recovery import json_calls
from session_runtime.models.recovery.beginning import FENCE, HEAD_CHARS, Known, beginning
from session_runtime.models.recovery.grammars import GRAMMARS
from session_runtime.models.recovery.written import (
    MAX_CALLS,
    Cursor,
    NoEnvelopeError,
    WrittenCall,
)

MAX_TEXT_CHARS: Final = 262_144
"""A longer text is never read as calls."""

END_TOKENS: Final = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "</s>")


def read(text: str, known: Known) -> tuple[WrittenCall, ...]:
    """The calls of an envelope with nothing around it but blanks, a code fence, a token of the end.

    Nothing for any other text. What does not say itself that it is a call, or stands in a fence, is one only
    if there are tools of all its names. Takes time in proportion to the text.
    """
    begun = _without_end_token(text.strip())
    if len(begun) > MAX_TEXT_CHARS or beginning(begun[:HEAD_CHARS], known) != "envelope":
        return ()
    inside = _unfenced(begun)
    cursor = Cursor(inside)
    try:
        calls, says_so = _read_whole(inside, cursor)
    except NoEnvelopeError:
        return ()
    if not cursor.done or len(calls) > MAX_CALLS:
        return ()
    is_meant = (says_so and inside is begun) or all(known(call.name) for call in calls)
    return tuple(calls) if is_meant else ()


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
    begin = cursor.place
    calls = json_calls.read_envelope(cursor.json())
    if calls is not None:
        return calls, True
    cursor.look_again(begin)
    return json_calls.read_calls(cursor, marked=False), False
