"""One connection to one server with one credential, which may be replaced by a new one.

How a connection is kept is decided in ``connection``; which generations share a session, in ``pool``.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from session_runtime.config.mcp import McpServer
from session_runtime.mcp.base import Health, Link, Listing, OnProgress
from session_runtime.mcp.callers import OWN
from session_runtime.mcp.stderr_log import FOLDER
from session_runtime.trace_context import TraceContext

READY: Final = "ready"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a session connects to: a server with one of its credentials, or ``OWN``.

    ``folder`` is where a command runs that names none, ``state_dir`` where its log is kept. ``key`` is equal
    for those that one connection can serve.
    """

    server: str
    credential: str
    settings: McpServer
    folder: Path
    state_dir: Path
    key: str

    @property
    def name(self) -> str:
        """What logs call it."""
        return self.server if self.credential == OWN else f"{self.server}/{self.credential}"

    @property
    def log(self) -> Path:
        """The file of what a command writes to its standard error."""
        return self.state_dir / FOLDER / f"{self.name.replace('/', '.')}.log"


OpenLink = Callable[[Wanted, Callable[[], None]], Link]
"""Makes a connection that is not started; it calls what it is given whenever its list is another one."""


class Session:
    """Keeps the connection of ``wanted`` until it is closed.

    ``known`` is a list of the same server that holds until the first own one is there; ``changed`` is
    called for each list that differs from the one before.
    """

    def __init__(
        self,
        wanted: Wanted,
        open_link: OpenLink,
        known: Listing | None,
        changed: Callable[[], None],
    ) -> None:
        self.wanted = wanted
        self._open_link = open_link
        self._changed = changed
        self._known = None if known is None else replace(known, stale=True)
        self._told = None if known is None else known.content
        self._restarts = 0
        self._restarting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._link = open_link(wanted, self._on_list)
        self._link.start()

    @property
    def listing(self) -> Listing | None:
        """The last good list of tools; None before the first."""
        return self._link.listing or self._known

    @property
    def health(self) -> Health:
        """How the connection is now; restarts on demand are counted with the others."""
        health = self._link.health
        return replace(health, restarts=health.restarts + self._restarts)

    @property
    def ready(self) -> bool:
        """Whether calls can be made."""
        return self._link.health.state == READY

    async def settled(self) -> None:
        """Wait until the first attempt is over, however it ends."""
        await self._link.settled()

    async def refresh(self) -> None:
        """List the tools again."""
        await self._link.refresh()

    async def restart(self) -> None:
        """End the connection and the process behind it, and begin a new one; calls under way are lost.

        Who asks meanwhile shares it, and it goes on if they are cancelled.
        """
        if self._closing is not None:
            return
        if self._restarting is None or self._restarting.done():
            self._restarting = asyncio.create_task(
                self._begin_anew(), name=f"restart of {self.wanted.name}"
            )
        await asyncio.shield(self._restarting)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        on_progress: OnProgress,
        trace: TraceContext | None = None,
    ) -> object:
        """Call a tool; raises what ``Link.call`` does."""
        return await self._link.call(tool, arguments, key, on_progress, trace)

    async def aclose(self) -> None:
        """End the connection for good; that goes on if who asks for it is cancelled."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end(), name=f"end of {self.wanted.name}")
        await asyncio.shield(self._closing)

    async def _begin_anew(self) -> None:
        self._known = None if self.listing is None else replace(self.listing, stale=True)
        self._restarts += 1
        old, self._link = self._link, self._open_link(self.wanted, self._on_list)
        await old.aclose()
        if self._closing is None:
            self._link.start()

    async def _end(self) -> None:
        if self._restarting is not None:
            await asyncio.wait((self._restarting,))
        await self._link.aclose()

    def _on_list(self) -> None:
        told = None if self.listing is None else self.listing.content
        if told != self._told:
            self._told = told
            self._changed()
