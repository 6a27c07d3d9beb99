"""What is known of a request over HTTP over all its attempts; what to do about it is decided in ``http``."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from session_runtime.client.http_answers import HttpAnswer
from session_runtime.errors import TransientError

OnEvent = Callable[[Mapping[str, Any]], None]
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Tries:
    """The attempts of one request: whether one arrived, perhaps, and has no answer; why the last failed."""

    sent: bool = False
    cause: Exception | None = None

    def no_answer(self, timeout_s: float) -> TransientError:
        """The error once the time is up."""
        ran = "the request may have run" if self.sent else "the request did not arrive"
        why = "" if self.cause is None else f"; the last attempt: {self.cause}"
        return TransientError(
            f"no answer came in {timeout_s:g} s; {ran}{why}",
            code="daemon.no_answer",
            may_have_run=self.sent,
        )


@dataclass(slots=True)
class Run:
    """One request that is answered by events: what was heard of it, over all its attempts.

    ``tries.sent`` tells that an ask without a name here yet may have begun.
    """

    path: str
    body: bytes
    key: str
    on_event: OnEvent | None
    ask_id: str | None = None
    seq: int = 0
    attempt: int = 0
    unsure: bool = False
    told: bool = False
    tries: Tries = field(default_factory=Tries)

    def begun(self) -> Tries:
        """The attempts, with what is known of the ask: one that has a name, or had, may have run."""
        return replace(self.tries, sent=self.tries.sent or self.unsure or self.ask_id is not None)

    def forget(self) -> None:
        """The daemon does not know the ask any more."""
        self.ask_id, self.seq, self.unsure = None, 0, True

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
        return HttpAnswer(result, self.attempt, self.unsure)
