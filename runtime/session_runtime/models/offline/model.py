"""Decides, from the messages and tools of a turn alone, whether to call a tool, search or answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.models.deltas import emit
from session_runtime.models.memo import SpecMemo
from session_runtime.models.offline import answers
from session_runtime.models.offline.choice import (
    CALCULATION_WORDS,
    Choice,
    Terms,
    best,
    best_names,
    parts_of,
    terms_of,
)
from session_runtime.models.offline.scene import Scene, read_scene
from session_runtime.models.offline.spans import Question
from session_runtime.models.offline.words import keywords
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import ToolCall

_MAX_QUERY_CHARS: Final = 200
_MAX_WANTED: Final = 5


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Say:
    text: str


class OfflineModel:
    """Matches words and fills forms; deterministic, without state, network or key.

    Results of this question's calls are told as the answer. Otherwise the tool that shares most words
    with the question is called, if the question holds its required values; a tool that the directory
    names is loaded first. It searches at most twice and calls each tool at most once per question, so
    it cannot loop. Told that its text is not delivered, it sends it through ``send_message`` and ends.
    """

    def __init__(self) -> None:
        self._terms: SpecMemo[str, Terms] = SpecMemo(terms_of)

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Take one turn; raises nothing."""
        decision = _decide(read_scene(request, lambda spec: self._terms.get(spec, spec.name)))
        if isinstance(decision, _Say):
            emit(decision.text, on_text)
            return ModelReply(decision.text, finish_reason="stop")
        earlier = sum(len(message.tool_calls) for message in request.messages)
        calls = tuple(
            ToolCall(f"call_{earlier + at}", call.name, _json(call.arguments))
            for at, call in enumerate(decision)
        )
        return ModelReply(calls=calls, finish_reason="tool_calls")

    async def aclose(self) -> None:
        """Nothing to close."""


def _decide(scene: Scene) -> _Say | list[_Call]:
    if scene.undelivered is not None:
        return _deliver(scene, scene.undelivered)
    if scene.results:
        return _Say(answers.of_results(scene.results))
    parts = _parts(scene)
    choices = [best(part, scene.tools) for part in parts]
    if query := _select_query(scene, parts, choices):
        return [_Call(TOOL_SEARCH, {"query": query})]
    found = [choice for choice in choices if choice is not None]
    return _call(scene, found) if found else _without_tool(scene)


def _deliver(scene: Scene, text: str) -> _Say | list[_Call]:
    if scene.send is not None and all(name != scene.send.name for name, _ in scene.results):
        return [_Call(scene.send.name, {_text_parameter(scene.send): text})]
    return [_Call(scene.end.name, {})] if scene.end is not None else _Say(text)


def _text_parameter(spec: ToolSpec) -> str:
    required = spec.parameters.get("required")
    return str(required[0]) if required else "text"


def _call(scene: Scene, found: Sequence[Choice]) -> _Say | list[_Call]:
    for choice in found:
        if missing := choice.filled.missing:
            return _Say(answers.missing_values(scene.question.raw, choice.spec.name, missing))
    return [_Call(choice.spec.name, choice.filled.arguments) for choice in found]


def _without_tool(scene: Scene) -> _Say | list[_Call]:
    """What was fetched before the question may answer it; if not, one search by words may help."""
    _, names = best_names(scene.question, (name for name, _ in scene.prefetched))
    if names:
        return _Say(answers.of_results([pair for pair in scene.prefetched if pair[0] in names]))
    query = _keyword_query(scene.question)
    if scene.can_search and query and query not in scene.queries:
        return [_Call(TOOL_SEARCH, {"query": query})]
    return _Say(answers.no_tool(scene.question.raw))


def _parts(scene: Scene) -> Sequence[Question]:
    """The parts of the question if there is something for each of them, else the whole."""
    parts = parts_of(scene.question)
    useful = all(
        best_names(part, scene.deferred)[0] > 0.0 or _complete(best(part, scene.tools))
        for part in parts
    )
    return parts if len(parts) > 1 and useful else [scene.question]


def _complete(choice: Choice | None) -> bool:
    return choice is not None and not choice.filled.missing


def _select_query(
    scene: Scene, parts: Sequence[Question], choices: Sequence[Choice | None]
) -> str | None:
    """A search for the names of the directory that fit better than what can be called; once."""
    if not scene.can_search or any(query.startswith("select:") for query in scene.queries):
        return None
    wanted: list[str] = []
    for part, choice in zip(parts, choices, strict=True):
        points, names = best_names(part, scene.deferred)
        if choice is None or points > choice.score:
            wanted += [name for name in names if name not in wanted]
    return f"select:{','.join(wanted[:_MAX_WANTED])}" if wanted else None


def _keyword_query(question: Question) -> str:
    if any(question.of("math")):
        return CALCULATION_WORDS
    return keywords(question.text)[:_MAX_QUERY_CHARS].strip()


def _json(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)
