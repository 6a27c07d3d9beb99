"""How a reply looks as an object of the Responses protocol, streamed or not."""

import json
from collections.abc import Iterator
from typing import Any, Final

from session_runtime.testing.replies import (
    EVENTS_TYPE,
    JSON_TYPE,
    ChatReply,
    RawReply,
    edited,
    halves,
    words,
)
from session_runtime.types import JsonObject

_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}
_COUNTS: Final = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "prompt_tokens_details": "input_tokens_details",
    "completion_tokens_details": "output_tokens_details",
}

Event = dict[str, Any]


def as_response(reply: ChatReply, request: JsonObject, number: int) -> RawReply:
    """The bytes of a reply to ``request``, the ``number``-th that arrived."""
    response = _response(reply, request, number)
    if not request.get("stream"):
        body = json.dumps(edited(reply, "responses", [response])[0]).encode()
        return RawReply((body,), 200, {"content-type": JSON_TYPE}, reply.pace)
    pieces = tuple(
        f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': at})}\n\n".encode()
        for at, event in enumerate(edited(reply, "responses", list(_events(response))))
    )
    return RawReply(pieces, 200, {"content-type": EVENTS_TYPE}, reply.pace)


def response_id(number: int) -> str:
    """The id of the response to the ``number``-th request."""
    return f"resp_{number}"


def output_of(reply: ChatReply, number: int) -> list[dict[str, Any]]:
    """The output items of a reply: its own items, its text, its calls."""
    items: list[dict[str, Any]] = [dict(item) for item in reply.items]
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
        items.append({**message, "status": "completed", "content": [part]})
    for at, call in enumerate(reply.calls):
        item = {"id": f"fc_{number}_{at}", "type": "function_call", "status": "completed"}
        named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({**item, **named, **call.extra})
    return items


def _response(reply: ChatReply, request: JsonObject, number: int) -> dict[str, Any]:
    reason = _REASONS.get(reply.finish_reason)
    return {
        "id": response_id(number),
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": request.get("instructions"),
        "model": request.get("model", "model"),
        "output": output_of(reply, number),
        "parallel_tool_calls": True,
        "previous_response_id": request.get("previous_response_id"),
        "store": request.get("store", True),
        "tool_choice": "auto",
        "tools": request.get("tools", []),
        "usage": None if reply.usage is None else _usage(reply.usage),
    }


def _usage(usage: JsonObject) -> dict[str, Any]:
    return {_COUNTS.get(name, name): value for name, value in usage.items()}


def _events(response: dict[str, Any]) -> Iterator[Event]:
    """The response as it begins, each item as it grows, the whole response at the end."""
    begun = {**response, "status": "in_progress", "incomplete_details": None, "output": []}
    yield {"type": "response.created", "response": {**begun, "usage": None}}
    yield {"type": "response.in_progress", "response": {**begun, "usage": None}}
    for at, item in enumerate(response["output"]):
        place = {"output_index": at, "item_id": item.get("id")}
        yield {"type": "response.output_item.added", "output_index": at, "item": _begun(item)}
        if item["type"] == "message":
            yield from _text_events(item["content"][0], {**place, "content_index": 0})
        elif item["type"] == "function_call":
            yield from _argument_events(item, place)
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _begun(item: JsonObject) -> dict[str, Any]:
    """An item as far as it is known before its text or arguments."""
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}
        case _:
            return dict(item)


def _text_events(part: JsonObject, place: JsonObject) -> Iterator[Event]:
    empty = {**part, "text": ""}
    yield {"type": "response.content_part.added", **place, "part": empty}
    for word in words(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": word, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _argument_events(item: JsonObject, place: JsonObject) -> Iterator[Event]:
    for piece in halves(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    whole = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **place, **whole}
