"""Makes a conversation fit the room that a model has: old results become short, then old turns go (ASK-2).

System messages, the question and the newest turn behind it stay as they are, and no call loses its result.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from session_runtime.ask.kept import KeptResults
from session_runtime.models.content import plain_text
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
AT_ONCE_MESSAGES: Final = 1_000
"""More of them are gone through in a thread."""

_TARGET: Final = 0.6
"""How much of the room is used afterwards: a provider that remembers the beginning must read it anew."""

_SHARE: Final = 75
"""How much of what a model can read the conversation may take, in percent; tools and answer need room."""

_NOTE: Final = Message("system", "(Earlier messages of this conversation are left out here.)")
_DATA: Final = ("{", "[")


def characters(message: Message) -> int:
    """How much of the context a message takes, in characters; an image like a page of text."""
    calls = 0
    for call in message.tool_calls:
        calls += len(call.name) + len(call.arguments)
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
    plan = partial(_plan_within, history, most_chars)
    return await _carried_out(history, len(history), plan, results, readable=readable)


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
    plan = partial(_plan_compacted, messages, question_at, most_chars)
    return await _carried_out(messages, question_at, plan, results, readable=readable)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which results become short, by their places, each with its text and its tool; which places go."""

    texts: Mapping[int, tuple[str, str]]
    gone: frozenset[int]


def _plan_within(history: Sequence[Message], most_chars: int) -> _Plan:
    return _plan(history, len(history), len(history), most_chars, most_chars)


def _plan_compacted(messages: Sequence[Message], question_at: int, most_chars: int) -> _Plan:
    target = int(most_chars * _TARGET)
    return _plan(messages, _newest_turn(messages), question_at, most_chars, target)


def _plan(
    messages: Sequence[Message], before: int, question_at: int, most: int, target: int
) -> _Plan:
    """Shorten what stands ``before`` a place down to ``target``, then the rest of the history.

    Drop turns if it is still above ``most``.
    """
    sizes = list(map(characters, messages))
    texts: dict[int, tuple[str, str]] = {}
    for end in (before, question_at):
        if sum(sizes) <= most:
            return _Plan(texts, frozenset())
        chosen = _to_shorten(messages, sizes, end, target)
        texts |= chosen
        for at, (text, _) in chosen.items():
            sizes[at] = _length_of_short(text)
    if sum(sizes) <= most:
        return _Plan(texts, frozenset())
    gone = _oldest(messages[:question_at], sizes, sum(sizes) - target)
    return _Plan({at: each for at, each in texts.items() if at not in gone}, gone)


def _to_shorten(
    messages: Sequence[Message], sizes: Sequence[int], before: int, target: int
) -> dict[int, tuple[str, str]]:
    """The results that become short, from the oldest on, until there is room.

    Of a result of several parts, notes stand for the images.
    """
    chosen: dict[int, tuple[str, str]] = {}
    total = sum(sizes)
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    for at in range(before):
        if total <= target:
            break
        message = messages[at]
        if message.role != "tool" or sizes[at] <= WORTH_CHARS:
            continue
        text = plain_text(message.content)
        chosen[at] = text, tools.get(message.tool_call_id or "", "")
        total -= sizes[at] - _length_of_short(text)
    return chosen


def _oldest(before: Sequence[Message], sizes: Sequence[int], too_many: int) -> frozenset[int]:
    """The places of the oldest turns, each from a user to the next one, that hold ``too_many`` characters."""
    history = [at for at, message in enumerate(before) if message.role != "system"]
    for count, at in enumerate(history):
        if too_many <= 0 and before[at].role == "user":
            return frozenset(history[:count])
        too_many -= sizes[at]
    return frozenset(history)


async def _carried_out(
    messages: Sequence[Message],
    question_at: int,
    work: Callable[[], _Plan],
    results: KeptResults,
    *,
    readable: bool,
) -> tuple[Message, ...]:
    """Plan and shorten, aside where that takes long; what is kept is kept in the event loop."""
    many = len(messages) > AT_ONCE_MESSAGES
    plan = await aside("planning what to leave out", work) if many else work()
    if not plan.texts and not plan.gone:
        return tuple(messages)
    references = {
        at: _kept(text, tool, results)
        for at, (text, tool) in plan.texts.items()
        if readable and len(text) > WORTH_CHARS
    }
    large = many or sum(len(text) for text, _ in plan.texts.values()) > AT_ONCE_CHARS
    shorten = partial(_carry_out, messages, question_at, plan, references)
    return await aside("shortening a conversation", shorten) if large else shorten()


def _carry_out(
    messages: Sequence[Message],
    question_at: int,
    plan: _Plan,
    references: Mapping[int, str | None],
) -> tuple[Message, ...]:
    shorter = list(messages)
    for at, (text, _) in plan.texts.items():
        shorter[at] = replace(shorter[at], content=_short(text, references.get(at)))
    if not plan.gone:
        return tuple(shorter)
    before = [each for at, each in enumerate(shorter[:question_at]) if at not in plan.gone]
    head = [each for each in before if each.role == "system" and each != _NOTE]
    history = [each for each in before if each.role != "system"]
    return (*head, _NOTE, *history, *shorter[question_at:])


def _newest_turn(messages: Sequence[Message]) -> int:
    """Where the last message with calls stands: behind the question, its results were not read yet."""
    return max((at for at, message in enumerate(messages) if message.tool_calls), default=0)


def _kept(text: str, tool: str, results: KeptResults) -> str | None:
    """A reference to the whole result: the one it was shown with, or a new one if there is room."""
    if (reference := results.reference_of(text)) is not None:
        return reference
    place = results.place(readable=True, tool=tool)
    return place.reference if place is not None and place.keep(text) else None


def _length_of_short(text: str) -> int:
    """The most characters that are left of a result."""
    return SHORT_CHARS if len(text) > WORTH_CHARS else len(text)


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
