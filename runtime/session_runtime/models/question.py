"""Finds the question in a transcript, and what happened since, for the models without a network."""

from collections.abc import Sequence

from session_runtime.models.base import NUDGE
from session_runtime.types import Content, Message, TextPart


def question_of(messages: Sequence[Message]) -> str:
    """The text of the last user message; empty if nobody asked anything."""
    asked = [message for message in messages if _is_question(message)]
    return text_of(asked[-1].content) if asked else ""


def turn_of(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages after the last user message."""
    start = max((at for at, message in enumerate(messages) if _is_question(message)), default=-1)
    return tuple(messages[start + 1 :])


def _is_question(message: Message) -> bool:
    return message.role == "user" and message.content != NUDGE


def text_of(content: Content | None) -> str:
    """The text of a message's content, its parts joined by line breaks."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))
