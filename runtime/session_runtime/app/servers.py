"""The servers of tools while they run: new lists come into force, operators look at them and restart them.

How a connection is kept is decided in ``mcp``, when anything else comes into force in ``config/live``.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from session_runtime.config.live import LiveConfig
from session_runtime.errors import RequestError
from session_runtime.generation import Generation
from session_runtime.mcp.session import Session
from session_runtime.spelling import hint
from session_runtime.threads import in_thread

PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
QUIET_S: Final = 30.0
GATHER_S: Final = 0.1
WAIT_S: Final = 20.0
MOST_LOG_BYTES: Final = 256 * 1024

Pause = Callable[[float], Any]

_log: Final = logging.getLogger(__name__)


class ListWatch:
    """Puts other lists of servers into force: soon, but not more often than once in PAUSE_S (RTE-4).

    While lists go on changing it waits twice as long after each time, up to LONGEST_PAUSE_S; after QUIET_S
    without a change it begins anew. What fails is tried again. ``changed`` is set at each change, ``current``
    gives the generation in force, ``pause`` waits, ``clock`` counts seconds.
    """

    def __init__(
        self,
        changed: asyncio.Event,
        current: Callable[[], Generation],
        live: LiveConfig,
        pause: Pause = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changed = changed
        self._current = current
        self._live = live
        self._pause = pause
        self._clock = clock

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch until the block is left."""
        task = asyncio.create_task(self._watch(), name="lists of servers")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _watch(self) -> None:
        pause_s, quiet_at = PAUSE_S, self._clock()
        while True:
            await self._changed.wait()
            pause_s = PAUSE_S if self._clock() >= quiet_at else min(2 * pause_s, LONGEST_PAUSE_S)
            await self._pause(GATHER_S)
            self._changed.clear()
            if not await self._put_in_force():
                self._changed.set()
            quiet_at = self._clock() + QUIET_S
            await self._pause(pause_s - GATHER_S)

    async def _put_in_force(self) -> bool:
        """Whether what the servers list now is in force, or did not differ."""
        if not self._current().servers.outdated:
            return True
        try:
            return (await self._live.refresh("servers")).good
        except Exception:  # noqa: BLE001 - nobody else would look at lists any more
            _log.exception("the new lists of servers could not be put into force")
            return False


class ServerControl:
    """What operators do with servers by name; all of it raises RequestError for an unknown one."""

    def __init__(self, current: Callable[[], Generation], live: LiveConfig) -> None:
        self._current = current
        self._live = live

    async def log(self, name: str, lines: int) -> list[dict[str, Any]]:
        """The last lines that the commands of a server wrote to their standard error, by session."""
        sessions = self._sessions(name)
        if any(session.wanted.settings.url is not None for session in sessions.values()):
            raise RequestError(
                f"the server {name} has a url: what it logs stays where it runs; its state and last error"
                " are in session-runtime status"
            )
        return [
            {
                "credential": credential or None,
                "lines": await in_thread(
                    "read the log of a server", partial(_tail, session.wanted.log, lines)
                ),
            }
            for credential, session in sessions.items()
        ]

    async def refresh(self, name: str) -> dict[str, Any]:
        """List its tools again; gives how it is then, and the receipt of what that changed."""
        sessions = self._sessions(name).values()
        await _at_most(WAIT_S, [session.refresh() for session in sessions])
        return await self._put_in_force(name)

    async def restart(self, name: str) -> dict[str, Any]:
        """Connect anew, with a new process; gives the same when the first attempt is over."""
        sessions = self._sessions(name).values()
        await _at_most(WAIT_S, [_restarted(session) for session in sessions])
        return await self._put_in_force(name)

    async def _put_in_force(self, name: str) -> dict[str, Any]:
        receipt = await self._live.refresh("servers")
        shown = [each for each in self._current().servers.status() if each["name"] == name]
        return {"servers": shown, "receipt": receipt.to_json()}

    def _sessions(self, name: str) -> Mapping[str, Session]:
        servers = self._current().servers
        if name not in servers.names:
            way_out = hint(name, servers.names) or "session-runtime status lists all"
            raise RequestError(
                f"there is no server {name[:100]!r}; {way_out}", code="request.unknown_server"
            )
        return servers.of(name)


async def _restarted(session: Session) -> None:
    await session.restart()
    await session.settled()


async def _at_most(seconds: float, work: Sequence[Coroutine[None, None, None]]) -> None:
    """Do all side by side, and give up what takes longer."""
    tasks = [asyncio.create_task(each, name="server on demand") for each in work]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks, timeout=seconds)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tail(path: Path, lines: int) -> list[str]:
    """The last lines of a log, so many at most; none if there is no file."""
    try:
        with path.open("rb") as file:
            start = max(0, path.stat().st_size - MOST_LOG_BYTES)
            file.seek(start)
            found = file.read(MOST_LOG_BYTES).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    whole = found[1 if start else 0 :]
    return whole[max(0, len(whole) - lines) :]
