"""How a reply looks as a message of the Messages protocol, streamed or not, and what the service refuses."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from session_runtime.testing.conversation import Request
from session_runtime.testing.replies import (
    EVENTS_TYPE,
    JSON_TYPE,
    ChatReply,
    RawReply,
    Reply,
    edited,
    halves,
    words,
)
from session_runtime.types import JsonObject
from session_runtime.wire.strict import strict_json

_REASONS: Final = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ID: Final = re.compile(r"[A-Za-z0-9_-]+")

Event = dict[str, Any]
Block = Mapping[str, Any]


def as_message(reply: Reply, request: Request, number: int) -> RawReply:
    """The bytes of a reply to ``request``, the ``number``-th that arrived."""
    if isinstance(reply, RawReply):
        return reply
    message = _message(reply, request, number)
    if not request.get("stream"):
        body = json.dumps(edited(reply, "anthropic", [message])[0]).encode()
        return RawReply((body,), 200, {"content-type": JSON_TYPE}, reply.pace)
    pieces = tuple(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        for event in edited(reply, "anthropic", list(_events(message)))
    )
    return RawReply(pieces, 200, {"content-type": EVENTS_TYPE}, reply.pace)


def refused(request: Request) -> RawReply | None:
    """How the service refuses a request that does not keep its rules; None for one that does."""
    said = next(_faults(request), None)
    if said is None:
        return None
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    return RawReply((json.dumps(error).encode(),), 400, {"content-type": JSON_TYPE})


def _message(reply: ChatReply, request: Request, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [dict(item) for item in reply.items]
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        named = {"type": "tool_use", "id": call.id, "name": call.name}
        content.append({**named, "input": _object(call.arguments), **call.extra})
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "model"),
        "content": content,
        "stop_reason": _REASONS.get(reply.finish_reason, reply.finish_reason),
        "stop_sequence": None,
        "usage": _usage(reply.usage or {}),
    }


def _object(arguments: str) -> object:
    """The service parses what a model writes; what it cannot parse it passes on as it is."""
    try:
        return strict_json(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def _usage(usage: JsonObject) -> dict[str, Any]:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return {
        "input_tokens": usage.get("prompt_tokens", 0) - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.get("completion_tokens", 0),
    }


def _events(message: dict[str, Any]) -> Iterator[Event]:
    """The message as it begins, each block as it grows, how it ended."""
    begun = {**message, "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": begun}
    for at, block in enumerate(message["content"]):
        first, deltas = _grown(block)
        yield {"type": "content_block_start", "index": at, "content_block": first}
        yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    counted = {"output_tokens": message["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": ended, "usage": counted}
    yield {"type": "message_stop"}


def _grown(block: Block) -> tuple[dict[str, Any], Sequence[Event]]:
    """How a block begins, and the pieces that follow."""
    match block["type"]:
        case "text":
            pieces = words(block["text"])
            return {"type": "text", "text": ""}, _deltas("text_delta", "text", pieces)
        case "tool_use":
            given = block["input"]
            written = given if isinstance(given, str) else json.dumps(given)
            pieces = ["", *halves(written)] if given else [""]
            begun = {**block, "input": {}}
            return begun, _deltas("input_json_delta", "partial_json", pieces)
        case "thinking":
            thought = _deltas("thinking_delta", "thinking", words(block["thinking"]))
            signed = _deltas("signature_delta", "signature", [block["signature"]])
            return {**block, "thinking": "", "signature": ""}, [*thought, *signed]
        case _:
            return dict(block), ()


def _deltas(kind: str, name: str, pieces: Sequence[str]) -> list[Event]:
    return [{"type": kind, name: piece} for piece in pieces]


def _faults(request: Request) -> Iterator[str]:
    if not isinstance(request.get("max_tokens"), int):
        yield "max_tokens: Field required"
    yield from _faults_of_tools(request.get("tools") or ())
    yield from _faults_of_turns(request.get("messages") or ())


def _faults_of_tools(tools: Sequence[Block]) -> Iterator[str]:
    for at, tool in enumerate(tools):
        schema = tool["input_schema"]
        where = f"tools.{at}.custom.input_schema"
        if any(name in schema for name in _COMBINED):
            yield f"{where}: input_schema does not support oneOf, allOf, or anyOf at the top level"
        if not all(_NAME.fullmatch(name) for name in schema.get("properties") or ()):
            yield f"{where}.properties: Property keys should match pattern"


def _faults_of_turns(turns: Sequence[Block]) -> Iterator[str]:
    """A user begins, users and assistants take turns, no text is blank, each call has its result next."""
    waiting: list[str] = []
    for at, turn in enumerate(turns):
        if turn["role"] != ("assistant" if at % 2 else "user"):
            yield f"messages.{at}: the roles must take turns, a user begins"
        blocks = turn["content"] if isinstance(turn["content"], list) else []
        yield from _faults_of_blocks(at, blocks)
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answered) != sorted(waiting):
            yield f"messages.{at}: tool_use ids and tool_result blocks do not match"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if not all(_NAME.fullmatch(b["name"]) for b in blocks if b["type"] == "tool_use"):
            yield f"messages.{at}: tool_use.name: String should match pattern"
        if not all(map(_ID.fullmatch, waiting)):
            yield f"messages.{at}: tool_use.id: String should match pattern"
        if blocks[:-1] and blocks[-1]["type"] == "thinking":
            yield f"messages.{at}: the final block cannot be `thinking`"
    if not turns:
        yield "messages: at least one message is required"
    if waiting:
        yield "messages: tool_use ids were found without tool_result blocks immediately after"


def _faults_of_blocks(at: int, blocks: Sequence[Block]) -> Iterator[str]:
    if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
        yield f"messages.{at}: text content blocks must contain non-whitespace text"
    if any(block.get("is_error") and not block.get("content") for block in blocks):
        yield f"messages.{at}: tool_result: content cannot be empty if `is_error` is true"
