"""Reads from the messages and tools of a turn what the offline model needs to know to take it."""

import html
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.models.base import NUDGE, ModelRequest
from session_runtime.models.offline.choice import Terms
from session_runtime.models.offline.spans import Question, analyse
from session_runtime.models.offline.words import words
from session_runtime.models.question import question_of, text_of, turn_of
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Message, ToolCall

END: Final = "end"
SEND: Final = "send_message"
_DIRECTORY: Final = re.compile(
    r"<available_deferred_tools>(.*?)</available_deferred_tools>", re.DOTALL
)
_PREFETCHED: Final = re.compile(r"^- ([^\s:]+): (.*(?:\n  .*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Scene:
    """One turn: the question, what happened since it was asked, what may be called or loaded.

    ``results`` are names and contents in call order, searches not among them; ``queries`` were
    searched for. ``undelivered`` is the text that the runtime wants to be sent through a tool. ``end``
    and ``send`` are the tools to do so; ``send`` is also among ``tools`` if the question asks for it.
    """

    question: Question
    results: tuple[tuple[str, str], ...]
    queries: frozenset[str]
    undelivered: str | None
    end: ToolSpec | None
    send: ToolSpec | None
    tools: tuple[tuple[ToolSpec, Terms], ...]
    can_search: bool
    deferred: tuple[str, ...]
    prefetched: tuple[tuple[str, str], ...]


def read_scene(request: ModelRequest, terms_of: Callable[[ToolSpec], Terms]) -> Scene:
    """The scene of a request; nothing but the request decides it."""
    turn = turn_of(request.messages)
    calls = [call for message in turn for call in message.tool_calls]
    question = analyse(question_of(request.messages))
    exposed = {spec.name: spec for spec in request.tools}
    system = [text_of(m.content) for m in request.messages if m.role == "system"]
    return Scene(
        question=question,
        results=tuple(_results(turn, calls)),
        queries=frozenset(_query(call) for call in calls if call.name == TOOL_SEARCH),
        undelivered=_undelivered(turn),
        end=exposed.get(END),
        send=exposed.get(SEND),
        tools=tuple((spec, terms_of(spec)) for spec in request.tools if _may_help(spec, question)),
        can_search=TOOL_SEARCH in exposed,
        deferred=tuple(name for name in _directory(system) if name not in exposed),
        prefetched=tuple(pair for text in system for pair in _PREFETCHED.findall(text)),
    )


def _results(turn: Sequence[Message], calls: Iterable[ToolCall]) -> Iterable[tuple[str, str]]:
    contents = {m.tool_call_id: text_of(m.content) for m in turn if m.role == "tool"}
    for call in calls:
        if call.name != TOOL_SEARCH and call.id in contents:
            yield call.name, contents[call.id]


def _undelivered(turn: Sequence[Message]) -> str | None:
    """The last text before the runtime said that it does not deliver texts, if it said so."""
    nudges = [at for at, m in enumerate(turn) if m.role == "user" and m.content == NUDGE]
    if not nudges:
        return None
    texts = [text_of(m.content) for m in turn[: nudges[-1]] if m.role == "assistant"]
    return next((text for text in reversed(texts) if text), "")


def _may_help(spec: ToolSpec, question: Question) -> bool:
    """Whether a tool is one to answer with; those that carry an answer are, only if asked for."""
    if spec.name == SEND:
        return set(words(SEND)) <= set(words(question.text))
    return spec.name not in {TOOL_SEARCH, END}


def _directory(system: Sequence[str]) -> list[str]:
    """The names in the directory of deferred tools; lines that stand for whole groups are no names."""
    found = [match for text in system for match in _DIRECTORY.findall(text)]
    lines = [html.unescape(line.strip()) for block in found for line in block.splitlines()]
    return [line for line in lines if line and " " not in line and not line.endswith("*")]


def _query(call: ToolCall) -> str:
    try:
        return str(json.loads(call.arguments)["query"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
