"""What tests of calls that wait for a person share: destructive tools that record what they ran with."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from session_runtime import AskRequest, AskResult, Identity, Runtime
from session_runtime.types import ToolFinished
from tests.support import Asked, opened, scripted, tool_folder, write_handler

RECORDS = """
async def execute(args, context):
    context.resources["ran"].append((context.call_id, args))
    return {"gone": args}
"""
FIELDS = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "to": {"type": "string"}},
    "required": ["n"],
}
ANN = Identity("ann", frozenset({"staff"}))


@dataclass
class Home:
    """A folder with tools and a script, and what ran of the tools."""

    folder: Path
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def write(self, name: str, **changes: Any) -> None:
        write_handler(
            self.folder / "tools",
            name,
            **{"parameters": FIELDS, "code": RECORDS, "runtime": {"destructive": True}} | changes,
        )

    def config(self, *replies: Mapping[str, Any], extra: str = "", prefetch: str = "") -> str:
        skills = f"[skills]\nprefetch_tools = [{prefetch}]\n"
        tools = f"{tool_folder(self.folder)}bundled = false\n"
        return f"{skills}{tools}{scripted(self.folder, *replies)}{extra}"

    @asynccontextmanager
    async def open(self, *replies: Mapping[str, Any], **options: Any) -> AsyncIterator[Runtime]:
        config = self.config(*replies, **options)
        async with opened(self.folder, config, resources={"ran": self.ran}) as runtime:
            yield runtime

    @property
    def arguments(self) -> list[dict[str, Any]]:
        return [arguments for _, arguments in self.ran]


def following(result: AskResult, **fields: Any) -> AskRequest:
    """The request that says yes to everything, unless told otherwise."""
    tokens = [call.token for call in result.pending]
    agreed = {"confirmations": tokens, "history": result.new_messages, **fields}
    return AskRequest("yes, please", **agreed)


def texts(asked: Asked) -> list[str]:
    return [str(m.content) for m in asked.result.new_messages if m.role == "tool"]


def codes(asked: Asked) -> list[str | None]:
    return [event.error_code for event in asked.of(ToolFinished)]
