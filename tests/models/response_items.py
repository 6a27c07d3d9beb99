"""Bodies and input items of Responses requests, as tests expect them."""

import json
from typing import Any

from session_runtime.models.base import ModelRequest
from session_runtime.models.extras import RESPONSES_ITEMS
from session_runtime.models.http_body import Body
from session_runtime.models.responses_body import CHAIN, Chain, ResponsesBodyWriter
from session_runtime.types import Message, ToolCall
from tests.models.building import profile, request, tool

ORIGIN = "here"
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
INCLUDE = ["reasoning.encrypted_content"]
CALLS = (ToolCall("a", "web.search", '{"q": "猫"}'), ToolCall("b", "gone.tool", "{broken"))


def kept(*items: Any, origin: str = ORIGIN) -> dict[str, Any]:
    return {RESPONSES_ITEMS: {"origin": origin, "items": list(items)}}


def written(
    asked: ModelRequest, *left_out: str, chain: Chain | None = None, **settings: Any
) -> Body:
    writer = ResponsesBodyWriter(profile("http://model.test/v1", **settings), ORIGIN)
    return writer.write(asked, chain or Chain(), frozenset(left_out))


def sent(asked: ModelRequest, *left_out: str, **more: Any) -> Any:
    return json.loads(written(asked, *left_out, **more).content)


def inputs(*messages: Message) -> Any:
    """The input items of a whole conversation with these messages."""
    return sent(request(*messages, tools=[tool("web.search")]), CHAIN)["input"]


def answered(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, **more}


def called(call_id: str, name: str = "web__search", arguments: str = "{}") -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id}
    return {**item, "name": name, "arguments": arguments}


def asked_in_words(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
