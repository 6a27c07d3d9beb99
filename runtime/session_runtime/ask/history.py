"""Repairs a caller's history so that every wire format accepts it (ASK-2)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from session_runtime.types import Message, ToolCall

LOST_RESULT = "The result of this call was not recorded."


def repair_history(history: Sequence[Message]) -> tuple[Message, ...]:
    """A valid transcript from any sequence of messages.

    Each call gets exactly one result right behind its message, in call order: a missing one is said to
    be lost, a second or orphan one is dropped. Call ids become unique, empty messages vanish, null
    content with calls is kept. System messages inside a history stay where they are.
    """
    repaired: list[Message] = []
    used_ids: set[str] = set()
    for index, message in enumerate(history):
        match message.role:
            case "tool":
                continue
            case "assistant" if message.tool_calls:
                results = _results_behind(history, index)
                repaired += _paired(message, results, used_ids)
            case _:
                repaired += [replace(message, tool_calls=())] if _says_something(message) else []
    return tuple(repaired)


def _results_behind(history: Sequence[Message], index: int) -> dict[str, Message]:
    """The first result of each call id after ``index``, up to the next message with calls."""
    found: dict[str, Message] = {}
    for message in history[index + 1 :]:
        if message.role == "assistant" and message.tool_calls:
            break
        if message.role == "tool" and message.tool_call_id is not None:
            found.setdefault(message.tool_call_id, message)
    return found


def _paired(message: Message, results: dict[str, Message], used_ids: set[str]) -> Iterable[Message]:
    calls: list[ToolCall] = []
    answers: list[Message] = []
    for call in _first_of_each_id(message.tool_calls):
        result = results.get(call.id)
        fresh = _fresh_id(call.id, used_ids)
        calls.append(replace(call, id=fresh))
        content = result.content if result is not None else None
        answers.append(Message("tool", content or LOST_RESULT, tool_call_id=fresh))
    return [replace(message, tool_calls=tuple(calls)), *answers]


def _first_of_each_id(calls: Iterable[ToolCall]) -> Iterable[ToolCall]:
    by_id: dict[str, ToolCall] = {}
    for call in calls:
        by_id.setdefault(call.id, call)
    return by_id.values()


def _fresh_id(wanted: str, used: set[str]) -> str:
    fresh, attempt = wanted or "call", 1
    while fresh in used:
        attempt += 1
        fresh = f"{wanted or 'call'}_{attempt}"
    used.add(fresh)
    return fresh


def _says_something(message: Message) -> bool:
    match message.content:
        case None:
            return False
        case str() as text:
            return bool(text.strip())
        case parts:
            return bool(parts)
