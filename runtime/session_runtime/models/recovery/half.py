"""Decides whether a text that broke off is the beginning of calls, which nobody shall see (ASK-6)."""

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final

from session_runtime.models.recovery.beginning import (
    FENCE,
    HEAD_CHARS,
    Known,
    beginning,
    is_marked,
    may_be_marked,
)
from session_runtime.models.recovery.blanks import without_around, without_before
from session_runtime.models.recovery.json_calls import (
    ARGUMENTS,
    BESIDE,
    BESIDE_CALLS,
    ENVELOPES,
    KINDS,
    NAMES,
    ROLES,
    is_plain,
    read_call,
    read_envelope,
)
from session_runtime.models.recovery.literals import PYTHON
from session_runtime.models.recovery.reading import END_TOKENS, MAX_TEXT_CHARS
from session_runtime.models.recovery.written import Cursor, NoEnvelopeError

_OF_CALL: Final = frozenset({*NAMES, *ARGUMENTS, *BESIDE})
_OF_ENVELOPE: Final = frozenset({*ENVELOPES, *BESIDE_CALLS})
_ALTERNATIVES: Final = (frozenset(NAMES), frozenset(ARGUMENTS), frozenset(ENVELOPES))
_NAME_IN_MARKS: Final = re.compile(r'(?:"name"\s*+:\s*+"|<function=|invoke name=")([^">]*+)(.?)')
_NAME_BEHIND_MARK: Final = re.compile(
    r'(?:"(?:name|function|tool)"\s*+:\s*+"|<function=|invoke name="|<tool_call>\s*+|\[TOOL_CALLS\]\s*+'
    r"|^\[\s*+(?=[\w.-]++\()|<start_function_call>call:|<\|tool_call>call:|\bto=(?:functions\.)?+"
    r"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?+|<\|tool_call_begin\|>\s*+)([\w./-]++)"
)


@dataclass(frozen=True, slots=True)
class Names:
    """Whether there is a tool of a name, and one whose name begins so."""

    known: Known
    begun: Known


_ANY: Final = Names(lambda _: True, lambda _: True)


def is_half(text: str, names: Names) -> bool:
    """Whether what is still to come could make calls of a text, which is none as it is.

    What cannot any more become an envelope, such as data with other keys, is none of them. Takes time in
    proportion to the text.
    """
    if beginning(without_before(text)[:HEAD_CHARS], names.known) == "text":
        return False  # it was told as it came
    begun = _without_half_token(without_around(text))
    if not begun or is_marked(begun) or may_be_marked(begun):
        return bool(begun)
    head = beginning(begun[:HEAD_CHARS], names.known)
    if head == "text" or (head == "undecided" and len(begun) >= HEAD_CHARS):
        return False
    if len(begun) > MAX_TEXT_CHARS:
        return False
    if begun.startswith(FENCE):
        return _in_fence(begun, names)
    if python := PYTHON.match(begun):
        return bool(python[2]) or names.begun(python[1])
    return not begun.startswith(("{", "[")) or _calls(Cursor(begun), names, fenced=False)


def names_a_tool(text: str, names: Names) -> bool:
    """Whether the first name behind the marks of a text is a tool's, or all that came of it."""
    found = _NAME_BEHIND_MARK.search(text)
    if found is None:
        return False
    return names.known(found[1]) or (found.end() == len(text) and names.begun(found[1]))


def _without_half_token(text: str) -> str:
    """A text without what may become a token of the end, unless that is all of it."""
    at = max(text.rfind("<", 1), 0)
    tail = text[at:]
    return text[:at].rstrip() if at and any(each.startswith(tail) for each in END_TOKENS) else text


def _in_fence(begun: str, names: Names) -> bool:
    """Also what says itself that it is calls needs names of tools there."""
    inside = begun.partition("\n")[2].rstrip("`").strip()
    if not inside or may_be_marked(inside):
        return True
    if is_marked(inside):
        name = _NAME_IN_MARKS.search(inside)
        if name is None:
            return True
        return names.known(name[1].strip()) if name[2] else names.begun(name[1].lstrip())
    return not inside.startswith(("{", "[")) or _calls(Cursor(inside), names, fenced=True)


def _calls(cursor: Cursor, names: Names, *, fenced: bool) -> bool:
    """An envelope, or calls one behind the other or in an array."""
    of_envelope = names if fenced else _ANY
    if cursor.takes("["):
        return _row(cursor, names, _OF_CALL, marked=False)
    first = _whole(cursor)
    if first is _BROKEN:
        return _object(cursor, names, of_envelope)
    try:
        if (calls := read_envelope(first)) is not None:
            return cursor.done and all(of_envelope.known(call.name) for call in calls)
    except NoEnvelopeError:
        return False
    return _is_call(first, names, marked=False) and _row(cursor, names, _OF_CALL, marked=False)


def _row(cursor: Cursor, names: Names, keys: Set[str], *, marked: bool) -> bool:
    """More calls, until the text breaks off."""
    while not cursor.done:
        if cursor.takes(",") or cursor.takes(";"):
            continue
        if cursor.takes("]"):
            return cursor.done
        if not cursor.sees("{"):
            return False
        value = _whole(cursor)
        if value is _BROKEN:
            return _members(cursor, names, names, keys, marked=marked)
        if not _is_call(value, names, marked=marked):
            return False
    return True


def _object(cursor: Cursor, names: Names, of_envelope: Names) -> bool:
    return _members(cursor, names, of_envelope, _OF_CALL | _OF_ENVELOPE, marked=False)


def _members(
    cursor: Cursor, names: Names, of_envelope: Names, keys: Set[str], *, marked: bool
) -> bool:
    """Whether an object that breaks off has what a call or an envelope has, as far as it goes."""
    cursor.expect("{")
    while not cursor.done:
        key = _whole(cursor) if cursor.sees('"') else ""
        if key is _BROKEN:
            return any(each.startswith(cursor.rest[1:]) for each in keys)
        if not isinstance(key, str) or key not in keys:
            return False
        keys = _beside(key, keys)
        if not cursor.takes(":") or cursor.done:
            return cursor.done
        value = _whole(cursor)
        which = of_envelope if key in ENVELOPES else names
        if value is _BROKEN:
            return _value(key, cursor, which, marked=marked)
        if not _fits(key, value, which, marked=marked):
            return False
        if not cursor.takes(","):
            return cursor.done
    return True


def _beside(key: str, keys: Set[str]) -> Set[str]:
    """The keys that may still stand beside one: of the same kind of object, and no other word for it."""
    kind = _OF_ENVELOPE if key in _OF_ENVELOPE else _OF_CALL
    alike = next((each for each in _ALTERNATIVES if key in each), {key})
    return (keys & kind) - alike


def _fits(key: str, value: object, names: Names, *, marked: bool) -> bool:
    match key:
        case "function" if isinstance(value, dict):
            return _is_call({"function": value}, names, marked=marked)
        case "name" | "function" | "tool":
            return isinstance(value, str) and names.known(value)
        case "arguments" | "parameters":
            return marked or is_plain(value)
        case "type":
            return value in KINDS
        case "role":
            return value in ROLES
        case "content":
            return not value
        case "thought":
            return isinstance(value, str)
        case "function_call":
            return _is_call(value, names, marked=True)
        case "tool_calls":
            return isinstance(value, list) and all(
                _is_call(each, names, marked=True) for each in value
            )
    return True


def _value(key: str, cursor: Cursor, names: Names, *, marked: bool) -> bool:
    """Whether a value that breaks off may be that of the key."""
    rest = cursor.rest
    match key:
        case "function" if rest.startswith("{"):
            return _members(cursor, names, names, _OF_CALL - {"function", "tool"}, marked=marked)
        case "name" | "function" | "tool":
            return rest.startswith('"') and ("\\" in rest or names.begun(rest[1:].lstrip()))
        case "arguments" | "parameters":
            return rest.startswith(("{", '"'))
        case "type":
            return any(f'"{kind}"'.startswith(rest) for kind in KINDS)
        case "role":
            return any(each.startswith(rest) for each in ("null", '"assistant"'))
        case "thought":
            return rest.startswith('"')
        case "content":
            return any(each.startswith(rest) for each in ("null", '""'))
        case "function_call":
            return rest.startswith("{") and _members(cursor, names, names, _OF_CALL, marked=True)
        case "tool_calls":
            return cursor.takes("[") and _row(cursor, names, _OF_CALL, marked=True)
    return True


def _is_call(value: object, names: Names, *, marked: bool) -> bool:
    try:
        return names.known(read_call(value, marked=marked).name)
    except NoEnvelopeError:
        return False


_BROKEN: Final = object()
"""Stands for a value of which the end is missing."""


def _whole(cursor: Cursor) -> object:
    """Pass a whole value; where there is none, the place stays."""
    try:
        return cursor.json()
    except NoEnvelopeError:
        return _BROKEN
