"""How long requests, events and results are, in characters, more or less; what is too long others decide."""

from collections.abc import Iterable, Mapping
from typing import Final

from session_runtime.direct import DirectCall
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    ConfirmationRequired,
    Content,
    ImagePart,
    Message,
    MessageSent,
    Notice,
    TextDelta,
    ToolCall,
    ToolStarted,
    TurnStarted,
)

FRAME_CHARS: Final = 200
"""What an event or a message takes besides its texts."""

VALUE_CHARS: Final = 72
"""What each value of JSON takes besides its text: in memory, an empty object and what leads to it."""

_PLAIN: Final = (str, int, float, type(None))
_HOLDERS: Final = (dict, list, tuple, Mapping)


def chars_of_messages(messages: Iterable[Message]) -> int:
    """How long messages are, in characters: texts, images, calls, and what else came with them."""
    return sum(
        FRAME_CHARS
        + _chars_of_content(message.content)
        + len(message.tool_call_id or "")
        + sum(map(_chars_of_call, message.tool_calls))
        + _chars_of_value(message.extra)
        for message in messages
    )


def _chars_of_call(call: ToolCall) -> int:
    named = len(call.id) + len(call.name)
    return FRAME_CHARS + named + len(call.arguments) + _chars_of_value(call.extra)


def chars_of_request(request: AskRequest) -> int:
    """How long a request is, in characters: all of it that its sender may make long.

    A long one takes a while: whoever reads it measures it once, off the event loop.
    """
    who = request.identity
    names = (who.user, who.channel, who.group, request.conversation, request.model)
    lists = (who.roles or (), request.confirmations, request.declined)
    texts = (request.text, request.instructions, *names)
    return (
        sum(len(text) for text in texts if text is not None)
        + sum(_chars_of_value(tuple(each)) for each in lists)
        + _chars_of_direct(request.call)
        + _chars_of_value(request.metadata)
        + chars_of_messages((*request.history, *request.messages))
    )


def _chars_of_direct(call: DirectCall | None) -> int:
    if call is None:
        return 0
    return len(call.tool) + _chars_of_value(call.arguments)


def _chars_of_value(value: object) -> int:
    """About how long all is that a value of JSON holds; what is there several times is looked into once.

    It may hold itself. Each value counts ``VALUE_CHARS`` besides its text: a short body may hold very many.
    """
    chars, left, seen = 0, [value], set[int]()
    while left:
        many = left.pop()
        if not isinstance(many, _HOLDERS) or not many or id(many) in seen:
            continue
        seen.add(id(many))
        held = [*many] if isinstance(many, list | tuple) else [*many, *many.values()]
        chars += VALUE_CHARS * len(held) + sum(len(each) for each in held if isinstance(each, str))
        left += [each for each in held if not isinstance(each, _PLAIN)]
    return chars


def chars_of(event: AskEvent) -> int:
    """How long an event is, in characters."""
    match event:
        case TextDelta() | Notice() | MessageSent():
            return len(event.text)
        case ToolStarted():
            return len(str(event.arguments))
        case ConfirmationRequired():
            return len(str(event.pending.arguments))
        case TurnStarted():
            return sum(len(name) for name in event.exposed)
        case AskFinished():
            return chars_of_result(event.result)
        case _:
            return 0


def chars_of_result(result: AskResult) -> int:
    """How long a result is, in characters."""
    sent = sum(len(text) for text in result.messages)
    pending = sum(len(str(call.arguments)) for call in result.pending)
    called = 2 * len(result.called.text) if result.called is not None else 0  # data beside its text
    return len(result.text) + sent + pending + called + chars_of_messages(result.new_messages)


def _chars_of_content(content: Content | None) -> int:
    match content:
        case None:
            return 0
        case str():
            return len(content)
        case _:
            return sum(
                VALUE_CHARS + len(part.url if isinstance(part, ImagePart) else part.text)
                for part in content
            )
