"""What a request asks, whichever wire it came on; what is said to it is decided by its reader."""

import json
from collections.abc import Mapping
from typing import Any

Request = Mapping[str, Any]


def messages_of(request: Request) -> list[dict[str, Any]]:
    """The conversation of a request as messages of chat completions; a chained one must be complete."""
    if "messages" in request:
        return [each for message in request["messages"] for each in _said(message)]
    asked = request.get("input") or []
    if isinstance(asked, str):
        return [{"role": "user", "content": asked}]
    return [_message(item) for item in asked]


def question_of(request: Request) -> str:
    """The text of the last user message of a request."""
    contents = [m.get("content") for m in messages_of(request) if m.get("role") == "user"]
    last = contents[-1] if contents else ""
    if isinstance(last, str):
        return last
    return "".join(part.get("text", "") for part in last or ())


def tool_names(request: Request) -> list[str]:
    """The wire names of the function tools of a request, in order."""
    return [tool.get("function", tool)["name"] for tool in request.get("tools") or ()]


def _said(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message of chat completions as it is, one of the Messages protocol as those that it stands for."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    results = [_result(block) for block in blocks if block["type"] == "tool_result"]
    calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    if not results and not calls:
        return [dict(message)]
    rest = [block for block in blocks if block["type"] not in {"tool_result", "tool_use"}]
    if calls:
        return [{"role": "assistant", "content": rest or None, "tool_calls": calls}]
    return [*results, *([{"role": "user", "content": rest}] if rest else [])]


def _result(block: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": block["tool_use_id"],
        "content": block.get("content", ""),
    }


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": block["name"], "arguments": json.dumps(block["input"])}
    return {"id": block["id"], "type": "function", "function": function}


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    match item.get("type", "message"):
        case "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        case "function_call_output":
            return {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
        case "message":
            return {"role": item["role"], "content": item["content"]}
        case _:  # reasoning: says nothing to others
            return {"role": "assistant", "content": None}
