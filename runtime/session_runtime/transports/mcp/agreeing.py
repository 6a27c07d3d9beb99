"""The two steps of a call that needs a person: propose it, then run it if it still is that call (RTE-9).

How a person is asked is decided in ``consent``, that nothing is held meanwhile in ``session``.
"""

import hmac
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from session_runtime.registry.invoke.consent import NotRun, Proposed, digest_of
from session_runtime.registry.spec import ToolSpec
from session_runtime.threads import aside
from session_runtime.transports.mcp.callers import Caller


class Person(Protocol):
    """Whoever sits at a client and can be asked."""

    async def ask(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Caller | str:
        """Ask whether a call may run, and wait; raises nothing.

        Gives who calls, as it is by then, or in words why the call may not run.
        """


class Proposal:
    """The consent to a call that nobody was asked about: it lets nothing run, and keeps what would have."""

    def __init__(self) -> None:
        self.proposed: Proposed | None = None
        self.digest = b""

    async def missing(self, proposed: Proposed) -> NotRun:
        """Keep what a person is to be asked about."""
        self.digest = await _digest(proposed)
        self.proposed = proposed
        return NotRun(
            f"{proposed.spec.name} was not run yet: a person is asked whether it may run."
        )

    def give_back(self) -> None:
        """Nothing was used up."""


class Agreed:
    """The consent of a person to the very call that was proposed."""

    def __init__(self, digest: bytes) -> None:
        self._digest = digest

    async def missing(self, proposed: Proposed) -> NotRun | None:
        """Let no other call run, nor another form of the tool."""
        if hmac.compare_digest(await _digest(proposed), self._digest):
            return None
        return NotRun(
            f"{proposed.spec.name} was not run and nothing was changed: the tool is not the same any more"
            " as when the person was asked. Call it again if it is still wanted.",
            "tool.changed",
        )

    def give_back(self) -> None:
        """It ends with the call anyway."""


async def _digest(proposed: Proposed) -> bytes:
    return await aside("writing arguments", partial(digest_of, proposed))
