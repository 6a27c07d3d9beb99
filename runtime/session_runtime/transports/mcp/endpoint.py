"""``/mcp`` of the HTTP server, without the SDK: that is imported when it is wanted first."""

import asyncio
import importlib
import logging
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from starlette.types import Receive, Scope, Send

from session_runtime.errors import TransientError
from session_runtime.threads import in_thread
from session_runtime.transports.mcp.callers import Callers

PRINCIPAL: Final = "session_runtime.principal"
"""Where the scope of a request holds the principal that it was let in as."""

ENTRY: Final = "session_runtime.entry"
"""Where it holds how that principal came in."""

BODY: Final = "session_runtime.body"
"""Where it holds the body, which was read and is bounded; empty if there is none."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How many sessions there may be, of one principal and in all, and how long one may be idle."""

    most: int = 512
    most_per_principal: int = 64
    most_listening: int = 16
    idle_s: float = 1800.0


LIMITS: Final = SessionLimits()


class McpEndpoint:
    """An ASGI application; ``serve`` owns what it needs, and must run for it to answer."""

    def __init__(self, callers: Callers, limits: SessionLimits = LIMITS) -> None:
        self._callers = callers
        self._limits = limits
        self._wanted = asyncio.Event()
        self._sessions: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, which was let in and whose size is bounded.

        Raises TransientError (``busy.stopping``) once ``serve`` is over.
        """
        self._wanted.set()
        scope = {**scope, ENTRY: self._callers.entry(scope[PRINCIPAL])}  # before keys can change
        sessions = await asyncio.shield(self._sessions)
        await sessions.handle(scope, receive, send)

    async def serve(self, stop: asyncio.Event) -> None:
        """Answer requests until ``stop`` is set; then all sessions end."""
        try:
            await self._serve(stop)
        finally:
            self._end()

    async def _serve(self, stop: asyncio.Event) -> None:
        if self._callers.generation.settings.http.mcp:
            self._wanted.set()
        if not await _first_of(self._wanted, stop):
            return
        name = "session_runtime.transports.mcp.streamable"
        importing = partial(
            importlib.import_module, name
        )  # a second of work, 60 MB: only if wanted
        try:
            module = await in_thread("import the MCP SDK", importing)
            sessions = module.HttpSessions(self._callers, self._limits)
        except Exception as error:  # noqa: BLE001 - without this door the others go on
            _log.exception("the MCP SDK cannot be used")
            self._fail(error)
            return
        async with sessions.running():
            self._sessions.set_result(sessions)
            await stop.wait()

    def _end(self) -> None:
        """Answer nobody any more, neither who waits nor who comes later."""
        if self._sessions.done():
            if self._sessions.exception() is not None:
                return
            self._sessions = asyncio.get_running_loop().create_future()
        self._fail(TransientError("the daemon is stopping; ask again later", code="busy.stopping"))

    def _fail(self, error: Exception) -> None:
        self._sessions.set_exception(error)
        self._sessions.exception()  # whether or not a request ever waits for it


async def _first_of(wanted: asyncio.Event, stop: asyncio.Event) -> bool:
    """Whether ``wanted`` was set before ``stop``."""
    waits = [asyncio.create_task(event.wait(), name="wait") for event in (wanted, stop)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return not stop.is_set()
