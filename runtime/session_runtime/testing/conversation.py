"""What a request asks, whichever wire it came on; what is said to it is decided by its reader."""

from collections.abc import Mapping
from typing import Any

Request = Mapping[str, Any]


def messages_of(request: Request) -> list[dict[str, Any]]:
    """The conversation of a request as messages of chat completions; a chained one must be complete."""
    if "messages" in request:
        return list(request["messages"])
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
