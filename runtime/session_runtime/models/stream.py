"""Turns chunks of a chat completion, or a whole one, into a reply; ``call_parts`` joins its calls.

How the bytes became chunks, and what an error is, is decided in ``reading``.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Final

from session_runtime.models import faults
from session_runtime.models.base import CUT_OFF, INCOMPLETE, ModelReply, plain_reason
from session_runtime.models.call_parts import CallAssembly
from session_runtime.models.extras import message_extra
from session_runtime.models.reading import State
from session_runtime.models.usage import read_usage
from session_runtime.registry.names import WireNames
from session_runtime.types import JsonObject, Usage

_PLAIN_REASONS: Final = frozenset(
    {"stop", "tool_calls", "function_call", "length", "content_filter"}
)
_ERROR: Final = "error"
"""The reason to stop of gateways whose provider failed in the middle; they may say in the choice how."""

_FIRST: Final = (None, 0, "0", "")
"""How the first choice is marked."""


class ReplyAssembly:
    """Gathers one reply from any number of chunks; tolerant of what compatible servers send.

    Only the first choice counts. A field with a wrong type is treated as absent.
    """

    def __init__(self, endpoint: faults.Endpoint) -> None:
        self._endpoint = endpoint
        self._over = False
        self._streamed = True
        self._texts: list[str] = []
        self._calls = CallAssembly()
        self._old_calls = CallAssembly()
        self._told_again = CallAssembly()
        self._extra: dict[str, list[Any]] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None

    @property
    def state(self) -> State:
        """Once the model said why it stopped, nothing but usage can follow."""
        if self._over:
            return "over"
        return "open" if self._finish_reason is None else "complete"

    def add_whole(self, document: Mapping[str, Any]) -> str:
        """Add the one object of an unstreamed answer; returns its text."""
        if "choices" not in document:
            raise faults.not_an_api(self._endpoint, "a JSON object without 'choices'")
        self._over, self._streamed = True, False
        return self.add(document)

    def add_end_mark(self) -> None:
        """The stream said that it is over: not every server says why the model stopped."""
        self._over = True

    def add(self, chunk: Mapping[str, Any]) -> str:
        """Add one chunk; returns the text it brought."""
        if usage := chunk.get("usage"):
            self._usage = read_usage(usage) or self._usage
        choice = _first_choice(chunk.get("choices"))
        if error := choice.get("error"):
            raise faults.from_error_object(self._endpoint, error)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._stop(reason)
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            return self._add_delta(delta)
        if not isinstance(message, dict):
            return ""
        if self._is_empty():
            return self._add_message(message)
        for item in _items(message.get("tool_calls")):
            self._told_again.add_whole(item)
        return ""

    def _stop(self, reason: str) -> None:
        if reason.casefold() == _ERROR:
            raise faults.broken_reply(self._endpoint, f"it stopped for the reason {reason!r}")
        self._finish_reason = plain_reason(reason)

    def reply(self, names: WireNames, taken_ids: Set[str]) -> ModelReply:
        """The reply so far, with canonical names and with ids that are not in ``taken_ids``.

        The older form of a call counts only where no other is: some servers tell a call in both.
        """
        gathered = self._gathered()
        return ModelReply(
            text="".join(self._texts),
            calls=tuple(
                replace(call, name=names.decode(call.name)) for call in gathered.calls(taken_ids)
            ),
            usage=self._usage,
            finish_reason=self._reason(gathered),
            extra=_joined_extra(self._extra),
        )

    def _gathered(self) -> CallAssembly:
        """The calls with whatever arguments came for them, in one form or the other."""
        if self._calls.empty:
            return self._old_calls
        self._calls.complete_from(self._old_calls)
        self._calls.complete_from(self._told_again)
        return self._calls

    def _reason(self, gathered: CallAssembly) -> str | None:
        """Why the model stopped; a call without arguments is whole only if that is beyond doubt (ASK-5)."""
        reason = self._finish_reason
        if gathered.doubtful:
            return reason if reason in CUT_OFF else INCOMPLETE
        if reason is None:
            return INCOMPLETE if self._streamed and gathered.unfinished else None
        plain = reason in _PLAIN_REASONS
        return INCOMPLETE if gathered.without_arguments and not plain else reason

    def _is_empty(self) -> bool:
        """Some servers repeat the whole message in a last chunk after having streamed it."""
        calls_empty = self._calls.empty and self._old_calls.empty
        return not self._texts and not self._extra and calls_empty

    def _add_delta(self, delta: Mapping[str, Any]) -> str:
        if pieces := delta.get("tool_calls"):
            for item in _items(pieces):
                self._calls.add_piece(item)
        return self._add_rest(delta)

    def _add_message(self, message: Mapping[str, Any]) -> str:
        for item in _items(message.get("tool_calls")):
            self._calls.add_whole(item)
        return self._add_rest(message)

    def _add_rest(self, fields: Mapping[str, Any]) -> str:
        function_call = fields.get("function_call")
        if isinstance(function_call, dict):
            self._old_calls.add_legacy(function_call)
        for name, value in message_extra(fields).items():
            self._extra.setdefault(name, []).append(value)
        text = _text(fields.get("content")) or _text(fields.get("refusal"))
        if text:
            self._texts.append(text)
        return text


def _first_choice(choices: object) -> JsonObject:
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index") in _FIRST:
            return choice
    return {}


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


def _items(value: object) -> list[dict[str, Any]]:
    """The items of calls; some services send a single one without a list around it."""
    return [value] if isinstance(value, dict) else _objects(value)


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
