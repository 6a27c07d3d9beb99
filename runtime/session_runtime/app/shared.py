"""Follows what other processes of the same state directory revoke, lift, see and approve (REL-9, RTE-4).

What is taken over from them is decided in ``registry``.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from session_runtime.config.live import LiveConfig
from session_runtime.generation import Generation
from session_runtime.registry.approvals import Approvals
from session_runtime.registry.revocations import Revocations

PAUSE_S: Final = 1.0
"""How long a brake that was pulled elsewhere may take to reach this process."""

Pause = Callable[[float], Any]

_log: Final = logging.getLogger(__name__)


class SharedState:
    """Looks again and again at what processes share; asks that run notice what is revoked, too.

    ``current`` gives the generation in force, ``pause`` waits.
    """

    def __init__(
        self,
        revocations: Revocations,
        approvals: Approvals,
        current: Callable[[], Generation],
        live: LiveConfig,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self._revocations = revocations
        self._approvals = approvals
        self._current = current
        self._live = live
        self._pause = pause
        self._revision = approvals.revision

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow until the block is left: every PAUSE_S, or as often as edits are looked for."""
        recheck_s = self._live.snapshot.settings.runtime.recheck_s
        following = self._follow(min(recheck_s, PAUSE_S))
        task = asyncio.create_task(following, name="what processes share")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _follow(self, pause_s: float) -> None:
        while True:
            await self._pause(pause_s)
            try:
                await self._look()
            except Exception:  # noqa: BLE001 - nobody else would look any more
                _log.exception("what other processes changed could not be put into force")

    async def _look(self) -> None:
        await self._revocations.look()
        if not self._current().servers.names:
            return
        await self._approvals.look()
        revision = self._approvals.revision
        if revision != self._revision and (await self._live.refresh("servers")).good:
            self._revision = revision
