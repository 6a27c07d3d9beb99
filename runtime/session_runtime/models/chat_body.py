"""Writes the body of a chat completions request, byte for byte the same for the same input (TS-11).

What to leave out because a server refuses it is decided in ``http``.
"""

from collections.abc import Mapping, Set
from typing import Any, Final

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelRequest
from session_runtime.models.extras import call_extra, message_extra
from session_runtime.models.http_body import (
    Body,
    body_bytes,
    known_by_name,
    readable_arguments,
    schema_with_properties,
    to_json,
)
from session_runtime.models.memo import SpecMemo
from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Content, ImagePart, JsonObject, Message, TextPart, ToolCall

_STREAM_OPTIONS: Final = "stream_options"
_MAX_TOKENS: Final = "max_tokens"
_OTHER_WORDS: Final[Mapping[str, tuple[str, ...]]] = {_STREAM_OPTIONS: ("include_usage",)}


class ChatBodyWriter:
    """Writes the bodies of one profile; each tool is serialised once per generation."""

    def __init__(self, profile: ModelProfile) -> None:
        self._profile = profile
        self._tools: SpecMemo[bytes] = SpecMemo(_tool)

    def write(self, request: ModelRequest, left_out: Set[str]) -> Body:
        """The whole body without the fields in ``left_out``."""
        settings = self._settings(left_out)
        messages = [_message(message, request.names, left_out) for message in request.messages]
        tools = (self._tools.get(spec, request.names.encode(spec.name)) for spec in request.tools)
        optional = (settings.keys() & {_STREAM_OPTIONS, _MAX_TOKENS}) | _extra_names(messages)
        return Body(
            body_bytes(settings, tools, "messages", messages),
            tuple(known_by_name(name, *_OTHER_WORDS.get(name, ())) for name in sorted(optional)),
        )

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


def _tool(spec: ToolSpec, wire_name: str) -> bytes:
    function = {
        "name": wire_name,
        "description": spec.description,
        "parameters": schema_with_properties(spec.parameters),
    }
    return to_json({"type": "function", "function": function})


def _message(message: Message, names: WireNames, left_out: Set[str]) -> dict[str, Any]:
    match message.role:
        case "assistant":
            return _assistant(message, names, left_out)
        case "tool":
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id,
                "content": _content(message.content),
            }
        case "system" | "user":
            return {"role": message.role, "content": _content(message.content)}


def _assistant(message: Message, names: WireNames, left_out: Set[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": "assistant", "content": _content(message.content)}
    if message.tool_calls:
        fields["content"] = fields["content"] or None
        fields["tool_calls"] = [_call(call, names, left_out) for call in message.tool_calls]
    return fields | _without(message_extra(message.extra), left_out)


def _call(call: ToolCall, names: WireNames, left_out: Set[str]) -> dict[str, Any]:
    function = {"name": names.encode(call.name), "arguments": readable_arguments(call.arguments)}
    fields = {"id": call.id, "type": "function", "function": function}
    return fields | _without(call_extra(call.extra), left_out)


def _content(content: Content | None) -> str | list[dict[str, Any]]:
    """Text alone is sent as a string, because many small servers know nothing else."""
    if content is None or isinstance(content, str):
        return content or ""
    if any(isinstance(part, ImagePart) for part in content):
        return [_part(part) for part in content]
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


def _part(part: TextPart | ImagePart) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart(url, detail):
            image = {"url": url} if detail is None else {"url": url, "detail": detail}
            return {"type": "image_url", "image_url": image}


def _extra_names(messages: list[dict[str, Any]]) -> set[str]:
    """The unknown fields in messages as they are sent."""
    names: set[str] = set()
    for message in messages:
        names.update(message_extra(message))
        for call in message.get("tool_calls", ()):
            names.update(call_extra(call))
    return names


def _without(fields: JsonObject, left_out: Set[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in left_out}
