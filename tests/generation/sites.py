"""A live configuration whose servers of tools are on a switchboard of the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from session_runtime.app.reader import ConfigReader
from session_runtime.app.runtime import bundled_handlers
from session_runtime.config.live import LiveConfig
from session_runtime.config.receipt import Receipt
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.mcp.base import Listing
from session_runtime.registry.approvals import Approvals, open_approvals
from session_runtime.registry.registry import Registry
from tests.mcp.links import Switchboard
from tests.support import write_config

NOTHING_ELSE = "[handlers]\nbundled = false\n[skills]\nprefetch_tools = []\n"


def servers(*names: str, wait_s: float = 30.0, **more: str) -> str:
    """The configuration of servers, with more lines for some of them."""
    tables = [f'[mcp.servers.{name}]\ncommand = "x"\n{more.get(name, "")}\n' for name in names]
    return "".join([NOTHING_ELSE, f"[mcp]\nwait_s = {wait_s}\n", *tables])


@dataclass
class Site:
    """A live configuration whose servers are on a switchboard."""

    folder: Path
    board: Switchboard
    builder: GenerationBuilder
    live: LiveConfig
    approvals: Approvals

    @property
    def generation(self) -> Generation:
        return self.builder.generations.current

    @property
    def tools(self) -> list[str]:
        return [spec.name for spec in self.generation.catalog.specs]

    async def edit(self, text: str) -> Receipt:
        write_config(self.folder, text)
        return await self.live.reload("watch")


@asynccontextmanager
async def site(
    folder: Path, text: str, *, state: bool = False, **answers: Listing | None
) -> AsyncIterator[Site]:
    """With ``state``, what was approved is kept below the folder."""
    board = Switchboard(answers)
    read = ConfigReader(write_config(folder, text), {})
    approvals = open_approvals(folder / "state") if state else Approvals()
    builder = GenerationBuilder(
        Registry(), bundled_handlers(), open_link=board, approvals=approvals
    )
    live = LiveConfig(read, builder)
    await live.start(read())
    try:
        yield Site(folder, board, builder, live, approvals)
    finally:
        await live.aclose()
        await builder.generations.aclose()
        await approvals.aclose()
        assert board.alive == []
