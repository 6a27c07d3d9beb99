"""An ask that waits for its answer: what was heard of it, and whether it has to be sent again."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from session_runtime.client.mqtt_line import Received
from session_runtime.errors import RequestError
from session_runtime.wire import parse_json
from session_runtime.wire.mqtt import (
    ALIVE,
    ATTEMPT,
    ERROR,
    KEPT,
    REPEATED,
    REPLICA,
    RESULT,
    SEQ,
    TYPE,
    is_replica_name,
)

MOST_ATTEMPTS: Final = 999
LONGEST_RETRY_S: Final = 60.0

OnEvent = Callable[[Mapping[str, Any]], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no result; ``retry_after_s`` if it may be asked again."""

    code: str
    told: str
    retry_after_s: float | None


@dataclass(frozen=True, slots=True)
class LastWord:
    """The last message to a request: its result or why there is none, from whom, to which attempt.

    ``refused`` says that the request was not let in: an earlier or a later one may have been. ``repeated``
    says that the run it is of may not have been the first one.
    """

    outcome: Mapping[str, Any] | Fault
    replica: str
    attempt: int
    kept: bool
    refused: bool
    repeated: bool


@dataclass(slots=True)
class Pending:
    """An ask that waits.

    ``replica`` has begun it, as far as is known; ``number`` is that of the connection it was last sent by,
    ``sent_at`` when that was by the clock of the loop. ``idle`` says that nobody was there to take it.
    ``changed`` is set with each message, and when it may have to be sent again.
    """

    on_event: OnEvent | None
    attempt: int = 0
    number: int = 0
    replica: str | None = None
    sent_at: float = 0.0
    idle: bool = False
    again: bool = False
    final: LastWord | None = None
    fault: Exception | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def sending(self, number: int) -> None:
        """It is sent now, by the connection of that number."""
        self.attempt = min(self.attempt + 1, MOST_ATTEMPTS)
        self.number = number
        self.sent_at = asyncio.get_running_loop().time()
        self.again = self.idle = False

    def not_sent(self) -> None:
        """Nobody was there to take what was sent just now, so that it cannot have run."""
        self.attempt -= 1
        self.idle = True

    def send_again(self) -> None:
        """What was sent may be lost."""
        self.again = True
        self.changed.set()

    def take(self, message: Received) -> None:
        """Hear a message of it; what is not as it should be is logged and passed over."""
        kind = message.properties.get(TYPE)
        if kind in (RESULT, ERROR):
            self._end(message)
        else:
            self._go_on(message)
            if kind != ALIVE and self.on_event is not None:
                self._tell(message, self.on_event)
        self.changed.set()

    def _end(self, message: Received) -> None:
        final = read_final(message)
        if final is None:
            _log.warning("an answer on %s is none: it is passed over", message.topic)
            return
        if final.refused:
            if final.attempt < self.attempt:
                return  # what was sent after it is under way
            self.replica = None
        self.final = final

    def _go_on(self, message: Received) -> None:
        replica = message.properties.get(REPLICA, "")
        if is_replica_name(replica):
            self.replica = replica

    def _tell(self, message: Received, on_event: OnEvent) -> None:
        try:
            event = parse_json(message.body)
        except RequestError:
            return
        if not isinstance(event, dict):
            return
        try:
            on_event(event)
        except Exception as error:  # noqa: BLE001 - it is raised where this one is awaited; others go on
            self.fault = error

    async def outcome(self, silence_s: float) -> LastWord | None:
        """Wait for the last message; None if the request may have to be sent again.

        Raises what ``on_event`` raised.
        """
        while self.final is None and not self.again:
            if self.fault is not None:
                raise self.fault
            self.changed.clear()
            try:
                async with asyncio.timeout(silence_s):
                    await self.changed.wait()
            except TimeoutError:
                return None
        final, self.final = self.final, None
        return final


def read_final(message: Received) -> LastWord | None:
    """Read the last message of an ask; None if it is none that a replica sends."""
    about = message.properties
    try:
        data = parse_json(message.body)
        if about[TYPE] == RESULT:
            good = isinstance(data["outcome"], str) and isinstance(data["text"], str)
            outcome = data if good else None
        else:
            outcome = _fault(data["error"])
    except (RequestError, TypeError, KeyError, ValueError):
        return None
    if outcome is None:
        return None
    attempt = about.get(ATTEMPT, "1")
    good = attempt.isascii() and attempt.isdigit() and len(attempt) < 4
    return LastWord(
        outcome,
        about.get(REPLICA, ""),
        int(attempt) if good else 1,
        KEPT in about,
        about[TYPE] == ERROR and SEQ not in about,
        REPEATED in about,
    )


def _fault(error: Mapping[str, Any]) -> Fault:
    wait_s = min(LONGEST_RETRY_S, max(0.0, float(error.get("retry_after_s", 1.0))))
    return Fault(str(error["code"]), str(error["message"]), wait_s if error["retryable"] else None)
