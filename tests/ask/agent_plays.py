"""Asks with sub-agents for tests: a model service where each of them has replies of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from session_runtime import AskRequest
from session_runtime.ask.service import AskService
from session_runtime.testing.replies import Reply, reply_calls
from session_runtime.testing.upstream import Upstream
from session_runtime.trace.record import AskRecord
from tests.support import Asked, ask, chat_profile, opened

CONFIG = "[handlers]\nbundled = false\npaths = [{tools!r}]\n[skills]\nprefetch_tools = []\n{more}\n"
SHARED = 'tools = ["shared"]\n'
BY = "async def execute(args, context):\n    return context.call_id + ' ' + context.idempotency_key\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


class Play:
    """A model service where each agent has its own replies, found by its prompt; "" is the ask's."""

    def __init__(self, replies: Mapping[str, list[Reply]]) -> None:
        self.requests: dict[str, list[Any]] = {name: [] for name in replies}
        self._replies = {name: list(queue) for name, queue in replies.items()}

    def __call__(self, request: Any) -> Reply:
        first = request["messages"][0]
        name = first["content"] if first["content"] in self._replies else ""
        self.requests[name].append(request)
        return self._replies[name].pop(0)

    def add(self, name: str, reply: Reply) -> None:
        """One more reply, which could not be made before there was an event loop."""
        self._replies[name].append(reply)

    def tools(self, name: str, turn: int = 0) -> list[str]:
        return [tool["function"]["name"] for tool in self.requests[name][turn].get("tools", ())]

    def said(self, name: str) -> str:
        """What the last request of one of them ended with."""
        return str(self.requests[name][-1]["messages"][-1]["content"])


async def played(
    folder: Path, play: Play, *, more: str = "", request: AskRequest | None = None
) -> Asked:
    async with Upstream(play) as upstream:
        config = CONFIG.format(tools=str(folder / "tools"), more=more)
        async with opened(folder, config + chat_profile(upstream.base_url)) as runtime:
            return await ask(runtime, request or AskRequest(text="go"))


async def recorded(folder: Path, play: Play, more: str = "") -> AskRecord:
    """What the trace is told of the ask."""
    records: list[AskRecord] = []
    async with Upstream(play) as upstream:
        config = CONFIG.format(tools=str(folder / "tools"), more=more)
        async with opened(folder, config + chat_profile(upstream.base_url)) as runtime:
            service = AskService(runtime._builder.generations, records.append, {})
            await service.ask(AskRequest(text="go"))
    return records[0]


def calls(name: str, **arguments: Any) -> Reply:
    return reply_calls((name, arguments))
