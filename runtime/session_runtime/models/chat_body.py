"""Writes the body of a chat completions request, byte for byte the same for the same input (TS-11).

What to leave out because a server refuses it is decided in ``http``.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelRequest
from session_runtime.models.content import has_image, plain_text
from session_runtime.models.extras import call_extra, message_extra
from session_runtime.models.http_body import (
    Body,
    body_pieces,
    known_by_name,
    message_fields,
    message_key,
    readable_arguments,
    sent_schema,
    to_json,
)
from session_runtime.models.images import sent_url
from session_runtime.models.memo import SpecMemo, TextMemo
from session_runtime.registry.deprecation import Shown, described, shown
from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Content, ImagePart, JsonObject, Message, TextPart, ToolCall

_STREAM_OPTIONS: Final = "stream_options"
_MAX_TOKENS: Final = "max_tokens"
_FORM: Final = "response_format"
_OTHER_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    _STREAM_OPTIONS: ("include_usage",),
    _FORM: ("json_schema",),
}


class ChatBodyWriter:
    """Writes the bodies of one profile; each tool is serialised once per generation, as are prompts."""

    def __init__(self, profile: ModelProfile) -> None:
        self._profile = profile
        self._tools: SpecMemo[Shown, bytes] = SpecMemo(_tool)
        self._prompts = TextMemo(_prompt)

    def write(
        self, request: ModelRequest, left_out: Set[str], memo: "MessageMemo | None" = None
    ) -> Body:
        """The whole body without the fields in ``left_out``; ``memo`` is what this ask has written."""
        settings = self._settings(left_out)
        if request.form is not None and _FORM not in left_out:
            settings[_FORM] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": request.form},
            }
        memo = memo or MessageMemo()
        messages = memo.written(request.messages, request.names, left_out, self._prompts)
        tools = (self._tools.get(spec, shown(spec, request.names)) for spec in request.tools)
        of_body = [
            known_by_name(name, *_OTHER_WORDS.get(name, ()))
            for name in (_MAX_TOKENS, _STREAM_OPTIONS, _FORM)
            if name in settings
        ]
        pieces = body_pieces(settings, {}, tools, "messages", (each.json for each in messages))
        extras = (name for each in messages for name in each.extras)
        return Body(pieces, (*message_fields(extras), *of_body))

    def _settings(self, left_out: Set[str]) -> dict[str, Any]:
        profile = self._profile
        settings: dict[str, Any] = {"model": profile.model}
        if profile.temperature is not None:
            settings["temperature"] = profile.temperature
        if profile.max_output_tokens is not None:
            newer = _MAX_TOKENS in left_out
            settings["max_completion_tokens" if newer else _MAX_TOKENS] = profile.max_output_tokens
        if profile.stream:
            settings["stream"] = True
            if _STREAM_OPTIONS not in left_out:
                settings[_STREAM_OPTIONS] = {"include_usage": True}
        return {**settings, **profile.extra_body}


@dataclass(frozen=True, slots=True)
class _Written:
    """A message as it is sent, and its unknown fields, each as often as it is there."""

    message: Message
    json: bytes
    extras: tuple[str, ...]


class MessageMemo:
    """The messages of one ask as they were written last: most of them are sent again in each turn."""

    def __init__(self) -> None:
        self._names: WireNames | None = None
        self._left_out: Set[str] = frozenset()
        self._written: list[_Written] = []

    def written(
        self,
        messages: Sequence[Message],
        names: WireNames,
        left_out: Set[str],
        prompts: TextMemo,
    ) -> list[_Written]:
        """All messages in their order; what is the same object under the same names is known."""
        same = self._names is names and self._left_out == left_out
        known = self._written if same else []
        pairs = zip(known, messages, strict=False)
        begin = [each for each, _ in takewhile(lambda pair: pair[0].message is pair[1], pairs)]
        rest = [_write(message, names, left_out, prompts) for message in messages[len(begin) :]]
        self._names, self._left_out, self._written = names, left_out, [*begin, *rest]
        return self._written


def _write(message: Message, names: WireNames, left_out: Set[str], prompts: TextMemo) -> _Written:
    if message.role == "system":
        return _Written(message, prompts.get(plain_text(message.content)), ())
    fields = _message(message, names, left_out)
    return _Written(message, to_json(fields), tuple(_extra_names(fields)))


def _prompt(text: str) -> bytes:
    return to_json(_system(text))


def _system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def _tool(spec: ToolSpec, as_shown: Shown) -> bytes:
    function = {
        "name": as_shown.name,
        "description": described(spec, as_shown.instead),
        "parameters": sent_schema(spec.parameters),
    }
    return to_json({"type": "function", "function": function})


def _message(message: Message, names: WireNames, left_out: Set[str]) -> dict[str, Any]:
    """A message as services take it: only those of users may show images."""
    match message.role:
        case "assistant":
            return _assistant(message, names, left_out)
        case "tool":
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id,
                "content": plain_text(message.content),
            }
        case "system":
            return _system(plain_text(message.content))
        case "user":
            return {"role": "user", "content": _shown(message.content)}


def _assistant(message: Message, names: WireNames, left_out: Set[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "assistant", "content": plain_text(message.content)}
    if message.tool_calls:
        fields["content"] = fields["content"] or None
        fields["tool_calls"] = [_call(call, names, left_out) for call in message.tool_calls]
    return fields | _without(message_extra(message.extra), left_out)


def _call(call: ToolCall, names: WireNames, left_out: Set[str]) -> dict[str, Any]:
    function = {"name": names.encode(call.name), "arguments": readable_arguments(call.arguments)}
    fields = {"id": call.id, "type": "function", "function": function}
    return fields | _without(call_extra(call.extra), left_out)


def _shown(content: Content | None) -> str | list[dict[str, Any]]:
    """Text alone is sent as a string, because many small servers know nothing else."""
    if not isinstance(content, tuple) or not has_image(content):
        return plain_text(content)
    return [_part(part) for part in content]


def _part(part: TextPart | ImagePart) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart(url, detail):
            image = {"url": sent_url(url)} | ({} if detail is None else {"detail": detail})
            return {"type": "image_url", "image_url": image}


def _extra_names(message: Mapping[str, Any]) -> Iterator[str]:
    yield from message_extra(message)
    for call in message.get("tool_calls", ()):
        yield from call_extra(call)


def _without(fields: JsonObject, left_out: Set[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if message_key(name) not in left_out}
