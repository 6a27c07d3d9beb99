"""What is known of a request over HTTP over all its attempts; what to do about it is decided in ``http``."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from session_runtime.client.attempts import Attempts
from session_runtime.client.http_answers import HttpAnswer
from session_runtime.client.http_told import NO_ANSWER
from session_runtime.errors import TransientError

OnEvent = Callable[[Mapping[str, Any]], None]
_log: Final = logging.getLogger(__name__)


def no_answer(attempts: Attempts, timeout_s: float, *, over: bool) -> TransientError:
    """The error once the time of a request is ``over``, or is too short for another attempt."""
    cause = attempts.cause
    late = f", and another attempt would come after the {timeout_s:g} s that there were"
    why = "" if cause is None else f"; the last attempt: {cause}"
    return TransientError(
        f"no answer came{f' in {timeout_s:g} s' if over else late}; {_ran(attempts)}{why}",
        code=NO_ANSWER,
        retry_after_s=cause.retry_after_s if isinstance(cause, TransientError) else None,
        may_have_run=attempts.may_have_run,
    )


def _ran(attempts: Attempts) -> str:
    if attempts.may_have_run:
        return "the request may have run"
    return "the request did not run" if attempts.left else "the request did not arrive"


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
