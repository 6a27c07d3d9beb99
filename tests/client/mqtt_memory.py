"""A broker in memory for the MQTT client of backends; the test says what comes back."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from session_runtime.client.mqtt import MqttAnswer, MqttClient
from session_runtime.client.mqtt_line import LineError, NotTakenError, Received, Sent

RESULT = {"outcome": "answered", "text": "12"}
ASK = "session-runtime/ask"
BUSY = {"code": "busy.capacity", "message": "full", "retryable": True, "retry_after_s": 0.0}


@dataclass
class Broker:
    """Keeps what was sent; the test says what comes back. Connections end over what ``breaks_over`` is in."""

    sent: list[Sent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    inbox: asyncio.Queue[Received | None] = field(default_factory=asyncio.Queue)
    topics: Sequence[str] = ()
    refusal: NotTakenError | None = None
    refuses: str = ASK
    nobody_at: Sequence[str] = ()
    breaks_over: bytes | None = None
    connections: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def __call__(self, topics: Sequence[str]) -> AsyncIterator["Broker"]:
        self.topics = topics
        self.connections += 1
        yield self

    async def messages(self) -> AsyncIterator[Received]:
        while (message := await self._next()) is not None:
            yield message
        raise LineError("cut")

    async def _next(self) -> Received | None:
        if self.inbox.empty():
            self.idle.set()
        for _ in range(5):  # as from a socket
            await asyncio.sleep(0)
        return await self.inbox.get()

    async def publish(self, message: Sent) -> bool:
        self.sent.append(message)
        self.changed.set()
        if self.breaks_over is not None and self.breaks_over in message.body:
            self.inbox.put_nowait(None)
            raise LineError("cut", broke=True)
        if self.refusal is not None and message.topic == self.refuses:
            raise self.refusal
        return message.topic not in self.nobody_at

    async def got(self, number: int) -> Sent:
        """Wait for the request of that number, from 1 on."""
        async with asyncio.timeout(30):
            while len(self.sent) < number:
                self.changed.clear()
                await self.changed.wait()
        return self.sent[number - 1]

    async def read(self) -> None:
        """Wait until what was said is read, and done what follows."""
        async with asyncio.timeout(30):
            while not self.inbox.empty():
                self.idle.clear()
                await self.idle.wait()
        for _ in range(20):
            await asyncio.sleep(0)

    def say(self, to: Sent, kind: str, data: object, **about: str) -> None:
        properties = {"type": kind, "replica": "r1", **about}
        body = json.dumps(data).encode()
        self.inbox.put_nowait(Received(to.reply, body, to.correlation, properties=properties))

    def tell(
        self, replica: str, state: str, *, retained: bool = False, left_s: int = 0, **more: object
    ) -> None:
        """What a replica says, or as a last will, which has no ``since``, the broker."""
        body = json.dumps({"replica": replica, "state": state, **more}).encode()
        topic = f"session-runtime/status/{replica}"
        self.inbox.put_nowait(Received(topic, body, retained=retained, expiry_s=left_s or None))


@asynccontextmanager
async def asking(
    broker: Broker, timeout_s: float = 30.0, **options: Any
) -> AsyncIterator[asyncio.Task[MqttAnswer]]:
    """A client with one ask under way."""
    events = options.pop("on_event", None)
    async with MqttClient(connect=broker, name="bot", **options) as client:
        task = asyncio.create_task(
            client.ask({"text": "3 * 4"}, timeout_s=timeout_s, on_event=events)
        )
        yield task
        task.cancel()
        await asyncio.wait([task])
