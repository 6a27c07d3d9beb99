"""Approves the forms of tools that wait for it, and puts them into force (RTE-4)."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from session_runtime.config.live import LiveConfig
from session_runtime.errors import RequestError
from session_runtime.generation import Generation
from session_runtime.registry.approvals import Approvals
from session_runtime.spelling import hint
from session_runtime.trace.metrics import Family, Sample, gauge
from session_runtime.types import nothing

_log: Final = logging.getLogger(__name__)


class ToolApproval:
    """What operators do with tools that wait."""

    def __init__(
        self, approvals: Approvals, current: Callable[[], Generation], live: LiveConfig
    ) -> None:
        self._approvals = approvals
        self._current = current
        self._live = live

    def status(self) -> dict[str, Any]:
        """The tools that wait, and how many others changed while this process ran."""
        waiting = [
            {"name": each.name, "server": each.seen.server, "tool": each.seen.tool}
            for each in self._current().servers.waiting
        ]
        return {"waiting": waiting, "drifted": self._approvals.drifted}

    def metrics(self) -> Iterator[Family]:
        """The same as numbers for a monitoring system."""
        yield gauge(
            "tools_waiting",
            "Tools of servers that changed and wait for an approval.",
            len(self._current().servers.waiting),
        )
        yield Family(
            "tools_drifted_total",
            "counter",
            "Tools of servers that changed and needed no approval.",
            (Sample(self._approvals.drifted, nothing()),),
        )

    async def approve(self, name: str | None, server: str | None, by: str) -> dict[str, Any]:
        """Approve the tool of that name, or all of a server, as they are listed now.

        Gives their names and the receipt of what that changed. Raises RequestError if nothing of that name
        waits, and TransientError if it acts, but could not be kept.
        """
        waiting = self._current().servers.waiting
        found = [
            each
            for each in waiting
            if (each.name == name if server is None else each.seen.server == server)
        ]
        if not found:
            names = [each.name if server is None else each.seen.server for each in waiting]
            wanted = (name if server is None else server) or ""
            way_out = hint(wanted, names) or "status lists those that do"
            what = "tool" if server is None else "tool of the server"
            raise RequestError(
                f"no {what} {wanted[:100]!r} waits for an approval; {way_out}",
                code="request.nothing_to_approve",
            )
        for each in found:
            _log.warning("%s approved tool %s in its new form", by, each.name)
        try:
            await self._approvals.approve([each.seen for each in found])
        finally:
            receipt = await self._live.refresh("servers")
        return {
            "approved": sorted({each.name for each in found}),
            "receipt": receipt.to_json(),
        }
