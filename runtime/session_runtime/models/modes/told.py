"""Writes a request without tools that tells of them in its system text, byte for byte the same (TS-11).

How an answer and its calls are written is the ``Form``'s.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Protocol

from session_runtime.models.base import ModelRequest
from session_runtime.models.content import plain_text
from session_runtime.models.http_body import readable_arguments, sent_schema, to_json
from session_runtime.models.memo import SpecMemo
from session_runtime.registry.deprecation import Shown, described, shown
from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Content, ImagePart, Message, TextPart

_RESULT_END: Final = re.compile(r"<(?=/\s*tool_response)", re.IGNORECASE)
_RESULT: Final = '<tool_response name="{name}">\n{text}\n</tool_response>'


@dataclass(frozen=True, slots=True)
class Written:
    """A call as a model reads it: the wire name of the tool and its arguments as JSON."""

    name: str
    arguments: str


class Form(Protocol):
    """How a model is to write; both are called for every turn and must always say the same."""

    def rules(self) -> str:
        """What the model is told about it, before the list of tools."""

    def answer(self, text: str, calls: Sequence[Written]) -> str:
        """How an earlier answer is shown to it."""


class ToolLines:
    """Each tool as a line of JSON, made once per generation."""

    def __init__(self) -> None:
        self._lines: SpecMemo[Shown, str] = SpecMemo(_line)

    def of(self, request: ModelRequest) -> Iterator[str]:
        """The lines of the tools of one turn, in their order."""
        return (self._lines.get(spec, shown(spec, request.names)) for spec in request.tools)


def told(request: ModelRequest, form: Form, lines: Iterable[str]) -> tuple[Message, ...]:
    """The conversation for a service that knows no tools.

    One system message holds what stood in those at the beginning, the rules and, at its end, the tools, so
    that a longer list begins with the bytes of the shorter one. Results are messages of a user.
    """
    messages = request.messages
    start = next((at for at, each in enumerate(messages) if each.role != "system"), len(messages))
    texts = [plain_text(each.content) for each in messages[:start]]
    if request.tools:
        texts.append("\n".join((form.rules(), *lines)))
    opening = "\n\n".join(text for text in texts if text.strip())
    rest = _conversation(messages[start:], form, request.names)
    return (*([Message("system", opening)] if opening else []), *rest)


def _conversation(messages: Sequence[Message], form: Form, names: WireNames) -> Iterator[Message]:
    called: dict[str, str] = {}
    for role, group in groupby(messages, key=lambda each: each.role):
        if role == "tool":
            yield Message("user", _results(tuple(group), called))
            continue
        for message in group:
            called |= {call.id: names.encode(call.name) for call in message.tool_calls}
            yield _answer(message, form, names) if role == "assistant" else message


def _answer(message: Message, form: Form, names: WireNames) -> Message:
    text, calls = plain_text(message.content), message.tool_calls
    if not text and not calls:
        return message
    written = [
        Written(names.encode(call.name), readable_arguments(call.arguments)) for call in calls
    ]
    return replace(message, content=form.answer(text, written), tool_calls=())


def _results(messages: Sequence[Message], called: Mapping[str, str]) -> Content:
    """The results of one turn in the order of its calls, with their images behind them."""
    blocks = [
        _RESULT.format(
            name=called.get(each.tool_call_id or "", "unknown"),
            text=_RESULT_END.sub("<\\\\", plain_text(each.content)),
        )
        for each in messages
    ]
    text = "\n".join(blocks)
    images = [
        part
        for each in messages
        if isinstance(each.content, tuple)
        for part in each.content
        if isinstance(part, ImagePart)
    ]
    return (TextPart(text), *images) if images else text


def _line(spec: ToolSpec, as_shown: Shown) -> str:
    tool = {
        "name": as_shown.name,
        "description": described(spec, as_shown.instead),
        "parameters": sent_schema(spec.parameters),
    }
    return to_json(tool).decode()
