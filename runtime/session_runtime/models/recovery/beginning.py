"""Decides from the beginning of a text whether it may become an envelope of calls."""

from collections.abc import Callable
from typing import Final, Literal

from session_runtime.models.recovery.grammars import GRAMMARS
from session_runtime.models.recovery.json_calls import FIRST_KEYS, NAMES
from session_runtime.models.recovery.literals import PYTHON

HEAD_CHARS: Final = 256
"""By so many characters an envelope shows that it is one."""

FENCE: Final = "```"
_FENCED_AS: Final = frozenset({"", "json", "xml", "tool_call", "tool_calls", "text", "plaintext"})

Beginning = Literal["text", "undecided", "envelope"]
Known = Callable[[str], bool]
"""Whether there is a tool of a name as it was written."""


def beginning(head: str, known: Known) -> Beginning:
    """What a text may become that begins like this, without blanks before it."""
    if head.startswith(FENCE):
        language, line_end, inside = head[len(FENCE) :].partition("\n")
        if line_end:
            return beginning(inside.lstrip(), known) if language.strip() in _FENCED_AS else "text"
        return _undecided_if(any(each.startswith(language.strip()) for each in _FENCED_AS))
    if is_marked(head):
        return "envelope"
    if FENCE.startswith(head) or may_be_marked(head):
        return "undecided"
    if python := PYTHON.match(head):
        name, is_call = python.groups()
        if is_call:
            return "envelope" if known(name) else "text"
        return _undecided_if(python.end() == len(head))
    return _of_json(head.lstrip("[ \t\r\n"), known) if head.startswith(("[", "{")) else "text"


def is_marked(text: str) -> bool:
    """Whether a text begins with a mark that says that calls follow."""
    return any(text.startswith(mark) for mark in GRAMMARS)


def may_be_marked(text: str) -> bool:
    """Whether a text is the beginning of such a mark, or a whole one."""
    return any(mark.startswith(text) for mark in GRAMMARS)


def _of_json(text: str, known: Known) -> Beginning:
    """The first key of the first object says whether that may be a call."""
    if not text.startswith("{"):
        return _undecided_if(not text)
    key = text[1:].lstrip()
    name, closed, rest = key[1:].partition('"')
    if key and not key.startswith('"'):
        return "text"
    if not closed:
        return _undecided_if(any(each.startswith(name) for each in FIRST_KEYS))
    if name not in FIRST_KEYS:
        return "text"
    return _of_name(rest.lstrip(), known) if name in NAMES else "envelope"


def _of_name(text: str, known: Known) -> Beginning:
    """Behind the key of a name stands that of a tool, or a function as an object."""
    if not text.startswith(":"):
        return _undecided_if(not text)
    value = text[1:].lstrip()
    if value.startswith("{"):
        return "envelope"
    name, closed, _ = value[1:].partition('"')
    if not closed:
        return _undecided_if(value[:1] in ("", '"'))
    if not value.startswith('"'):
        return "text"
    return "envelope" if "\\" in name or known(name) else "text"


def _undecided_if(condition: bool) -> Beginning:
    return "undecided" if condition else "text"
