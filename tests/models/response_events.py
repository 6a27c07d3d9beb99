"""Events and answers of the Responses protocol for tests, and an assembly that reads them."""

import json
from typing import Any

from session_runtime.models.base import ModelReply
from session_runtime.models.faults import Api, Endpoint
from session_runtime.models.reading import ReplyReader
from session_runtime.models.responses_reply import ResponseAssembly
from session_runtime.registry.names import build_wire_names

NAMES = build_wire_names(["web.search", "mail.send"], "__")
WHERE = Endpoint("http://model.test/v1", (), Api("Responses", "/responses"))


def gathered(body: bytes, *cuts: int, content_type: str = "text/event-stream") -> Any:
    """The assembly that a body fills, cut at these places, and the text told meanwhile."""
    told: list[str] = []
    assembly = ResponseAssembly(WHERE)
    reader = ReplyReader(WHERE, content_type, assembly, told.append)
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        reader.feed(body[start:end])
    reader.close()
    return assembly, told


def read(body: bytes, *, taken: frozenset[str] = frozenset()) -> ModelReply:
    assembly, told = gathered(body)
    reply: ModelReply = assembly.reply(NAMES, taken, "origin")
    assert "".join(told) == reply.text
    return reply


def sse(*events: Any) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def text(delta: str, kind: str = "output_text") -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": 0, "item_id": "m", "delta": delta}


def completed(*output: Any, **more: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "status": "completed", "output": list(output), **more}
    return {"type": "response.completed", "response": response}


def message(said: str, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": said, "annotations": []}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part], **more}


def call(call_id: str, arguments: Any, **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id}
    return {**item, "name": "web__search", "arguments": arguments, **more}


def added(item: Any, at: int | None = 0) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": at, "item": item}


def done(item: Any, at: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def piece(delta: Any, item: str | None = None, at: int | None = 0) -> dict[str, Any]:
    kind = "response.function_call_arguments.delta"
    return {"type": kind, "output_index": at, "item_id": item, "delta": delta}


def whole(arguments: Any, item: str | None = None, at: int | None = 0) -> dict[str, Any]:
    kind = "response.function_call_arguments.done"
    return {"type": kind, "output_index": at, "item_id": item, "arguments": arguments}
