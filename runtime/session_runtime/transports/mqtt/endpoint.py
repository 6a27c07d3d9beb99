"""Keeps a connection to the broker and takes requests from it; what they come to is ``answering``'s."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

from session_runtime.transports.mqtt.answering import ALIVE_S, Answering
from session_runtime.transports.mqtt.backoff import Backoff
from session_runtime.transports.mqtt.door import MqttDoor
from session_runtime.transports.mqtt.link import (
    Connect,
    Incoming,
    Link,
    LinkError,
    Outgoing,
    Terms,
    UndeliverableError,
)
from session_runtime.transports.mqtt.outlet import Outlet
from session_runtime.transports.mqtt.state import MqttState
from session_runtime.transports.mqtt.window import MemoryWindow
from session_runtime.wire import to_bytes
from session_runtime.wire.mqtt import (
    BEAT_S,
    PRESENCE_S,
    replica_topic,
    shared_filter,
    status_topic,
)

Phase = Literal["online", "draining", "offline"]

TELL_S: Final = 5.0
"""How often it is looked whether the status has changed."""

GRACE_S: Final = 3.0
"""How long answers of asks that are over may take when the daemon stops."""

SPARE: Final = 64
"""So many requests more than may run are taken, to be told that they may not."""

OVERRUN: Final = 8
"""Brokers send more than was agreed, at times several times as much."""

_DISPUTED: Final = (
    "; connections break soon after they were made: does another daemon have the name {0}? Give each its own"
    " (mqtt.client_id), or leave it unset"
)
_log = logging.getLogger(__name__)


class MqttEndpoint:
    """The door; ``serve`` owns the connection and all that it carries."""

    def __init__(
        self,
        door: MqttDoor,
        connect: Connect,
        replica: str,
        state: MqttState,
        *,
        backoff: Backoff | None = None,
        tell_s: float = TELL_S,
        alive_s: float = ALIVE_S,
        wall: Callable[[], float] = time.time,
    ) -> None:
        clock, settings = asyncio.get_running_loop().time, door.settings()
        window = MemoryWindow(
            settings.dedupe_window_s,
            clock,
            most=settings.dedupe_window_asks,
            most_bytes=settings.dedupe_window_bytes,
        )
        self._door = door
        self._connect = connect
        self._replica = replica
        self._state = state
        self._backoff = backoff or Backoff(clock)
        self._tell_s = tell_s
        self._wall = wall
        self._since = wall()
        self._outlet = Outlet()
        self._answering = Answering(door, self._outlet, window, state, replica, alive_s=alive_s)
        self._tasks: set[asyncio.Task[None]] = set()
        self._phase: Phase = "online"
        self._clean = False
        self._turn = asyncio.Event()
        self._gone = asyncio.Event()

    def drain(self) -> None:
        """Take no further requests; those at hand are answered (REL-8)."""
        self._enter("draining")

    def _enter(self, phase: Phase) -> None:
        if phase != self._phase:
            self._since = self._wall()
        self._phase = phase
        self._turn.set()

    async def serve(self, stop: asyncio.Event) -> None:
        """Take requests until ``stop`` is set, which is when all asks are over; then say goodbye."""
        self._state.serves_as(self._replica)
        keeping = asyncio.create_task(self._keep_connected(), name="mqtt connection")
        try:
            await stop.wait()
            await self._say_goodbye()
        finally:
            await _ended(keeping)  # which begins tasks until it is over
            await _ended(*self._tasks)

    async def _say_goodbye(self) -> None:
        if not self._outlet.up:
            return  # nothing can be said, and the will has told it
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        self._enter("offline")
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_S):
                await self._gone.wait()

    async def _keep_connected(self) -> None:
        """Connect again and again; a fault of ours ends a connection, and never the other doors."""
        while True:
            fault: object = "the broker closed the connection"
            taken_over = False
            try:
                async with self._connect(self._terms()) as link:
                    self._clean = False
                    self._backoff.connected()
                    self._state.connected()
                    _log.info("connected to the MQTT broker as %s", self._replica)
                    await self._carry(link)
            except LinkError as error:
                fault, self._clean, taken_over = error, error.unreadable, error.taken_over
            except Exception as error:  # noqa: BLE001 - without this door the others go on
                _log.exception("the MQTT door failed; it connects again")
                fault = type(error).__name__
            self._outlet.close()
            wait_s = self._backoff.next_s(taken_over=taken_over)
            told = f"{fault}{_DISPUTED.format(self._replica) if self._backoff.disputed else ''}"
            self._state.disconnected(told, disputed=self._backoff.disputed)
            _log.warning("no connection to the MQTT broker (%s); again in %.1f s", told, wait_s)
            await asyncio.sleep(wait_s)

    async def _carry(self, link: Link) -> None:
        """Use a connection until it breaks; what it brought goes on after that."""
        self._outlet.open(link)
        parts: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._read(link), name="mqtt requests"),
            asyncio.create_task(self._tell(link), name="mqtt status"),
            asyncio.create_task(self._outlet.broken.wait(), name="mqtt broken"),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        finally:
            await _ended(*parts)

    async def _read(self, link: Link) -> None:
        most = OVERRUN * self._receive_maximum()
        async for message in link.messages():
            while len(self._tasks) >= most:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            task = asyncio.create_task(self._handle(link, message), name="mqtt request")
            self._tasks.add(task)
            self._state.in_hand = len(self._tasks)
            task.add_done_callback(self._handled)

    async def _handle(self, link: Link, message: Incoming) -> None:
        """Answer, then acknowledge: what a killed replica had at hand is sent again."""
        await self._answering.answer(message)
        link.acknowledge(message)

    def _handled(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._state.in_hand = len(self._tasks)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a request could not be answered", exc_info=task.exception())

    async def _tell(self, link: Link) -> None:
        """Publish how this replica is, whenever that has changed; when it leaves, in the right order.

        A sign of life comes every BEAT_S at least, so that what has none is known to be old news.
        """
        told, told_at = None, 0.0
        while True:
            self._turn.clear()
            phase = self._phase
            if phase != "online":
                await link.unsubscribe()
            now, at = self._presence(phase), self._wall()
            if now != told or not 0 <= at - told_at < BEAT_S:
                await self._say(link, self._status({**now, "at": round(at, 3)}))
                told, told_at = now, at
            if phase == "offline":
                self._gone.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._tell_s):
                    await self._turn.wait()

    async def _say(self, link: Link, status: Outgoing) -> None:
        try:
            await link.publish(status)
        except UndeliverableError as error:
            _log.warning("nobody is told how this replica is, at %s: %s", status.topic, error)

    def _terms(self) -> Terms:
        settings = self._door.settings()
        subscription = shared_filter(settings.prefix, settings.group)
        return Terms(
            subscription if self._phase == "online" else None,
            replica_topic(settings.prefix, self._replica),
            self._receive_maximum(),
            self._status(self._about("offline")),
            self._drop,
            self._pass_over,
            self._clean,
        )

    def _drop(self) -> None:
        if self._state.count("dropped") == 1:
            _log.warning("more requests of QoS 0 come than can be read: further ones are counted")

    def _pass_over(self) -> None:
        if self._state.count("unreadable") == 1:
            _log.warning(
                "a message cannot be read by the MQTT library, and is passed over; further ones are"
                " counted: see who may publish below this prefix"
            )

    def _receive_maximum(self) -> int:
        return min(65_535, self._door.most_at_hand() + SPARE)

    def _about(self, state: Phase) -> Mapping[str, Any]:
        """Who is how: all that a last will can know."""
        return {"replica": self._replica, "state": state}

    def _presence(self, state: Phase) -> Mapping[str, Any]:
        about = {**self._about(state), "since": round(self._since, 3)}
        return about if state == "offline" else {**about, **self._door.presence()}

    def _status(self, presence: Mapping[str, Any]) -> Outgoing:
        topic = status_topic(self._door.settings().prefix, self._replica)
        return Outgoing(topic, to_bytes(presence), retained=True, expiry_s=PRESENCE_S)


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks, and wait until they are over."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
