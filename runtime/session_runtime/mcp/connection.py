"""Keeps the connection to one server with one credential: makes it, and makes it anew when it is lost.

What happens while there is one is decided in ``life``. This module stands on the SDK, whose import takes
a second or two: ``pool`` imports it in a thread, and only where servers are configured.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from session_runtime.config.mcp import McpServer
from session_runtime.errors import SessionRuntimeError, TransientError
from session_runtime.mcp.backoff import Backoff
from session_runtime.mcp.base import Health, Listing, OnProgress, State
from session_runtime.mcp.callers import OWN
from session_runtime.mcp.calls import call_tool
from session_runtime.mcp.client import Client
from session_runtime.mcp.faults import Fault, leaves, said_by
from session_runtime.mcp.life import Life, Over, Owner
from session_runtime.mcp.masking import kept_from_results, secrets_of
from session_runtime.mcp.session import Wanted
from session_runtime.mcp.stderr_log import FOLDER, Shown
from session_runtime.mcp.transport import Line, Place, open_line
from session_runtime.mcp.way_out import with_way_out
from session_runtime.registry.invoke.timing import SILENT
from session_runtime.trace_context import TraceContext
from session_runtime.types import JsonObject

HEALTHY_S: Final = 30.0
STOP_S: Final = 20.0
_MAX_NAME_CHARS: Final = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Edges:
    """What stands between a connection and the world, so that tests can stand there instead.

    ``wall`` is the time in seconds since 1970, ``jitter`` gives random numbers from 0 to 1.
    """

    open_line: Callable[[Place, McpServer, Shown], Line] = open_line
    wall: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random


EDGES: Final = Edges()


def open_connection(wanted: Wanted, changed: Callable[[], None]) -> "Connection":
    """Make a connection that is not started; ``changed`` is called when its list or state is another one."""
    settings = wanted.settings
    if wanted.credential != OWN:
        own = settings.credentials[wanted.credential]
        settings = settings.model_copy(
            update={
                "env": {**settings.env, **own.env},
                "headers": {**settings.headers, **own.headers},
            }
        )
    return Connection(
        Place(wanted.name, wanted.folder, wanted.state_dir / FOLDER), settings, changed
    )


class Connection:
    """A ``Link``: the server at ``place`` with its settings, those of a credential applied.

    ``on_change`` is called, on the event loop, whenever the listing or the state became another one. An
    owner task of its own makes one ``Life`` after the other.
    """

    def __init__(
        self,
        place: Place,
        settings: McpServer,
        on_change: Callable[[], None],
        edges: Edges = EDGES,
    ) -> None:
        self._place = place
        self._settings = settings
        self._on_change = on_change
        self._edges = edges
        self._shown = Shown(secrets_of(settings))
        self._kept = kept_from_results(settings)
        self._probe_first = True
        self._asked_both_ways = False
        self._owner = Owner(
            self._ready,
            self._listed,
            self._not_listed,
            self._ending,
            self._schema_of,
            self._under_way,
            edges.jitter,
        )
        self._health = Health("connecting", edges.wall())
        self._listing: Listing | None = None
        self._schemas: Mapping[str, JsonObject] = {}
        self._calls = 0
        self._life: Life | None = None
        self._client: Client | None = None
        self._retry_at: float | None = None
        self._settled = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def listing(self) -> Listing | None:
        """The last good list of tools; None before the first."""
        return self._listing

    @property
    def health(self) -> Health:
        """How it is now."""
        life = self._life
        return replace(
            self._health,
            calls=self._calls,
            skipped_lines=self._skipped(),
            pid=None if life is None else life.line.pid(),
            retry_in_s=None if self._retry_at is None else max(0.0, self._retry_at - _now()),
        )

    def _skipped(self) -> int:
        on_line = 0 if self._life is None else self._life.line.skipped()
        return on_line if self._client is None else on_line + self._client.skipped

    def start(self) -> None:
        """Begin to connect, and from then on to keep the connection."""
        self._keeper = asyncio.create_task(self._keep(), name=f"server {self._place.name}")
        self._keeper.add_done_callback(self._given_up)

    async def settled(self) -> None:
        """Wait until the first attempt is over: the tools are listed, or it failed."""
        await self._settled.wait()

    async def refresh(self) -> None:
        """List the tools again, at once; returns without that where there is no connection."""
        if self._life is not None and self._client is not None:
            await self._life.refresh()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        on_progress: OnProgress,
        trace: TraceContext | None = None,
    ) -> object:
        """Call a tool; see ``Link``."""
        client, life = self._client, self._life
        if client is None or life is None:
            raise TransientError(
                f"the server {self._place.name!r} is temporarily unavailable, so {tool!r} did not run",
                code="mcp.down",
                retry_after_s=self.health.retry_in_s,
            )
        self._calls += 1
        try:
            return await call_tool(
                *(client, self._place.name, tool, arguments, key, on_progress, self._shown),
                *(self._kept, trace),
            )
        except SessionRuntimeError as error:
            if isinstance(error.__cause__, Fault):
                life.note_of_call(error.__cause__)
            raise
        except asyncio.CancelledError as cancelled:
            if SILENT in cancelled.args:
                life.suspect_when_idle()
            raise
        finally:
            self._calls -= 1
            life.call_ended()

    async def aclose(self) -> None:
        """End the connection and the process behind it; returns when nothing of it is left."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait((self._keeper,))
        self._settled.set()
        self._over("stopped", self._health.error)

    async def _keep(self) -> None:
        backoff = Backoff(self._edges.jitter)
        hurried = False
        while True:
            began = _now()
            over = await self._live()
            if _now() - began >= HEALTHY_S:
                backoff.reset()
                hurried = False
            wait_s = 0.0 if over.at_once and not hurried else backoff.next_s()
            hurried = hurried or over.at_once
            self._lost(str(over), wait_s)
            self._settled.set()
            await asyncio.sleep(wait_s)
            self._retry_at = None
            self._health = replace(self._health, restarts=self._health.restarts + 1)
            self._became("connecting")

    def _given_up(self, keeper: asyncio.Task[None]) -> None:
        """Nobody keeps the connection any more: it was closed, or there is a fault in here."""
        if not keeper.cancelled() and (fault := keeper.exception()) is not None:
            _log.error("server %s is given up", self._place.name, exc_info=fault)
            self._over("down", f"internal fault: {said_by(fault, self._shown)}")
        self._settled.set()

    async def _live(self) -> Over:
        """Make one connection, and give how it came to its end; cancelled, end it.

        There are servers that break at the question whether they speak the newer generation of the protocol:
        so each attempt that came to no agreement is followed by one that asks the other way round. The first
        time that is made at once.
        """
        over, life = await self._attempt()
        if not life.broke or self._asked_both_ways or self._settings.protocol != "auto":
            return over
        self._asked_both_ways = True
        _log.info("server %s broke (%s): it is asked the other way round", self._place.name, over)
        over, _ = await self._attempt()
        return over

    async def _attempt(self) -> tuple[Over, Life]:
        line = self._edges.open_line(self._place, self._settings, self._shown)
        life = self._life = Life(
            self._place.name,
            self._settings,
            line,
            self._owner,
            self._shown,
            probe_first=self._probe_first,
        )
        living = asyncio.create_task(life.live(), name=f"connection of {self._place.name}")
        try:
            await asyncio.wait((living,))
            return self._outcome(living, line), life
        finally:
            self._client = None
            await _end(living)
            life.close()
            self._life = None
            self._probe_first ^= not life.agreed

    def _outcome(self, living: asyncio.Task[None], line: Line) -> Over:
        """How a connection ended; where only its end was seen, the line knows more by now."""
        error = None if living.cancelled() else living.exception()
        parts = () if error is None else tuple(leaves(error))
        ends = [part for part in parts if isinstance(part, Over)]
        lost = [part for part in parts if isinstance(part, Fault) and part.kind == "lost"]
        if ends and str(ends[0]):
            return ends[0]
        if error is None or ends or lost:
            return Over(self._shown(line.ended()) or "the connection ended")
        return Over(said_by(error, self._shown))

    def _ready(self, client: Client, listing: Listing) -> None:
        self._client = client
        name, version = client.server
        self._health = replace(
            self._health,
            protocol=client.protocol,
            server=self._shown(name, _MAX_NAME_CHARS),
            version=self._shown(version, _MAX_NAME_CHARS),
            error="",
        )
        self._take(listing)
        self._settled.set()
        _log.info("server %s: ready, %d tools", self._place.name, len(listing.tools))
        self._became("ready")

    def _listed(self, listing: Listing) -> None:
        before = self._listing
        self._take(listing)
        self._health = replace(self._health, error="")
        if before is None or replace(before, at=listing.at) != listing:
            self._on_change()

    def _not_listed(self, reason: str) -> None:
        _log.warning("server %s: %s: the old list of its tools stays", self._place.name, reason)
        self._health = replace(self._health, error=reason)
        self._make_stale()
        self._on_change()

    def _ending(self, how: str) -> None:
        """No call can be made any more, however long it takes until nothing is left."""
        if self._client is not None:
            self._client = None
            self._make_stale()
            self._over("down", how or "the connection ended")

    def _take(self, listing: Listing) -> None:
        self._listing = listing
        self._schemas = {tool.name: tool.parameters for tool in listing.tools}

    def _make_stale(self) -> None:
        if self._listing is not None:
            self._listing = replace(self._listing, stale=True)

    def _lost(self, error: str, wait_s: float) -> None:
        told = with_way_out(self._place.name.partition("/")[0], self._settings, error)
        _log.warning(
            "server %s is down: %s; next attempt in %.1f s", self._place.name, told, wait_s
        )
        self._retry_at = _now() + wait_s
        self._make_stale()
        self._health = replace(self._health, failures=self._health.failures + 1)
        self._over("down", error)

    def _over(self, state: State, error: str) -> None:
        self._health = replace(self._health, error=error)
        if state == self._health.state:
            self._on_change()
        self._became(state)

    def _became(self, state: State) -> None:
        if state != self._health.state:
            self._health = replace(self._health, state=state, since=self._edges.wall())
            self._on_change()

    def _schema_of(self, tool: str) -> JsonObject | None:
        return self._schemas.get(tool)

    def _under_way(self) -> int:
        return self._calls


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task until it is over, also where it takes cancelling for something else."""
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=STOP_S)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.debug("%s ended", task.get_name(), exc_info=error)  # it was lost anyway


def _now() -> float:
    return asyncio.get_running_loop().time()
