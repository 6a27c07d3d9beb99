"""Keeps in the history each configuration that came into force, off the event loop (REL-6)."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final

from session_runtime.config.history import History, Kept
from session_runtime.config.receipt import Receipt
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.state_files import told_of
from session_runtime.threads import Worker

LAST_WRITE_S: Final = 5.0

_log: Final = logging.getLogger(__name__)


class HistoryKeeper:
    """Writes one after the other; a history that cannot be written is told of and never in the way."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._worker = Worker()
        self._last: asyncio.Future[Kept | None] | None = None

    def keep(
        self, snapshot: ConfigSnapshot, receipt: Receipt
    ) -> asyncio.Future[Kept | None] | None:
        """Write down what the file says, unless there is none; gives the entry to come."""
        if snapshot.file is None:
            return None
        at = datetime.fromtimestamp(receipt.at, UTC)
        work = partial(self._write, snapshot.file.data, snapshot.digest, at)
        self._last = self._worker.run("keep configuration", work)
        return self._last

    async def aclose(self) -> None:
        """Wait for the last write, a few seconds at most."""
        self._worker.end()
        if self._last is not None:
            await asyncio.wait([self._last], timeout=LAST_WRITE_S)

    def _write(self, data: Mapping[str, object], digest: str, at: datetime) -> Kept | None:
        try:
            kept = self._history.add(data, digest, at)
        except OSError as error:
            _log.warning(
                "the configuration in force could not be kept in the history: %s", told_of(error)
            )
            return None
        _log.debug("the configuration in force is entry %d of the history", kept.number)
        return kept
