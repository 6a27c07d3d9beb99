"""Turns chunks of a chat completion, or a whole one, into a reply; ``call_parts`` joins its calls.

How the bytes became chunks is decided in ``reading``.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

from session_runtime.models.base import ModelReply
from session_runtime.models.call_parts import CallAssembly
from session_runtime.models.extras import message_extra
from session_runtime.registry.names import WireNames
from session_runtime.types import JsonObject, Usage

MAX_TOKENS: Final = 10**12


class ReplyAssembly:
    """Gathers one reply from any number of chunks; tolerant of what compatible servers send.

    Only the first choice counts. A field with a wrong type is treated as absent.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls = CallAssembly()
        self._extra: dict[str, list[Any]] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the model said why it stopped: nothing but usage can follow."""
        return self._finish_reason is not None

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Add one chunk, or the one object of an unstreamed answer; returns the text it brought."""
        self._usage = read_usage(chunk.get("usage")) or self._usage
        choice = _first_choice(chunk.get("choices"))
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self._finish_reason = reason
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            return self._add_delta(delta)
        if isinstance(message, dict) and self._is_empty():
            return self._add_message(message)
        return ""

    def reply(self, names: WireNames, taken_ids: Set[str]) -> ModelReply:
        """The reply so far, with canonical names and with ids that are not in ``taken_ids``."""
        return ModelReply(
            text="".join(self._texts),
            calls=tuple(
                replace(call, name=names.decode(call.name)) for call in self._calls.calls(taken_ids)
            ),
            usage=self._usage,
            finish_reason=self._finish_reason,
            extra=_joined_extra(self._extra),
        )

    def _is_empty(self) -> bool:
        """Some servers repeat the whole message in a last chunk after having streamed it."""
        return not self._texts and not self._extra and not self._calls.calls(frozenset())

    def _add_delta(self, delta: Mapping[str, Any]) -> str:
        for item in _objects(delta.get("tool_calls")):
            self._calls.add_piece(item)
        return self._add_rest(delta)

    def _add_message(self, message: Mapping[str, Any]) -> str:
        for item in _objects(message.get("tool_calls")):
            self._calls.add_whole(item)
        return self._add_rest(message)

    def _add_rest(self, fields: Mapping[str, Any]) -> str:
        function_call = fields.get("function_call")
        if isinstance(function_call, dict):
            self._calls.add_legacy(function_call)
        for name, value in message_extra(fields).items():
            self._extra.setdefault(name, []).append(value)
        text = _text(fields.get("content")) or _text(fields.get("refusal"))
        if text:
            self._texts.append(text)
        return text


def read_usage(usage: object) -> Usage | None:
    """The provider's count of one model call; None if it sent none that can be read."""
    if not isinstance(usage, dict) or not _count(usage.get("prompt_tokens")):
        return None
    prompt = _object(usage.get("prompt_tokens_details"))
    completion = _object(usage.get("completion_tokens_details"))
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(prompt.get("cached_tokens"))
        or _count(usage.get("prompt_cache_hit_tokens")),
        reasoning_tokens=_count(completion.get("reasoning_tokens")),
        model_calls=1,
    )


def _first_choice(choices: object) -> JsonObject:
    return next((choice for choice in _objects(choices) if not choice.get("index")), {})


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _objects(content) if part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _joined_extra(pieces: Mapping[str, Sequence[Any]]) -> JsonObject:
    return {name: value for name in pieces if (value := _joined(pieces[name])) != ""}


def _joined(pieces: Sequence[Any]) -> object:
    """Text and lists are streamed in pieces; of anything else the last one counts."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        return [item for piece in pieces for item in piece]
    return pieces[-1]


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < MAX_TOKENS else 0
