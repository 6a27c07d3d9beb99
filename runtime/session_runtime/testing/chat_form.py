"""How a reply looks as a chat completion, streamed or not."""

import json
from collections.abc import Iterator
from typing import Any

from session_runtime.testing.replies import (
    EVENTS_TYPE,
    JSON_TYPE,
    Call,
    ChatReply,
    RawReply,
    Reply,
    edited,
    halves,
    words,
)
from session_runtime.types import JsonObject


def as_completion(reply: Reply, request: JsonObject, number: int) -> RawReply:
    """The bytes of a reply to ``request``, the ``number``-th that arrived."""
    if isinstance(reply, RawReply):
        return reply
    head = {"id": f"chatcmpl-{number}", "created": 0, "model": request.get("model", "model")}
    if request.get("stream"):
        options = request.get("stream_options") or {}
        chunks = list(_chunks(reply, head, with_usage=bool(options.get("include_usage"))))
        chunks = edited(reply, "chat", chunks)
        pieces = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
        return RawReply(
            (*pieces, b"data: [DONE]\n\n"), 200, {"content-type": EVENTS_TYPE}, reply.pace
        )
    whole = edited(reply, "chat", [_whole(reply, head)])
    body = json.dumps(whole[0]).encode()
    return RawReply((body,), 200, {"content-type": JSON_TYPE}, reply.pace)


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
    for word in words(reply.text):
        yield chunk({"content": word})
    for at, call in enumerate(reply.calls):
        yield chunk({"tool_calls": [{"index": at, **_call(call, call.name, "", call.id)}]})
        for piece in halves(call.arguments):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, reply.finish_reason)
    if with_usage and reply.usage is not None:
        yield {**frame, "choices": [], "usage": reply.usage}


def _call(call: Call, name: str, arguments: str, call_id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function, **call.extra}
