"""Asks daemons behind an MQTT broker; a request is sent again, under the same name, where that is needed.

Once a replica has begun it, it goes again to that one only, until that one is gone. For backends; needs the
extra `mqtt`. What both ends agree on stands in ``wire/mqtt``.
"""

import asyncio
import logging
import math
import random
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, assert_never

from session_runtime.client.answers import Answer
from session_runtime.client.asking import asked, seconds
from session_runtime.client.mqtt_ending import Left, place_of, unless_dropped, unwanted
from session_runtime.client.mqtt_faults import deadly, not_taken, wait_or_raise
from session_runtime.client.mqtt_line import (
    Broker,
    Connect,
    Line,
    LineError,
    NotTakenError,
    Sent,
)
from session_runtime.client.mqtt_pending import Fault, OnEvent, Pending
from session_runtime.client.mqtt_replicas import GONE_S, News, Replicas
from session_runtime.client.mqtt_request import Request, Signer
from session_runtime.client.mqtt_setup import checked_prefix, connect_to, own_level
from session_runtime.client.pauses import FIRST_WAIT_S, Waits
from session_runtime.client.trials import DEATHS, Trials
from session_runtime.errors import PermanentError, RequestError, TransientError
from session_runtime.types import AskRequest
from session_runtime.wire import written_request
from session_runtime.wire.mqtt import (
    CANCEL,
    CANCELLED,
    EVENTS,
    STARTED,
    ask_topic,
    replica_topic,
    reply_root,
    status_topic,
)

SILENCE_S: Final = 60.0
"""A request that nothing was heard of for so long is sent again; replicas tell every 15 s that it goes on."""

STEADY_S: Final = 10.0
"""A connection that lasted so long was a good one: the next is made soon if it breaks."""

_Went = Literal["sent", "nobody", "lost"]
"""What became of a message to the broker: it is there, nobody takes it, or the connection broke."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MqttAnswer(Answer):
    """How an ask ended by MQTT, who answered, and how often it was asked.

    ``kept``: it is the answer of an earlier run. ``repeated``: that may not have been the first one.
    """

    replica: str
    attempt: int
    kept: bool
    repeated: bool = False

    @property
    def may_have_run_twice(self) -> bool:
        """Whether this answer is of a run that may not have been the first one of its request."""
        return self.repeated


class MqttClient:
    """A connection that is kept up while the block runs; asks may run at the same time.

    ``silence_s`` is how long nothing may be heard of a request before it is sent again, ``gone_s`` how long
    a replica may be away without a goodbye before others are asked. ``name`` is the level of the topic below
    which answers come; without one it is the name of the broker's user, if there is one. RequestError if it
    or ``prefix`` cannot be part of a topic, PermanentError without the extra ``mqtt``.
    """

    def __init__(
        self,
        broker: Broker | None = None,
        *,
        prefix: str = "session-runtime",
        signer: Signer | None = None,
        name: str | None = None,
        silence_s: float = SILENCE_S,
        gone_s: float = GONE_S,
        connect: Connect | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._connect = connect_to(broker or Broker()) if connect is None else connect
        self._prefix = checked_prefix(prefix)
        level = own_level(name, broker)
        self._reply = f"{reply_root(prefix)}{level}/{secrets.token_hex(8)}"
        self._statuses = status_topic(prefix, "")
        self._signer = signer
        self._wall = wall
        self._silence_s = silence_s
        self._pending: dict[bytes, Pending] = {}
        self._left = Left()
        self._limits: set[asyncio.Timeout] = set()
        self._replicas = Replicas(gone_s, self._notice)
        self._trials = Trials()
        self._fault = "there was no connection to the broker yet"
        self._closed = False
        self._line: Line | None = None
        self._number = 0
        self._up = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "MqttClient":
        self._keeping = asyncio.create_task(self._keep_connected(), name="mqtt client")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        self._replicas.forget()
        for limit in (each for each in self._limits if not each.expired()):
            limit.reschedule(asyncio.get_running_loop().time())

    async def ask(
        self,
        request: AskRequest | Mapping[str, Any] | str,
        *,
        timeout_s: float = 300.0,
        on_event: OnEvent | None = None,
    ) -> MqttAnswer:
        """Ask (INT-2), and give the answer within ``timeout_s`` seconds; events go to ``on_event``.

        What is busy is asked again. Raises RequestError for a wrong request or a wrong signature,
        PermanentError if there is an answer that cannot be had, or a broker that does not take the request
        (whether that may have run, ``may_have_run`` says), and TransientError if there is none in time, or
        before the block ends: ``mqtt.no_answer``, which may have run, ``mqtt.unreachable``, which has not, as
        no replica was there to take it, or why all that got it refused it, which has not run either. What
        ``on_event`` raises is raised as it is; the ask goes on without anybody who waits for it.
        """
        body = written_request(asked(request))
        return await self._in_time(body, Pending(on_event), seconds("timeout_s", timeout_s))

    async def cancel(self, ask_id: str, *, timeout_s: float = 30.0) -> bool:
        """End an ask of this client, which is told of it by its result; whether it was told to just now.

        ``ask_id`` is in its events. One that nobody waits for any more, as the time was up, is ended too, and
        one whose replica is gone is not asked anew: it raises PermanentError, ``cancelled.caller``.
        RequestError if no ask of that id is known here, and else as ``ask``.
        """
        timeout_s = seconds("timeout_s", timeout_s)
        found = (each for each in self._pending.values() if ask_id in each.ask_ids)
        pending, replica = next(found, None), self._left.replica_of(ask_id)
        if pending is not None:
            pending.unwanted = True
            return await self._follow_to_end(pending, timeout_s)
        if replica is not None:
            return bool(await self._tell_to_end(replica, ask_id, timeout_s))
        raise RequestError(
            f"no ask {ask_id!r} waits here: give the ask_id of an event of one that does",
            code="request.unknown_ask",
        )

    async def _follow_to_end(self, pending: Pending, timeout_s: float) -> bool:
        """End an ask that waits here, wherever it is by then."""
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                while (place := await place_of(pending)) is not None:
                    telling = self._tell_to_end(*place, timeout_s)
                    told = await unless_dropped(pending, telling)
                    if told is not None:
                        return told
                return pending.dropped.is_set()
        except TimeoutError as error:
            raise self._no_answer(pending, f"in {timeout_s:g} s") from error

    async def _tell_to_end(self, replica: str, ask_id: str, timeout_s: float) -> bool | None:
        """What a replica says of the end of its ask; None if it is gone, and its ask with it."""
        pending = Pending(None, replica=replica, unwanted=True)
        try:
            answer = await self._in_time(written_request({CANCEL: ask_id}), pending, timeout_s)
        except PermanentError:
            if not pending.dropped.is_set():
                raise
            self._left.drop(ask_id)
            return None
        self._left.drop(ask_id)
        return bool(answer.result[CANCELLED])

    async def _in_time(self, body: bytes, pending: Pending, timeout_s: float) -> MqttAnswer:
        if self._closed:
            raise RuntimeError("this MqttClient was closed: ask within its block")
        correlation = secrets.token_bytes(16)
        self._pending[correlation] = pending
        until = time.monotonic() + timeout_s
        limit = asyncio.timeout(timeout_s)
        self._limits.add(limit)
        try:
            async with limit:
                answer = await self._ask(Request(body, correlation, until, self._wall), pending)
                pending.lose_replica()
                return answer
        except TimeoutError as error:
            if not limit.expired():
                raise  # it is what on_event raised
            when = "before the client was closed" if self._closed else f"in {timeout_s:g} s"
            raise self._no_answer(pending, when) from error
        finally:
            self._limits.discard(limit)
            del self._pending[correlation]
            if pending.replica is not None and pending.ask_id is not None:
                self._left.add(pending.ask_id, pending.replica)
            pending.end()

    def _no_answer(self, pending: Pending, when: str) -> TransientError:
        if pending.attempts.may_have_run:
            return TransientError(
                f"no answer came {when}; the request may have run",
                code="mqtt.no_answer",
                retry_after_s=None if pending.refusal is None else pending.refusal.retry_after_s,
                may_have_run=True,
            )
        if pending.refusal is not None:
            told = f"no replica took the request {when}: {pending.refusal.told}"
            wait_s = pending.refusal.retry_after_s
            return TransientError(told, code=pending.refusal.code, retry_after_s=wait_s)
        nobody = f"no replica takes requests at {ask_topic(self._prefix)}"
        return TransientError(
            f"no replica took the request {when}: {nobody if pending.idle else self._fault}",
            code="mqtt.unreachable",
        )

    async def _ask(self, request: Request, pending: Pending) -> MqttAnswer:
        silent: int | None = None
        pauses = Waits(random.random)
        while True:
            await self._up.wait()
            line, number = self._line, self._number
            if line is None:
                continue
            topic = self._where(pending, silent=silent == number)
            if pending.unwanted and topic == ask_topic(self._prefix):
                pending.dropped.set()
                raise unwanted(pending.attempts)
            pending.again, silent = False, None
            went = "sent" if topic is None else await self._given(line, topic, request, pending)
            if went == "lost":
                await asyncio.sleep(FIRST_WAIT_S)  # a lost connection is noticed where it is read
                continue
            wait_s = pauses.next(0.0) if went == "nobody" else self._silence_s
            last = await pending.outcome(wait_s)
            if last is None:
                silent = None if pending.again or went == "nobody" else number
            elif not isinstance(last.outcome, Fault):
                about = last.about
                return MqttAnswer(
                    last.outcome, about.replica, about.attempt, about.kept, about.repeated
                )
            elif request.signature_expired(last.outcome):
                await asyncio.sleep(pauses.next(0.0))
            else:
                pending.refusal = last.outcome
                await wait_or_raise(last.outcome, pending.attempts)

    def _where(self, pending: Pending, *, silent: bool) -> str | None:
        """Where it is to be sent now; None to wait for what its replica says of itself.

        One that was begun goes to no other replica before its own is gone: it said so, is away for too
        long, or was ``silent`` for as long as it may be and nothing is known of it.
        """
        if pending.replica is None:
            return ask_topic(self._prefix)
        known = self._replicas.known(pending.replica)
        if pending.attempts.number == 0 and known != "gone":
            return replica_topic(self._prefix, pending.replica)  # it is meant for that one
        if known == "away" or (known is None and not silent):
            return None
        if known != "there":
            pending.lose_replica()
            return ask_topic(self._prefix)
        may_be_lost = silent or pending.again
        return replica_topic(self._prefix, pending.replica) if may_be_lost else None

    async def _given(self, line: Line, topic: str, request: Request, pending: Pending) -> _Went:
        """Give it to the broker, alone if a connection broke over it; raises for one that is not taken."""
        async with self._trials.turn(pending.deaths.number):
            if line is not self._line:
                return "lost"
            if pending.final is not None:
                return "sent"  # what was sent before is answered by now
            try:
                went = await self._sent(line, topic, request, pending)
            except NotTakenError as error:
                pending.attempts.refuse(pending.attempts.number)
                if pending.replica is not None:  # it was to be heard of again, and is under way
                    return "sent"
                raise not_taken(error, pending.attempts) from error
            except LineError as error:
                pending.again = True
                if error.broke:
                    pending.deaths.count(asyncio.get_running_loop().time())
                if pending.deaths.number < DEATHS or pending.replica is not None:
                    return "lost"
                raise pending.attempts.told_by(deadly(request)) from error
            pending.deaths.forget()
            return went

    async def _sent(self, line: Line, topic: str, request: Request, pending: Pending) -> _Went:
        about = dict(pending.sending(self._number))
        about[EVENTS] = STARTED if pending.on_event is None else "all"
        if self._signer is not None:
            about |= request.signed(self._signer, topic, self._reply)
        left_s = max(1, math.ceil(request.left_s()))
        message = Sent(topic, request.body, self._reply, request.correlation, left_s, about)
        if await line.publish(message):
            return "sent"
        pending.not_sent()
        if pending.replica is not None and topic != ask_topic(self._prefix):
            self._replicas.lose(pending.replica)
        return "nobody"

    async def _keep_connected(self) -> None:
        pauses, clock = Waits(random.random), asyncio.get_running_loop().time
        while True:
            since: float | None = None
            try:
                async with self._connect((self._reply, f"{self._statuses}+")) as line:
                    since = clock()
                    await self._read(line)
            except LineError as error:
                self._fault = str(error)
                _log.warning("no connection to the MQTT broker: %s", error)
            except Exception:  # noqa: BLE001 - whoever asks waits for the next connection
                _log.exception("the MQTT client failed; it connects again")
            self._lose()
            if since is not None and clock() - since >= STEADY_S:
                pauses = Waits(random.random)
            await asyncio.sleep(pauses.next(0.0))

    async def _read(self, line: Line) -> None:
        self._line = line
        self._number += 1
        self._replicas.forget()
        self._up.set()
        for pending in self._pending.values():
            pending.send_again()  # what was on its way, either way, may be lost with the connection
        async for message in line.messages():
            if message.topic.startswith(self._statuses):
                self._replicas.hear(message.topic.removeprefix(self._statuses), message)
            elif message.correlation in self._pending:
                self._pending[message.correlation].take(message)

    def _lose(self) -> None:
        self._line = None
        self._up.clear()

    def _notice(self, replica: str, news: News, since: float) -> None:
        """A replica that has gone does not answer what it had begun, nor what nobody was heard to begin.

        One that is there takes what nobody was there for, and says what became of what it had begun.
        """
        for pending in self._pending.values():
            match news:
                case "there":
                    known = pending.number == self._number  # what was sent by now is under way
                    concerned = pending.idle or (pending.replica == replica and not known)
                case "back":
                    concerned = pending.idle or pending.replica == replica
                case "gone":
                    concerned = pending.replica == replica
                case "settled":
                    concerned = pending.replica is None and pending.sent_at <= since
                case _:
                    assert_never(news)
            if concerned:
                pending.send_again()
