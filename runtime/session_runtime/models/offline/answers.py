"""Writes the sentences of the offline model: what a tool gave, what is missing, that nothing fits."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from session_runtime.models.offline.words import is_han

_MAX_CHARS: Final = 2_000
_MAIN_FIELDS: Final = ("result", "answer", "value", "text", "message", "output", "content")


def of_results(results: Sequence[tuple[str, str]]) -> str:
    """An answer from tool names and the contents of their results, in call order."""
    spoken = [(name, _spoken_content(name, content)) for name, content in results]
    if len(spoken) == 1:
        return spoken[0][1]
    return "\n".join(f"{name}: {text}" for name, text in spoken)


def missing_values(question: str, tool: str, missing: Iterable[str]) -> str:
    """What has to be said for a tool to be called."""
    names = ", ".join(missing)
    if is_han(question):
        return f"要使用 {tool}，还需要：{names}。"
    return f"To use {tool} I still need: {names}."


def no_tool(question: str) -> str:
    """Nothing that may be called fits the question."""
    if is_han(question):
        return "我没有找到适合这个问题的工具。"
    return "I found no tool for this question."


def _spoken_content(tool: str, content: str) -> str:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content.strip()[:_MAX_CHARS] or f"{tool} gave no result."
    if isinstance(value, dict) and value.get("error"):
        return f"{tool} failed: {_spoken(value['error'])}"[:_MAX_CHARS]
    return _spoken(value)[:_MAX_CHARS] or f"{tool} gave no result."


def _spoken(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case dict():
            main = next((value[field] for field in _MAIN_FIELDS if field in value), None)
            if main is not None and not isinstance(main, dict):
                return _spoken(main)
            return ", ".join(f"{key}: {_spoken(inner)}" for key, inner in value.items())
        case list():
            return ", ".join(_spoken(inner) for inner in value)
        case _:
            return str(value)
