"""What a fake chat server says, and how it looks on the wire; the server itself is in ``upstream``."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from session_runtime.types import JsonObject, nothing

JSON_TYPE: Final = "application/json"
EVENTS_TYPE: Final = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Pace:
    """When the pieces of a reply leave.

    Before the first byte the server waits ``delay_s`` seconds and for ``gate``; before each piece it
    acquires ``step``. After ``cut_after`` pieces it closes the connection without ending the body; 0
    closes it without any answer.
    """

    delay_s: float = 0.0
    gate: asyncio.Event | None = None
    step: asyncio.Semaphore | None = None
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call by wire name; ``arguments`` are the raw text."""

    name: str
    arguments: str
    id: str
    extra: JsonObject = field(default_factory=nothing)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply that is streamed or not, as the request asks; ``extra`` are more message fields.

    Without ``usage`` the server does not tell any.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: JsonObject | None = None
    finish_reason: str = "stop"
    extra: JsonObject = field(default_factory=nothing)
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class RawReply:
    """A response byte for byte; several pieces are sent one by one in chunks."""

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)


Reply = ChatReply | RawReply


def reply_text(text: str, *, usage: JsonObject | None = None, pace: Pace | None = None) -> Reply:
    """The model answers in words."""
    return ChatReply(text, usage=usage, pace=pace or Pace())


def reply_calls(
    *calls: tuple[str, Mapping[str, Any] | str], text: str = "", pace: Pace | None = None
) -> Reply:
    """The model calls tools: pairs of wire name and arguments, as an object or as raw text."""
    return ChatReply(
        text,
        tuple(
            Call(name, arguments if isinstance(arguments, str) else json.dumps(arguments), f"c{at}")
            for at, (name, arguments) in enumerate(calls)
        ),
        finish_reason="tool_calls",
        pace=pace or Pace(),
    )


def reply_error(
    status: int,
    message: str,
    *,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """The server refuses, with an error object as the well-known services send it."""
    body = json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode()
    return RawReply((body,), status, {"content-type": JSON_TYPE, **(headers or {})})


def reply_bytes(
    *pieces: bytes,
    status: int = 200,
    content_type: str = EVENTS_TYPE,
    headers: Mapping[str, str] | None = None,
    pace: Pace | None = None,
) -> Reply:
    """Anything at all, piece by piece."""
    merged = {"content-type": content_type, **(headers or {})}
    return RawReply(tuple(pieces), status, merged, pace or Pace())


def rendered(reply: Reply, request: JsonObject, number: int) -> RawReply:
    """The bytes of a reply to ``request``, the ``number``-th that arrived."""
    if isinstance(reply, RawReply):
        return reply
    head = {"id": f"chatcmpl-{number}", "created": 0, "model": request.get("model", "model")}
    if request.get("stream"):
        options = request.get("stream_options") or {}
        chunks = _chunks(reply, head, with_usage=bool(options.get("include_usage")))
        pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
        return RawReply(
            (*pieces, b"data: [DONE]\n\n"), 200, {"content-type": EVENTS_TYPE}, reply.pace
        )
    return RawReply(
        (json.dumps(_whole(reply, head)).encode(),), 200, {"content-type": JSON_TYPE}, reply.pace
    )


def _whole(reply: ChatReply, head: JsonObject) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, **reply.extra}
    if reply.calls:
        message["tool_calls"] = [
            _call(call, call.name, call.arguments, call.id) for call in reply.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    whole = {**head, "object": "chat.completion", "choices": [choice]}
    return whole if reply.usage is None else {**whole, "usage": reply.usage}


def _chunks(reply: ChatReply, head: JsonObject, *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Role first, then unknown fields, text word by word, calls in pieces, the end, the usage."""
    frame = {**head, "object": "chat.completion.chunk"}

    def chunk(delta: JsonObject, finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {**frame, "choices": [choice]}

    yield chunk({"role": "assistant", "content": None if reply.calls else ""})
    if reply.extra:
        yield chunk(reply.extra)
    for word in re.findall(r"\S+\s*|\s+", reply.text):
        yield chunk({"content": word})
    for at, call in enumerate(reply.calls):
        yield chunk({"tool_calls": [{"index": at, **_call(call, call.name, "", call.id)}]})
        for piece in _halves(call.arguments):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, reply.finish_reason)
    if with_usage and reply.usage is not None:
        yield {**frame, "choices": [], "usage": reply.usage}


def _call(call: Call, name: str, arguments: str, call_id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **call.extra}


def _halves(text: str) -> Iterator[str]:
    middle = len(text) // 2
    return (piece for piece in (text[:middle], text[middle:]) if piece)
