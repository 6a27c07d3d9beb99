"""Decides whether a whole text is one envelope of calls, and from its beginning whether it may become one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from session_runtime.models.recovery import json_calls, tags, tokens
from session_runtime.models.recovery.written import (
    MAX_CALLS,
    Cursor,
    NoEnvelopeError,
    WrittenCall,
)

MAX_TEXT_CHARS: Final = 262_144
"""A longer text is never read as calls."""

HEAD_CHARS: Final = 256
"""By so many characters an envelope shows that it is one."""

Beginning = Literal["text", "undecided", "envelope"]
Grammar = Callable[[Cursor], list[WrittenCall]]

_FENCE: Final = "```"
_FENCED_AS: Final = frozenset({"", "json", "xml", "tool_call", "tool_calls", "text", "plaintext"})
_NAMESPACES: Final = ("", "antml:")
_AROUND_INVOKES: Final = (
    ("function_calls", ""),
    ("antml:function_calls", "antml:"),
    ("minimax:tool_call", ""),
)
_JSON_MARKS: Final = (
    ("<tool_calls>", "</tool_calls>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|action_start|><|plugin|>", "<|action_end|>"),
    ("<|python_tag|>", ""),
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The calls of a text; ``marked`` if it says itself that they are calls, as no data does."""

    calls: tuple[WrittenCall, ...]
    marked: bool


def read(text: str) -> Envelope | None:
    """The calls of a text that is an envelope and nothing more, blanks and one code fence aside.

    Takes time in proportion to the text. None for anything else.
    """
    begun = text.strip()
    if len(begun) > MAX_TEXT_CHARS or beginning(begun[:HEAD_CHARS]) != "envelope":
        return None
    inside = _unfenced(begun)
    cursor = Cursor(inside)
    try:
        calls, says_so = _read_whole(inside, cursor)
    except NoEnvelopeError:
        return None
    if not cursor.done or not 0 < len(calls) <= MAX_CALLS:
        return None
    return Envelope(tuple(calls), marked=says_so and inside is begun)


def breaks_off(text: str) -> bool:
    """Whether a text of which the end is missing begins with the mark of an envelope."""
    begun = text.lstrip()
    return any(begun.startswith(mark) for mark in _GRAMMARS)


def beginning(text: str) -> Beginning:
    """What a text may become that begins like this, blanks at its very beginning aside."""
    if text.startswith(_FENCE):
        language, line_end, rest = text[len(_FENCE) :].partition("\n")
        if not line_end:
            may_be = any(each.startswith(language.strip()) for each in _FENCED_AS)
            return "undecided" if may_be else "text"
        return beginning(rest.lstrip()) if language.strip() in _FENCED_AS else "text"
    if text[:1] in ("", "`"):
        return "undecided" if _FENCE.startswith(text) else "text"
    if any(text.startswith(mark) for mark in _GRAMMARS):
        return "envelope"
    if any(mark.startswith(text) for mark in _GRAMMARS):
        return "undecided"
    return _json_beginning(text)


def _json_beginning(text: str) -> Beginning:
    """An array may begin before the first object; the first key says whether it may be a call."""
    inside = text.lstrip("[ \t\r\n")
    if not text.startswith(("[", "{")):
        return "text"
    if not inside:
        return "undecided"
    if not inside.startswith("{"):
        return "text"
    key = inside[1:].lstrip()
    if not key:
        return "undecided"
    if not key.startswith('"'):
        return "text"
    if any(key.startswith(f'"{each}"') for each in json_calls.FIRST_KEYS):
        return "envelope"
    return "undecided" if any(f'"{k}"'.startswith(key) for k in json_calls.FIRST_KEYS) else "text"


def _unfenced(text: str) -> str:
    """The inside of a code fence around the whole; the same object where there is none."""
    if not text.startswith(_FENCE) or not text.endswith(_FENCE):
        return text
    return text.partition("\n")[2].removesuffix(_FENCE).strip()


def _read_whole(text: str, cursor: Cursor) -> tuple[list[WrittenCall], bool]:
    """The calls, and whether the envelope says itself that they are calls."""
    marks = [mark for mark in _GRAMMARS if text.startswith(mark)]
    if marks:
        return _GRAMMARS[max(marks, key=len)](cursor), True
    begin = cursor.place
    calls = json_calls.read_envelope(cursor.json())
    if calls is not None:
        return calls, True
    cursor.look_again(begin)
    return json_calls.read_calls(cursor, marked=False), False


def _grammars() -> Mapping[str, Grammar]:
    """By the mark that an envelope begins with."""
    grammars: dict[str, Grammar] = {
        tags.TOOL_CALL: tags.read_tool_calls,
        tags.FUNCTION: tags.read_functions,
        tokens.MISTRAL: tokens.read_mistral,
        tokens.DEEPSEEK: tokens.read_deepseek,
        tokens.KIMI: tokens.read_kimi,
    }
    for opening, closing in _JSON_MARKS:
        grammars[opening] = partial(tags.read_marked_json, opening=opening, closing=closing)
    for namespace in _NAMESPACES:
        grammars[f'<{namespace}invoke name="'] = partial(tags.read_invokes, namespace=namespace)
    for wrapper, namespace in _AROUND_INVOKES:
        grammar = partial(tags.read_wrapped_invokes, wrapper=wrapper, namespace=namespace)
        grammars[f"<{wrapper}>"] = grammar
    return MappingProxyType(grammars)


_GRAMMARS: Final = _grammars()
