"""Tells the audit log of each call, and keeps calls from being made that could not be recorded (RTE-13)."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from session_runtime.audit.entry import Entry, Outcome, Subject, digest_of
from session_runtime.audit.log import AuditLog
from session_runtime.handler import HandlerContext
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Principal
from session_runtime.wire import to_bytes

WAIT_S: Final = 5.0
"""How long a call waits for the record of its beginning, where it may not be made without."""


class CallAudit:
    """The record of one call; without a log, of nothing.

    Made before the call: a tool may change the arguments that it is given.
    """

    def __init__(
        self,
        log: AuditLog | None,
        principal: Principal,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        context: HandlerContext,
    ) -> None:
        self._log = log
        self._ahead = log is not None and log.ahead(destructive=spec.annotations.destructive)
        self._subject = None if log is None else _subject(principal, spec, arguments, context)

    async def missing(self) -> bool:
        """Record that the call begins, if it may not be made otherwise; whether that failed."""
        if self._log is None or self._subject is None or not self._ahead:
            return False
        try:
            async with asyncio.timeout(WAIT_S):
                await self._log.add_now(Entry(self._subject))
        except OSError:  # a time-out is one too
            return True
        return False

    def answered(
        self, status: str, code: str | None, attempts: int, content: str, duration_s: float
    ) -> None:
        """Record how the call came out; of its ``content`` no more than size and digest."""
        self._end(Outcome(status, code, attempts, duration_s, digest_of(content), len(content)))

    def cancelled(self, duration_s: float) -> None:
        """Record that whoever called did not wait for the end."""
        self._end(Outcome("cancelled", None, 0, duration_s, None, 0))

    def _end(self, outcome: Outcome) -> None:
        if self._log is not None and self._subject is not None:
            self._log.add(Entry(self._subject, outcome))


def _subject(
    principal: Principal, spec: ToolSpec, arguments: Mapping[str, Any], context: HandlerContext
) -> Subject:
    return Subject(
        time.time(),
        context.ask_id,
        context.call_id,
        spec.name,
        spec.source_id,
        principal.name,
        context.identity,
        _as_they_are(arguments),
        spec.parameters,
    )


def _as_they_are(arguments: Mapping[str, Any]) -> bytes:
    """Keep them as JSON; nothing that an embedding program gives may end a call here."""
    try:
        return to_bytes(arguments)
    except (TypeError, ValueError, RecursionError):
        return to_bytes("[no JSON]")
