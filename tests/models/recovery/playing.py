"""A model that writes texts, read by a recovering one, for tests of what becomes of them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.models.recovery import Dialect, RecoveringModel
from session_runtime.registry.names import build_wire_names
from session_runtime.types import Message, ToolCall
from tests.models.building import properties, tool

TEXT = {"type": "string"}
WEATHER = tool(
    "weather.today",
    parameters=properties(
        city=TEXT,
        days={"type": "integer"},
        detail={"type": "boolean"},
        tags={"type": "array"},
        where={"type": "object"},
    ),
)
EXPOSED = (
    tool("send_message", parameters=properties(text=TEXT)),
    tool("end"),
    WEATHER,
    tool("files.write", parameters=properties(path=TEXT, content=TEXT)),
)
NAMES = build_wire_names((*(spec.name for spec in EXPOSED), "stocks.price"), "__")


@dataclass
class Writer:
    """Tells its pieces one by one; the reply has their text, and may have calls of its own."""

    pieces: Sequence[str]
    calls: tuple[ToolCall, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = "stop"

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        for piece in self.pieces:
            on_text(piece)
        text = "".join(self.pieces)
        return ModelReply(
            text, self.calls, finish_reason=self.finish_reason, extra=self.extra, carry=self
        )

    async def aclose(self) -> None:
        pass


async def played(
    pieces: Sequence[str], dialect: Dialect | None = None, **reply: Any
) -> tuple[ModelReply, list[str]]:
    """The reply of a recovering model and the pieces that it told."""
    told: list[str] = []
    model = RecoveringModel(Writer(pieces, **reply), dialect or Dialect())
    request = ModelRequest((Message("user", "hello"),), EXPOSED, NAMES)
    return await model.reply(request, told.append), told


def called(reply: ModelReply) -> tuple[tuple[str, Any], ...]:
    """Names and values of the calls; nothing at all counts as no values."""
    return tuple((call.name, json.loads(call.arguments or "{}")) for call in reply.calls)


def decoded(values: Any) -> Any:
    """Values of which a whole may have been encoded twice."""
    return json.loads(values) if isinstance(values, str) else values
