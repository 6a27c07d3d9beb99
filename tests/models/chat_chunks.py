"""Chunks of streamed chat completions for tests, and an assembly that reads them."""

import json
from typing import Any

from session_runtime.models.faults import Api, Endpoint
from session_runtime.models.reading import ReplyReader
from session_runtime.models.stream import ReplyAssembly
from session_runtime.registry.names import build_wire_names

NAMES = build_wire_names(["web.search", "mail.send"], "__")
WHERE = Endpoint("http://model.test/v1", (), Api("chat completions", "/chat/completions"))
EVENTS = "text/event-stream"


def read(*pieces: bytes, content_type: str = EVENTS, taken: frozenset[str] = frozenset()) -> Any:
    told: list[str] = []
    assembly = ReplyAssembly(WHERE)
    reader = ReplyReader(WHERE, content_type, assembly, told.append)
    for piece in pieces:
        reader.feed(piece)
    reader.close()
    reply = assembly.reply(NAMES, taken)
    assert "".join(told) == reply.text
    return reply


def stream(*deltas: Any, reason: str | None = "stop", done: bool = True, **last: Any) -> bytes:
    """Chunks with these deltas; a delta that is a list stands for the tool calls of one."""
    chunks = [
        {"choices": [{"index": 0, "delta": {"tool_calls": d} if isinstance(d, list) else d}]}
        for d in deltas
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **last})
    lines = [f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def piece(name: str | None = None, arguments: Any = None, **marks: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments, "parameters": marks.pop("parameters", None)}
    return {**marks, "function": {k: v for k, v in function.items() if v is not None}}
