"""What is known of a request over HTTP over all its attempts; what to do about it is decided in ``http``."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from session_runtime.client.attempts import Attempts
from session_runtime.client.http_answers import HttpAnswer
from session_runtime.errors import TransientError

OnEvent = Callable[[Mapping[str, Any]], None]
_log: Final = logging.getLogger(__name__)


def no_answer(attempts: Attempts, timeout_s: float) -> TransientError:
    """The error once the time of a request is up."""
    sent = attempts.may_have_run
    ran = "the request may have run" if sent else "the request did not arrive"
    why = "" if attempts.cause is None else f"; the last attempt: {attempts.cause}"
    return TransientError(
        f"no answer came in {timeout_s:g} s; {ran}{why}",
        code="daemon.no_answer",
        may_have_run=sent,
    )


@dataclass(slots=True)
class Run:
    """One request that is answered by events: what was heard of it, over all its attempts."""

    path: str
    body: bytes
    key: str
    on_event: OnEvent | None
    ask_id: str | None = None
    seq: int = 0
    told: bool = False
    attempts: Attempts = field(default_factory=Attempts)

    def forget(self) -> None:
        """The daemon does not know the ask any more; it may have run."""
        self.ask_id, self.seq = None, 0

    def refused(self) -> None:
        """The ask did not begin, and its key is free."""
        self.ask_id, self.seq = None, 0
        self.attempts.refuse(self.attempts.number)

    def hear(self, event: Mapping[str, Any]) -> None:
        """Hand an event on; a function that fails is told once, and does not end the ask."""
        self.seq = int(event["seq"])
        self.ask_id = self.ask_id or str(event["ask_id"])
        if self.on_event is None:
            return
        try:
            self.on_event(event)
        except Exception:  # noqa: BLE001 - the backend's own function must not break the ask
            if not self.told:
                _log.exception("on_event failed at %s; the ask goes on", event["type"])
            self.told = True

    def answer(self, result: Mapping[str, Any]) -> HttpAnswer:
        """How it ended, with how often it was sent."""
        return HttpAnswer(result, self.attempts.number, self.attempts.unsure)
