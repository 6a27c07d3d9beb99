"""How long requests, events and results are, in characters, more or less; what is too long others decide."""

from collections.abc import Iterable
from typing import Final

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
    ToolStarted,
    TurnStarted,
)

FRAME_CHARS: Final = 200
"""What an event or a message takes besides its texts."""


def chars_of_messages(messages: Iterable[Message]) -> int:
    """How long messages are, in characters: texts, images and arguments."""
    return sum(
        _chars_of_content(message.content)
        + sum(FRAME_CHARS + len(call.arguments) for call in message.tool_calls)
        + FRAME_CHARS
        for message in messages
    )


def chars_of_request(request: AskRequest) -> int:
    """How long a request is, in characters: texts, images, arguments, metadata."""
    texts = len(request.text or "") + len(request.instructions or "")
    texts += request.call.chars if request.call is not None else 0
    more = sum(len(name) + _chars_of_value(value) for name, value in request.metadata.items())
    return texts + more + chars_of_messages((*request.history, *request.messages))


def _chars_of_value(value: object) -> int:
    """About how long a value of JSON is, which is at most 64 levels deep."""
    match value:
        case str():
            return len(value)
        case dict():
            return sum(len(name) + _chars_of_value(each) for name, each in value.items())
        case list() | tuple():
            return sum(map(_chars_of_value, value))
        case _:
            return 8


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
                len(part.url if isinstance(part, ImagePart) else part.text) for part in content
            )
