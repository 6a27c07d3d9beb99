"""The conversation that the load benchmarks play: four turns, one search, three tool calls, an answer.

What the model says depends on the request alone, and so does how long it thinks: the same question
takes the same time in every run, whoever sends it.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from handler_tree import write_tools

from session_runtime.testing.chat_form import as_completion
from session_runtime.testing.conversation import question_of
from session_runtime.testing.replies import Pace, RawReply, reply_calls, reply_text

TURNS = 4
RESULT = "The level at the station was 4.2 m at noon and is falling by 3 cm an hour. " * 6
ANSWER = "The river will stay below the mark of five metres until Thursday, then rain is due. " * 4
STATION = {
    "type": "object",
    "properties": {
        "station": {"type": "string", "description": "Name of the station"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"type": "string", "enum": ["m", "cm"]},
    },
    "required": ["station", "days"],
    "additionalProperties": False,
}
TOOLS = {
    "river.level": (
        "Tells the level of a river.",
        f"async def execute(args, context):\n    return {RESULT!r}\n",
    ),
    "river.forecast": (
        "Tells how the level of a river will change.",
        f"def execute(args, context):\n    return {RESULT!r}\n",
    ),
}
LEVEL, FORECAST = (name.replace(".", "__") for name in TOOLS)
WANTED = {"station": "Old Bridge", "days": 3, "unit": "m"}
REPLIES = (
    reply_calls(("tool_search", {"query": f"select:{','.join(TOOLS)}"})),
    reply_calls((LEVEL, WANTED)),
    reply_calls((LEVEL, {**WANTED, "days": 7}), (FORECAST, WANTED)),
    reply_text(ANSWER),
)


@dataclass(frozen=True)
class Speaker:
    """Plays the model; it thinks for a time between ``shortest_s`` and ``longest_s`` per turn."""

    shortest_s: float
    longest_s: float
    whole: tuple[RawReply, ...]
    streamed: tuple[RawReply, ...]

    def reply(self, request: Mapping[str, Any]) -> RawReply:
        """The reply of the turn that the messages of the request have come to."""
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        prepared = self.streamed if request.get("stream") else self.whole
        thinks_s = self.thinks_s(question_of(request), turn)
        return replace(prepared[turn], pace=Pace(delay_s=thinks_s))

    def thinks_s(self, question: str, turn: int) -> float:
        """How long it waits before it answers."""
        share = zlib.crc32(f"{turn} {question}".encode()) / 2**32
        return self.shortest_s + share * (self.longest_s - self.shortest_s)

    def thinks_in_all_s(self, question: str) -> float:
        """How long it waits in all turns of a question."""
        return sum(self.thinks_s(question, turn) for turn in range(TURNS))


def speaker(shortest_s: float = 0.0, longest_s: float = 0.0) -> Speaker:
    """A speaker whose replies are rendered once."""
    whole = tuple(as_completion(reply, {}, 1) for reply in REPLIES)
    streamed = tuple(as_completion(reply, {"stream": True}, 1) for reply in REPLIES)
    return Speaker(shortest_s, longest_s, whole, streamed)


def write_own_tools(root: Path) -> None:
    """The two tools that the model calls: one runs on the event loop, one in a thread."""
    for name, (description, code) in TOOLS.items():
        write_tools(root, [{"name": name, "description": description, "parameters": STATION}], code)
