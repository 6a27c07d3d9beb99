"""An ask that waits for its answer: what was heard of it, and whether it has to be sent again."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from session_runtime.client.attempts import Attempts
from session_runtime.client.mqtt_line import Received
from session_runtime.client.trials import Deaths
from session_runtime.errors import RequestError
from session_runtime.wire import parse_json
from session_runtime.wire.mqtt import ALIVE, CANCELLED, ERROR, RESULT, is_replica_name
from session_runtime.wire.mqtt_answers import MOST_ATTEMPTS, About, about_of, sent_again

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
    """The last message to a request: its result or why there is none, and what is said about it."""

    outcome: Mapping[str, Any] | Fault
    about: About

    @property
    def refused(self) -> bool:
        """Whether the request was not let in: an earlier or a later one may have been."""
        return isinstance(self.outcome, Fault) and self.about.seq is None


@dataclass(slots=True)
class Pending:
    """An ask that waits.

    ``replica`` has begun it as the ask ``ask_id``, as far as is known; ``number`` is that of the connection
    it was last sent by, ``sent_at`` when that was by the clock of the loop. ``idle`` says that nobody was
    there to take it, ``refusal`` why it was refused last, ``deaths`` how many connections broke while the
    broker was given it. ``changed`` is set with each message, when it may have to be sent again, and when it
    is ``over``. ``ask_ids`` are all its names, one of each replica that had it. Once it is ``unwanted`` it is
    told to end, and if it is with nobody then it is ``dropped``.
    """

    on_event: OnEvent | None
    attempts: Attempts = field(default_factory=Attempts)
    number: int = 0
    replica: str | None = None
    ask_id: str | None = None
    sent_at: float = 0.0
    deaths: Deaths = field(default_factory=Deaths)
    idle: bool = False
    again: bool = False
    final: LastWord | None = None
    refusal: Fault | None = None
    fault: Exception | None = None
    ask_ids: set[str] = field(default_factory=set)
    unwanted: bool = False
    over: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: asyncio.Event = field(default_factory=asyncio.Event)

    def sending(self, number: int) -> Mapping[str, str]:
        """It is sent now, by the connection of that number; gives what is said of the attempt."""
        self.attempts.begin()
        self.attempts.leave()
        self.number = number
        self.sent_at = asyncio.get_running_loop().time()
        self.again = self.idle = False
        return sent_again(self.attempts.number, self.attempts.earlier)

    def not_sent(self) -> None:
        """Nobody was there to take what was sent just now, so that it cannot have run."""
        self.attempts.take_back()
        self.idle = True

    def end(self) -> None:
        """Nobody waits for it any more."""
        self.over = True
        self.changed.set()

    def lose_replica(self) -> None:
        """Its replica is gone: it has neither that nor a name any more."""
        self.replica = self.ask_id = None

    def send_again(self) -> None:
        """What was sent may be lost."""
        self.again = True
        self.changed.set()

    def take(self, message: Received) -> None:
        """Hear a message of it; what is not as it should be is logged and passed over."""
        about = about_of(message.properties)
        if about.kind in (RESULT, ERROR, CANCELLED):
            self._end(message, about)
        else:
            self._go_on(about)
            self._hear(message, about)
        self.changed.set()

    def _end(self, message: Received, about: About) -> None:
        outcome = _outcome_of(message, about)
        if outcome is None:
            _log.warning("an answer on %s is none: it is passed over", message.topic)
            return
        final = LastWord(outcome, about)
        if final.refused:
            latest = about.attempt >= min(self.attempts.number, MOST_ATTEMPTS)
            if not about.repeated:  # else another replica may have begun that very copy
                self.attempts.refuse(self.attempts.number if latest else about.attempt)
            if not latest:
                return  # what was sent after it is under way
            self.replica = None
        self.final = final

    def _go_on(self, about: About) -> None:
        if is_replica_name(about.replica):
            self.replica = about.replica

    def _hear(self, message: Received, about: About) -> None:
        try:
            event = parse_json(message.body)
        except RequestError:
            return
        if not isinstance(event, dict):
            return
        ask_id = event.get("ask_id")
        if (
            about.kind == ALIVE
        ):  # it tells the name of one that waits for its turn, and nothing further
            if not isinstance(ask_id, str) or ask_id == self.ask_id:
                return
            event = {"type": ALIVE, "ask_id": ask_id}
        if isinstance(ask_id, str):
            self.ask_id = ask_id
            self.ask_ids.add(ask_id)
        if self.on_event is None:
            return
        try:
            self.on_event(event)
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


def _outcome_of(message: Received, about: About) -> Mapping[str, Any] | Fault | None:
    """The result in the last message of an ask, or why there is none; None if it says neither."""
    try:
        data = parse_json(message.body)
        if about.kind == ERROR:
            return _fault(data["error"])
        if about.kind == CANCELLED:
            good = isinstance(data[CANCELLED], bool)
        else:
            good = isinstance(data["outcome"], str) and isinstance(data["text"], str)
    except (RequestError, TypeError, KeyError, ValueError):
        return None
    result: Mapping[str, Any] = data
    return result if good else None


def _fault(error: Mapping[str, Any]) -> Fault:
    wait_s = min(LONGEST_RETRY_S, max(0.0, float(error.get("retry_after_s", 1.0))))
    return Fault(str(error["code"]), str(error["message"]), wait_s if error["retryable"] else None)
