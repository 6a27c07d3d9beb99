"""Asks daemons behind an MQTT broker; a request is sent again, under the same name, until it is answered.

For backends; needs the extra session-runtime[mqtt]. What both ends agree on stands in ``wire/mqtt``.
"""

import asyncio
import logging
import math
import random
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

from session_runtime.client.mqtt_line import (
    Broker,
    BrokerConnect,
    Connect,
    Line,
    LineError,
    Received,
    Sent,
)
from session_runtime.errors import PermanentError, RequestError, TransientError
from session_runtime.wire import parse_json, to_bytes
from session_runtime.wire.mqtt import (
    ATTEMPT,
    ERROR,
    EVENTS,
    EXPIRES,
    KEPT,
    PRINCIPAL,
    REPLICA,
    RESULT,
    SIGNATURE,
    STARTED,
    TYPE,
    Envelope,
    ask_topic,
    reply_root,
    sign,
    status_topic,
)

SIGNED_S: Final = 240
SILENCE_S: Final = 60.0
"""A request that nothing was heard of for so long is sent again."""

FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 10.0

OnEvent = Callable[[Mapping[str, Any]], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Signer:
    """The principal that asks, and its signing secret (``[mqtt.signers]``)."""

    principal: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class MqttAnswer:
    """How an ask ended: ``result`` as over HTTP (INT-2), who answered, and how often it was asked."""

    result: Mapping[str, Any]
    replica: str
    attempt: int
    kept: bool

    @property
    def outcome(self) -> str:
        """How it ended."""
        return str(self.result["outcome"])

    @property
    def text(self) -> str:
        """What was answered."""
        return str(self.result["text"])

    @property
    def may_have_run_twice(self) -> bool:
        """Whether it was asked again and this answer is of a run that may not be the first one."""
        return self.attempt > 1 and not self.kept


@dataclass(slots=True)
class _Pending:
    """An ask that waits; ``changed`` is set with each message, and when it has to be sent again."""

    on_event: OnEvent | None
    final: Received | None = None
    replica: str | None = None
    again: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def send_again(self) -> None:
        self.again = True
        self.changed.set()

    async def outcome(self, silence_s: float) -> Received | None:
        """Wait for the last message; None if the request has to be sent again."""
        while self.final is None and not self.again:
            self.changed.clear()
            try:
                async with asyncio.timeout(silence_s):
                    await self.changed.wait()
            except TimeoutError:
                return None
        final, self.final = self.final, None
        return final


class MqttClient:
    """A connection that is kept up while the block runs; asks may run at the same time.

    ``silence_s`` is how long nothing may be heard of a request before it is sent again.
    """

    def __init__(
        self,
        broker: Broker | None = None,
        *,
        prefix: str = "session-runtime",
        signer: Signer | None = None,
        name: str | None = None,
        silence_s: float = SILENCE_S,
        connect: Connect | None = None,
    ) -> None:
        self._connect = BrokerConnect(broker or Broker()) if connect is None else connect
        self._topic = ask_topic(prefix)
        self._reply = f"{reply_root(prefix)}{name or 'client'}/{secrets.token_hex(8)}"
        self._statuses = status_topic(prefix, "")
        self._signer = signer
        self._silence_s = silence_s
        self._pending: dict[bytes, _Pending] = {}
        self._line: Line | None = None
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
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])

    async def ask(
        self,
        request: Mapping[str, Any],
        *,
        timeout_s: float = 300.0,
        on_event: OnEvent | None = None,
    ) -> MqttAnswer:
        """Ask (INT-2), and give the answer within ``timeout_s`` seconds; events go to ``on_event``.

        What is busy is asked again. Raises RequestError for a wrong request or a wrong signature,
        PermanentError if there is an answer that cannot be had, and TransientError
        (``mqtt.no_answer``) if there is none in time: it may have run.
        """
        correlation = secrets.token_bytes(16)
        pending = self._pending[correlation] = _Pending(on_event)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._ask(to_bytes(request), correlation, pending, timeout_s)
        except TimeoutError as error:
            raise TransientError(
                f"no answer came in {timeout_s:g} s; the request may have run",
                code="mqtt.no_answer",
                may_have_run=True,
            ) from error
        finally:
            del self._pending[correlation]

    async def _ask(
        self, body: bytes, correlation: bytes, pending: _Pending, timeout_s: float
    ) -> MqttAnswer:
        until, attempt = time.monotonic() + timeout_s, 0
        while True:
            await self._up.wait()
            line, attempt = self._line, attempt + 1
            left_s = max(1, math.ceil(until - time.monotonic()))
            pending.again = False
            if line is None or not await self._sent(line, body, correlation, attempt, left_s):
                continue
            final = await pending.outcome(self._silence_s)
            if final is None:
                continue
            data = parse_json(final.body)
            if final.properties[TYPE] == RESULT:
                return _answer(data, final.properties)
            await _wait_or_raise(data["error"])

    async def _sent(
        self, line: Line, body: bytes, correlation: bytes, attempt: int, left_s: int
    ) -> bool:
        about = {EVENTS: STARTED if self._pending[correlation].on_event is None else "all"}
        if attempt > 1:
            about[ATTEMPT] = str(min(attempt, 999))
        if self._signer is not None:
            about |= self._signed(self._signer, body, correlation)
        try:
            await line.publish(Sent(self._topic, body, self._reply, correlation, left_s, about))
        except LineError:
            await asyncio.sleep(FIRST_WAIT_S)  # a lost connection is noticed where it is read
            return False
        return True

    def _signed(self, signer: Signer, body: bytes, correlation: bytes) -> Mapping[str, str]:
        expires = int(time.time()) + SIGNED_S
        envelope = Envelope(signer.principal, expires, self._topic, self._reply, correlation, body)
        return {
            PRINCIPAL: signer.principal,
            EXPIRES: str(expires),
            SIGNATURE: sign(envelope, signer.secret),
        }

    async def _keep_connected(self) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            try:
                async with self._connect((self._reply, f"{self._statuses}+")) as line:
                    wait_s = FIRST_WAIT_S
                    await self._read(line)
            except LineError as error:
                _log.warning("no connection to the MQTT broker: %s", error)
            self._lose()
            await asyncio.sleep(wait_s * (0.5 + random.random() / 2))
            wait_s = min(LONGEST_WAIT_S, wait_s * 2)

    async def _read(self, line: Line) -> None:
        self._line = line
        self._up.set()
        for pending in self._pending.values():
            pending.send_again()  # what was on its way may be lost with the broker
        async for message in line.messages():
            if message.topic.startswith(self._statuses):
                self._notice(message)
            elif message.correlation in self._pending:
                _deliver(message, self._pending[message.correlation])

    def _lose(self) -> None:
        self._line = None
        self._up.clear()

    def _notice(self, message: Received) -> None:
        """A replica that has just gone does not answer what it had begun."""
        with suppress(RequestError, TypeError, KeyError):
            status = parse_json(message.body)
            if message.retained or status["state"] != "offline":
                return
            for pending in self._pending.values():
                if pending.replica == status["replica"]:
                    pending.send_again()


def _deliver(message: Received, pending: _Pending) -> None:
    kind = message.properties.get(TYPE)
    pending.replica = message.properties.get(REPLICA)
    if kind in (RESULT, ERROR):
        pending.final = message
    elif pending.on_event is not None:
        with suppress(RequestError):
            pending.on_event(parse_json(message.body))
    pending.changed.set()


def _answer(data: Mapping[str, Any], properties: Mapping[str, str]) -> MqttAnswer:
    return MqttAnswer(
        data,
        properties.get(REPLICA, ""),
        int(properties.get(ATTEMPT, "1")),
        KEPT in properties,
    )


async def _wait_or_raise(error: Mapping[str, Any]) -> None:
    """Wait until what is busy may be asked again; raise anything else."""
    code, told = str(error["code"]), str(error["message"])
    if error["retryable"]:
        await asyncio.sleep(float(error.get("retry_after_s", 1.0)) * (0.5 + random.random()))
        return
    if code.partition(".")[0] in ("request", "auth", "confirmation"):
        raise RequestError(told, code=code)
    raise PermanentError(told, code=code)
