"""What the fake upstream says on its own: it calls the tool that the question names, and repeats.

The question ``call math__evaluate {"expression": "1+1"}`` makes it call that tool, after loading it
with ``tool_search`` if it must; then it answers with the tool's result. Anything else it echoes.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from session_runtime.testing.conversation import Request, messages_of, question_of, tool_names
from session_runtime.testing.replies import Pace, Reply, reply_calls, reply_text

_ORDER: Final = re.compile(r"\s*call\s+(\S+)\s*(\{.*\})?\s*", re.DOTALL)
_LOADER: Final = "tool_search"


def echo(request: Request, pace: Pace | None = None) -> Reply:
    """The reply that follows from the request alone."""
    question = question_of(request)
    order = _ORDER.fullmatch(question)
    if order is None:
        return reply_text(f"echo: {question}", pace=pace)
    name, arguments = order[1], order[2] or "{}"
    messages = messages_of(request)
    called = _called_since_question(messages)
    if _find(name, called):
        return reply_text(str(messages[-1].get("content")), pace=pace)
    exposed = tool_names(request)
    if wire_name := _find(name, exposed):
        return reply_calls((wire_name, arguments), pace=pace)
    if _LOADER in exposed and _LOADER not in called:
        return reply_calls((_LOADER, {"query": f"select:{name}"}), pace=pace)
    return reply_text(f"there is no tool {name}", pace=pace)


def _called_since_question(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    names: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "user":
            break
        names += [call["function"]["name"] for call in message.get("tool_calls") or ()]
    return names


def _find(name: str, wire_names: Sequence[str]) -> str | None:
    """The wire name of a tool, whatever stands for the dots of its name."""
    wanted = re.sub(r"[^A-Za-z0-9]", "", name)
    same = (wire for wire in wire_names if re.sub(r"[^A-Za-z0-9]", "", wire) == wanted)
    return next(same, None)
