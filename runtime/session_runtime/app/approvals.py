"""Shows the tools that changed and wait, approves their forms, and puts them into force (RTE-4)."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from session_runtime.config.live import LiveConfig
from session_runtime.errors import RequestError
from session_runtime.generation import Generation
from session_runtime.mcp.approved import Waiting
from session_runtime.registry.approval_file import Seen
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
        """The tools that wait, how many others changed while this process ran, and what cannot be kept."""
        waiting = [
            {
                "name": each.name,
                "server": each.seen.server,
                "tool": each.seen.tool,
                "digest": each.seen.digest,
            }
            for each in self._waiting
        ]
        return {
            "waiting": waiting,
            "drifted": self._approvals.drifted,
            "not_kept": self._approvals.unkept,
            "trouble": self._approvals.trouble or None,
        }

    def metrics(self) -> Iterator[Family]:
        """The same as numbers for a monitoring system."""
        yield gauge(
            "tools_waiting",
            "Tools of servers that changed and wait for an approval.",
            len(self._waiting),
        )
        yield Family(
            "tools_drifted_total",
            "counter",
            "Tools of servers that changed and needed no approval.",
            (Sample(self._approvals.drifted, nothing()),),
        )
        yield gauge(
            "tools_not_kept",
            "Tools of servers of which a restart would forget the form.",
            self._approvals.unkept,
        )

    def show(self, name: str) -> dict[str, Any]:
        """Each form in which the tool of that name waits, and what may be used in its place until then.

        ``before`` is None where only its digest is known. Raises RequestError if nothing of that name waits.
        """
        return {
            "name": name,
            "forms": [
                {
                    "server": each.seen.server,
                    "tool": each.seen.tool,
                    "digest": each.seen.digest,
                    "before": _shown(self._approvals.known(each.seen.server, each.seen.tool)),
                    "now": _shown(each.seen),
                }
                for each in self._named(name)
            ],
        }

    async def approve(self, name: str, digest: str, by: str) -> dict[str, Any]:
        """Approve the tool of that name in the form of that digest, and in no other.

        Gives the names of what waits no more, and the receipt of what that changed. Raises RequestError if
        the tool does not wait, or in another form; TransientError if it acts, but could not be kept.
        """
        waiting = self._named(name)
        found = [each for each in waiting if each.seen.digest == digest]
        if not found:
            digests = " and ".join(each.seen.digest for each in waiting)
            raise RequestError(
                f"tool {name[:100]!r} does not wait in the form {digest[:40]!r}, but in {digests}: look at"
                f" it again",
                code="request.other_form",
            )
        return await self._approve(found, by)

    async def approve_all(self, server: str, by: str) -> dict[str, Any]:
        """Approve all tools of a server that wait, in whichever form they do; as ``approve``."""
        found = [each for each in self._waiting if each.seen.server == server]
        if not found:
            servers = [each.seen.server for each in self._waiting]
            raise _nothing("tool of the server", server, servers)
        return await self._approve(found, by)

    @property
    def _waiting(self) -> tuple[Waiting, ...]:
        return self._current().servers.waiting

    def _named(self, name: str) -> Sequence[Waiting]:
        found = [each for each in self._waiting if each.name == name]
        if not found:
            raise _nothing("tool", name, [each.name for each in self._waiting])
        return found

    async def _approve(self, found: Sequence[Waiting], by: str) -> dict[str, Any]:
        for each in found:
            _log.warning("%s approved tool %s in its form %s", by, each.name, each.seen.digest)
        try:
            await self._approvals.approve([each.seen for each in found])
        finally:
            receipt = await self._live.refresh("servers")
        left = {each.name for each in self._waiting}
        return {
            "approved": sorted({each.name for each in found} - left),
            "receipt": receipt.to_json(),
        }


def _nothing(what: str, wanted: str, names: Sequence[str]) -> RequestError:
    way_out = hint(wanted, names) or "status lists those that do"
    return RequestError(
        f"no {what} {wanted[:100]!r} waits for an approval; {way_out}",
        code="request.nothing_to_approve",
    )


def _shown(seen: Seen | None) -> dict[str, Any] | None:
    if seen is None or seen.form is None:
        return None
    return {**seen.form, "destructive": seen.destructive}
