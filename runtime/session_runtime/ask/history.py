"""Repairs a caller's history so that every wire format accepts it (ASK-2)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from session_runtime.types import Message, ToolCall

MAX_ID_CHARS = 40
"""The longest id of a call that every known service takes."""

_SUFFIX_CHARS = 8
_NOT_IN_IDS = re.compile(r"[^!-~]")
LOST_RESULT = "The result of this call was not recorded."


def repair_history(
    history: Sequence[Message], question: Sequence[Message] = ()
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """A valid transcript from any messages, as what came from ``history`` and from ``question``.

    Each call gets exactly one result right behind its message, in call order: a missing one is said to
    be lost, a second or orphan one is dropped. Call ids become unique, short and visible ASCII; a result
    belongs to the call with its id as it came. Empty messages vanish, null content with calls is kept.
    System messages stay where they are.
    """
    messages = (*history, *question)
    results = _first_results(messages)
    ids = _FreshIds()
    repaired = [_repaired(message, results[at], ids) for at, message in enumerate(messages)]
    return _joined(repaired[: len(history)]), _joined(repaired[len(history) :])


def fresh_ids(messages: Iterable[Message], wanted: Iterable[str]) -> tuple[str, ...]:
    """Ids for calls that are added to a repaired transcript: those wanted, or like them."""
    ids = _FreshIds(call.id for message in messages for call in message.tool_calls)
    return tuple(ids.fresh(each) for each in wanted)


def _joined(groups: Iterable[Sequence[Message]]) -> tuple[Message, ...]:
    return tuple(message for group in groups for message in group)


def _first_results(messages: Sequence[Message]) -> list[dict[str, Message]]:
    """For each message with calls, the first result of each id before the next such message."""
    results: list[dict[str, Message]] = []
    current: dict[str, Message] = {}
    for message in messages:
        if message.role == "assistant" and message.tool_calls:
            current = {}
        elif message.role == "tool" and message.tool_call_id is not None:
            current.setdefault(message.tool_call_id, message)
        results.append(current)
    return results


def _repaired(message: Message, results: dict[str, Message], ids: "_FreshIds") -> Sequence[Message]:
    match message.role:
        case "tool":
            return ()
        case "assistant" if message.tool_calls:
            return _paired(message, results, ids)
        case _ if not _says_something(message):
            return ()
        case _:
            return (replace(message, tool_calls=()) if message.tool_calls else message,)


def _paired(message: Message, results: dict[str, Message], ids: "_FreshIds") -> Sequence[Message]:
    calls: list[ToolCall] = []
    answers: list[Message] = []
    for call in _first_of_each_id(message.tool_calls):
        result = results.get(call.id)
        fresh = ids.fresh(call.id)
        calls.append(replace(call, id=fresh))
        answers.append(_answer(result, fresh))
    return (replace(message, tool_calls=tuple(calls)), *answers)


def _answer(result: Message | None, call_id: str) -> Message:
    if result is None:
        return Message("tool", LOST_RESULT, tool_call_id=call_id)
    content = LOST_RESULT if result.content is None else result.content or ""
    return Message("tool", content, tool_call_id=call_id, is_error=result.is_error)


def _first_of_each_id(calls: Iterable[ToolCall]) -> Iterable[ToolCall]:
    by_id: dict[str, ToolCall] = {}
    for call in calls:
        by_id.setdefault(call.id, call)
    return by_id.values()


class _FreshIds:
    """Call ids that no call before had: the wanted one, or the next free number behind it."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """Take an id like the wanted one that services accept; it will not be given again."""
        fresh = _NOT_IN_IDS.sub("_", wanted[:MAX_ID_CHARS]) or "call"
        base = fresh[: MAX_ID_CHARS - _SUFFIX_CHARS]
        while fresh in self._used:
            number = self._next[base] = self._next.get(base, 1) + 1
            fresh = f"{base}_{number}"
        self._used.add(fresh)
        return fresh


def _says_something(message: Message) -> bool:
    match message.content:
        case None:
            return False
        case str() as text:
            return bool(text.strip())
        case parts:
            return bool(parts)
