"""Writes the body of a chat completions request, byte for byte the same for the same input (TS-11).

What to leave out because a server refuses it is decided in ``chat``.
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Final

from session_runtime.config.models import ModelProfile
from session_runtime.models.base import ModelRequest
from session_runtime.models.extras import call_extra, message_extra
from session_runtime.models.memo import SpecMemo
from session_runtime.registry.names import WireNames
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Content, ImagePart, JsonObject, Message, TextPart, ToolCall

_STREAM_OPTIONS: Final = "stream_options"
_MAX_TOKENS: Final = "max_tokens"
_OTHER_WORDS: Final[Mapping[str, str]] = {_STREAM_OPTIONS: "include_usage"}


@dataclass(frozen=True, slots=True)
class ChatBody:
    """A body ready to be sent; ``optional`` are the fields in it that a server may do without."""

    content: bytes
    optional: frozenset[str]

    def refused_field(self, complaint: str) -> str | None:
        """The optional field that the text of a refusal names, if it names one."""
        for field in sorted(self.optional):
            for name in (field, _OTHER_WORDS.get(field, field)):
                if re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", complaint):
                    return field
        return None


class ChatBodyWriter:
    """Writes the bodies of one profile; each tool is serialised once per generation."""

    def __init__(self, profile: ModelProfile) -> None:
        self._profile = profile
        self._tools: SpecMemo[bytes] = SpecMemo(_tool)

    def write(self, request: ModelRequest, left_out: Set[str]) -> ChatBody:
        """The whole body without the fields in ``left_out``.

        ``tools`` of a longer list begin with the bytes of the shorter one, save its closing bracket;
        without tools there is no such key, as some servers refuse an empty list.
        """
        settings = self._settings(left_out)
        messages = [_message(message, request.names, left_out) for message in request.messages]
        parts = [_json(settings)[:-1]]
        if request.tools:
            tools = b",".join(self._tools.get(spec, request.names) for spec in request.tools)
            parts.append(b'"tools":[' + tools + b"]")
        parts.append(b'"messages":' + _json(messages) + b"}")
        optional = (settings.keys() & {_STREAM_OPTIONS, _MAX_TOKENS}) | _extra_names(messages)
        return ChatBody(b",".join(parts), frozenset(optional))

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
        return settings


def _tool(spec: ToolSpec, names: WireNames) -> bytes:
    function = {
        "name": names.encode(spec.name),
        "description": spec.description,
        "parameters": _parameters(spec.parameters),
    }
    return _json({"type": "function", "function": function})


def _parameters(schema: JsonObject) -> JsonObject:
    """Some services refuse an object without ``properties``; for validation it changes nothing."""
    return schema if "properties" in schema else {**schema, "properties": {}}


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
    function = {"name": names.encode(call.name), "arguments": _readable(call.arguments)}
    fields = {"id": call.id, "type": "function", "function": function}
    return fields | _without(call_extra(call.extra), left_out)


def _readable(arguments: str) -> str:
    """Arguments as they came if they are a JSON object, else inside one: servers insist on one."""
    try:
        if not arguments.strip() or isinstance(json.loads(arguments), dict):
            return arguments.strip() or "{}"
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable_arguments": arguments}, ensure_ascii=False)


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


def _json(value: object) -> bytes:
    """Compact JSON in UTF-8; half of a surrogate pair, which UTF-8 cannot hold, becomes ``?``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.encode("utf-8", "replace")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value: {value!r:.80}")
