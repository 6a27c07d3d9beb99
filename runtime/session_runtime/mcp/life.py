"""One connection from its first byte to its last: it lists, listens for changes and looks whether all lives.

Which connection comes after it, and when, is decided in ``connection``.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from session_runtime.config.mcp import McpServer
from session_runtime.errors import SessionRuntimeError
from session_runtime.mcp.backoff import Backoff
from session_runtime.mcp.base import Listing
from session_runtime.mcp.client import Agreeing, Client, Watching, connect
from session_runtime.mcp.discover import discover
from session_runtime.mcp.faults import Fault, said_by
from session_runtime.mcp.masking import kept_from_results
from session_runtime.mcp.pace import Pace
from session_runtime.mcp.stderr_log import Shown
from session_runtime.mcp.transport import Line
from session_runtime.types import JsonObject

ANSWERS_S: Final = 2.0
LEAST_TTL_S: Final = 1.0
_PROBE_PART: Final = 0.4  # of the time to connect, so that enough is left for a handshake

_log = logging.getLogger(__name__)


class Over(Exception):
    """The connection came to its end; the text says how, if that is known already.

    ``at_once``: a new one can be made at once.
    """

    def __init__(self, how: str, *, at_once: bool = False) -> None:
        super().__init__(how)
        self.at_once: Final = at_once


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom a connection tells: ``ready`` with its first list, then ``listed`` with each further one.

    ``not_listed`` gets the reason why a further list could not be had. ``ending`` comes, with what is known
    of it, as soon as no call can be made any more; until nothing is left may take a while. ``calls`` counts
    those under way, ``jitter`` gives random numbers from 0 to 1.
    """

    ready: Callable[[Client, Listing], None]
    listed: Callable[[Listing], None]
    not_listed: Callable[[str], None]
    ending: Callable[[str], None]
    schema_of: Callable[[str], JsonObject | None]
    calls: Callable[[], int]
    jitter: Callable[[], float]


class Life:
    """Runs in one task, which enters and leaves the client of the SDK; the rest may come from any task.

    ``probe_first``: ask the server first whether it speaks the newer generation of the protocol, where its
    settings leave that open.
    """

    def __init__(
        self,
        name: str,
        settings: McpServer,
        line: Line,
        owner: Owner,
        shown: Shown,
        *,
        probe_first: bool = True,
    ) -> None:
        self.line: Final = line
        self.agreed = False
        self._probe_first = probe_first
        self._name = name
        self._settings = settings
        self._owner = owner
        self._shown = shown
        self._backoff = Backoff(owner.jitter)
        self._now = asyncio.get_running_loop().time
        self._poked = asyncio.Event()
        self._changed = False
        self._changes = Pace(LEAST_TTL_S)
        self._suspected = False
        self._suspected_when_idle = False
        self._over: Over | None = None
        self._next: asyncio.Future[None] | None = None
        self._list_at: float | None = None

    @property
    def broke(self) -> bool:
        """Whether the server ended before both had agreed on a revision of the protocol."""
        return self._over is not None and not self.agreed

    async def live(self) -> None:
        """Connect, and stay until there is no connection any more; always raises."""
        watching = Watching(self._on_change, self._on_end, self._owner.schema_of)
        settings = self._settings
        agreeing = Agreeing(
            settings.protocol, settings.connect_timeout_s * _PROBE_PART, self._probe_first
        )
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(settings.connect_timeout_s):
                    client = await stack.enter_async_context(
                        connect(self.line.streams, agreeing, watching, self.line.fault_in)
                    )
            except TimeoutError as error:
                limit = f"{settings.connect_timeout_s:g} s (connect_timeout_s)"
                raise Over(f"it did not answer within {limit}") from error
            self.agreed = True
            listing = await self._first_listing(client)
            self._owner.ready(client, listing)
            watch = asyncio.create_task(
                client.watch(self._on_change), name=f"changes of {self._name}"
            )
            stack.push_async_callback(_ended, watch)
            await self._tend(client)

    async def refresh(self) -> None:
        """List the tools anew; all who wait for the same listing share it. Ends with the connection too."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        self._poked.set()
        await asyncio.wait((self._next,))

    def note(self, fault: Fault) -> None:
        """Draw conclusions from what became of a call."""
        match fault.kind:
            case "expired":
                self._end(Over("it no longer knows the session", at_once=True))
            case "unreachable" | "lost":
                self._suspected = True
                self._poked.set()

    def suspect_when_idle(self) -> None:
        """Ask for a sign of life once no call is under way: a server may be unable to give one meanwhile."""
        self._suspected_when_idle = True

    def call_ended(self) -> None:
        """A call that was under way is over."""
        self._poked.set()

    def close(self) -> None:
        """Let go of all who wait: the connection is over."""
        waiting, self._next = self._next, None
        _release(waiting)

    def _on_change(self) -> None:
        self._changed = True
        self._poked.set()

    def _on_end(self, why: str) -> None:
        self._end(Over(why))

    def _end(self, over: Over) -> None:
        self._over = self._over or over
        self._owner.ending(str(over))
        self._poked.set()

    async def _tend(self, client: Client) -> None:
        """Wait for something to do, and do it."""
        while True:
            await self._wait(self._next_look_at(client))
            if self._over is not None:
                await self._answered(self._over)
                raise self._over
            if self._is_list_due():
                await self._list(client)
            if self._suspected or self._is_silent(client) or self._is_idle_and_suspected():
                await self._ping(client)

    async def _answered(self, over: Over) -> None:
        """Wait for what a server that only lost the session has to say about the calls under way."""
        until = self._now() + ANSWERS_S
        while over.at_once and self._owner.calls() and self._now() < until:
            await self._wait(until)

    async def _wait(self, until: float | None) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._poked.wait()
        except TimeoutError:
            pass
        self._poked.clear()

    def _next_look_at(self, client: Client) -> float | None:
        moments = [] if self._list_at is None else [self._list_at]
        if self._changed and self._changes.next_at is not None:
            moments.append(self._changes.next_at)
        if self._settings.heartbeat_s:
            silent_at = client.answered_at + self._settings.heartbeat_s
            if silent_at <= self._now():  # it is busy with a call
                silent_at = self._now() + self._settings.heartbeat_s
            moments.append(silent_at)
        return min(moments, default=None)

    def _is_list_due(self) -> bool:
        """Whether somebody here waits for a list, it is too old, or the server says that it changed."""
        now = self._now()
        if self._next is not None or (self._list_at is not None and now >= self._list_at):
            return True
        return self._changed and self._changes.is_due(now)

    def _is_silent(self, client: Client) -> bool:
        """Whether the server must be asked if it lives; one that is busy with a call may be unable to say."""
        period = self._settings.heartbeat_s
        silent = period > 0 and self._now() >= client.answered_at + period
        return silent and not self._owner.calls()

    def _is_idle_and_suspected(self) -> bool:
        return self._suspected_when_idle and not self._owner.calls()

    async def _ping(self, client: Client) -> None:
        self._suspected = self._suspected_when_idle = False
        limit = self._settings.connect_timeout_s
        try:
            async with asyncio.timeout(limit):
                await client.ping()
        except TimeoutError:
            self._end(Over(f"it showed no life for {limit:g} s when asked for a sign"))
        except Fault as fault:
            self._end(Over(self._shown(str(fault)), at_once=fault.kind == "expired"))

    async def _first_listing(self, client: Client) -> Listing:
        waiting, self._next, self._changed = self._next, None, False
        try:
            return await self._discover(client)
        finally:
            _release(waiting)

    async def _list(self, client: Client) -> None:
        """List anew; the old list stays where that fails, and it is tried again after a while."""
        waiting, told = self._next, self._changed
        self._next, self._changed = None, False
        if told:
            self._changes.begin(self._now())
        try:
            self._owner.listed(await self._discover(client))
            self._backoff.reset()
        except Over as failed:
            if self._over is None:
                self._list_at = self._now() + max(self._backoff.next_s(), LEAST_TTL_S)
                self._owner.not_listed(str(failed))
        finally:
            if told:
                self._changes.end(self._now())
            _release(waiting)

    async def _discover(self, client: Client) -> Listing:
        """All tools; raises Over with the reason."""
        limit = self._settings.list_timeout_s
        try:
            async with asyncio.timeout(limit):
                discovered = await discover(
                    self._name, client.page, self._shown, kept_from_results(self._settings)
                )
        except TimeoutError as error:
            raise Over(f"it did not list its tools within {limit:g} s (list_timeout_s)") from error
        except (Fault, SessionRuntimeError) as error:
            self._end_if_expired(error)
            raise Over(f"its tools cannot be listed: {said_by(error, self._shown)}") from error
        self._list_at = self._renewal_at(discovered.ttl_s)
        return discovered.listing

    def _end_if_expired(self, error: Exception) -> None:
        if isinstance(error, Fault):
            self.note(error)

    def _renewal_at(self, ttl_s: float | None) -> float | None:
        """When the list is too old: as configured, or earlier where the server says so."""
        periods = [self._settings.refresh_ttl_s] if self._settings.refresh_ttl_s else []
        if ttl_s:
            periods.append(max(ttl_s, LEAST_TTL_S))
        return self._now() + min(periods) if periods else None


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("%s: changes are no longer noticed", task.get_name(), exc_info=error)


def _release(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
