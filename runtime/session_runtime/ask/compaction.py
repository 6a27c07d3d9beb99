"""Makes a conversation fit the room that a model has: old results become short, then old turns go (ASK-2).

System messages, the question and the newest turn stay as they are, and no call loses its result.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from session_runtime.ask.kept import KeptResults
from session_runtime.models.http_body import plain_text
from session_runtime.registry.invoke.summary import summarise
from session_runtime.threads import aside
from session_runtime.types import Message, TextPart

CHARS_PER_TOKEN: Final = 4
IMAGE_CHARS: Final = 4_000
SHORT_CHARS: Final = 600
"""What is left of an old result."""

WORTH_CHARS: Final = 1_200
"""A shorter result is left alone."""

AT_ONCE_CHARS: Final = 16_384
_TARGET: Final = 0.6
"""How much of the room is used afterwards: a provider that remembers the beginning must read it anew."""

_SHARE: Final = 75
"""How much of what a model can read the conversation may take, in percent; tools and answer need room."""

_NOTE: Final = Message("system", "(Earlier messages of this conversation are left out here.)")
_DATA: Final = ("{", "[")


def characters(message: Message) -> int:
    """How much of the context a message takes, in characters; an image like a page of text."""
    calls = sum(len(call.name) + len(call.arguments) for call in message.tool_calls)
    match message.content:
        case None:
            return calls
        case str() as text:
            return calls + len(text)
        case parts:
            return calls + sum(
                len(part.text) if isinstance(part, TextPart) else IMAGE_CHARS for part in parts
            )


def room_chars(context_window: int | None) -> int:
    """The most characters of conversation in a request; 0: any number, the window is not known."""
    return (context_window or 0) * _SHARE // 100 * CHARS_PER_TOKEN


async def within(
    history: Sequence[Message], most_chars: int, results: KeptResults, *, readable: bool
) -> tuple[Message, ...]:
    """A history of at most ``most_chars``, but for its system messages and the note on what is left out.

    For the start of an ask; ``results`` and ``readable`` as for ``compacted``.
    """
    if sum(map(characters, history)) <= most_chars:
        return tuple(history)
    before = len(history)
    shortened = await _with_short_results(history, before, most_chars, results, readable=readable)
    if sum(map(characters, shortened)) <= most_chars:
        return tuple(shortened)
    return tuple(_without_oldest(shortened, len(shortened), most_chars))


async def compacted(
    messages: Sequence[Message],
    question_at: int,
    most_chars: int,
    results: KeptResults,
    *,
    readable: bool,
) -> tuple[Message, ...]:
    """The conversation in clearly less than ``most_chars``, as far as that is possible.

    Before ``question_at`` stands what the caller gave as history. Whole results are kept in ``results``;
    ``readable`` says whether the model could read them there.
    """
    target = int(most_chars * _TARGET)
    before = _newest_turn(messages)
    shortened = await _with_short_results(messages, before, target, results, readable=readable)
    if sum(map(characters, shortened)) <= most_chars:
        return tuple(shortened)
    return tuple(_without_oldest(shortened, question_at, target))


async def _with_short_results(
    messages: Sequence[Message], before: int, target: int, results: KeptResults, *, readable: bool
) -> list[Message]:
    """The same with results ``before`` a place short, as many as it takes to come down to ``target``."""
    texts = _to_shorten(messages, before, target, results, readable=readable)
    work = partial(_shortened, messages, texts)
    large = sum(len(text) for text, _ in texts.values()) > AT_ONCE_CHARS
    return await aside("shortening results", work) if large else work()


def _to_shorten(
    messages: Sequence[Message], before: int, target: int, results: KeptResults, *, readable: bool
) -> dict[int, tuple[str, str | None]]:
    """Which results become short, by their places, each with its text and its reference, if it has one.

    From the oldest on, until there is room. Of a result of several parts, notes stand for the images.
    """
    chosen: dict[int, tuple[str, str | None]] = {}
    total = sum(map(characters, messages))
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    for at in range(before):
        if total <= target:
            break
        message, takes = messages[at], characters(messages[at])
        if message.role != "tool" or takes <= WORTH_CHARS:
            continue
        text, tool = plain_text(message.content), tools.get(message.tool_call_id or "", "")
        is_kept = readable and len(text) > WORTH_CHARS
        chosen[at] = text, _kept(text, tool, results) if is_kept else None
        total -= takes - min(len(text), SHORT_CHARS)
    return chosen


def _shortened(
    messages: Sequence[Message], texts: Mapping[int, tuple[str, str | None]]
) -> list[Message]:
    shorter = list(messages)
    for at, (text, reference) in texts.items():
        shorter[at] = replace(shorter[at], content=_short(text, reference))
    return shorter


def _newest_turn(messages: Sequence[Message]) -> int:
    """Where the last message with calls stands: its results were not read yet."""
    return max((at for at, message in enumerate(messages) if message.tool_calls), default=0)


def _kept(text: str, tool: str, results: KeptResults) -> str | None:
    """A reference to the whole result: the one it was shown with, or a new one if there is room."""
    if (reference := results.reference_of(text)) is not None:
        return reference
    place = results.place(readable=True, tool=tool)
    return place.reference if place is not None and place.keep(text) else None


def _short(text: str, reference: str | None) -> str:
    if len(text) <= WORTH_CHARS:
        return text  # its images took the room
    return summarise(_value(text), len(text), SHORT_CHARS, reference)


def _value(text: str) -> object:
    """Data as data, so that its summary names what it holds."""
    if not text.startswith(_DATA):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _without_oldest(messages: Sequence[Message], question_at: int, target: int) -> list[Message]:
    """The same without the oldest turns of the history, each from a user to the next one."""
    before = [message for message in messages[:question_at] if message != _NOTE]
    head = [message for message in before if message.role == "system"]
    history = [message for message in before if message.role != "system"]
    if not history:
        return list(messages)
    total = sum(map(characters, messages))
    while history and total > target:
        turn = _oldest_turn(history)
        total -= sum(map(characters, history[:turn]))
        history = history[turn:]
    return [*head, _NOTE, *history, *messages[question_at:]]


def _oldest_turn(history: Sequence[Message]) -> int:
    """How many messages belong to the first turn."""
    later = (at for at, message in enumerate(history) if at and message.role == "user")
    return next(later, len(history))
