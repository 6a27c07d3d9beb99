"""A broker in memory for one replica, and a runtime whose asks are one function of the test."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretStr

from session_runtime.config.mqtt import MqttSettings, MqttSigner
from session_runtime.registry.keyring import Keyring
from session_runtime.transports.mqtt.backoff import Backoff
from session_runtime.transports.mqtt.endpoint import MqttEndpoint
from session_runtime.transports.mqtt.link import (
    Incoming,
    LinkError,
    Outgoing,
    Terms,
    TooLargeError,
    UndeliverableError,
)
from session_runtime.transports.mqtt.state import MqttState
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    AskStarted,
    Principal,
)

Emit = Callable[[AskEvent], None]
AskFunction = Callable[[AskRequest, Emit], Awaitable[AskResult]]

REPLY = "rt/reply/me/1"
SECRET = "s" * 32
HANGS_S = 30.0  # a test that waits for what never comes fails instead of hanging


async def answer(request: AskRequest, emit: Emit) -> AskResult:
    emit(AskStarted(ask_id="a1", seq=1, generation=1, model="m"))
    return finish(AskResult("a1", "answered", f"you said {request.text}"), emit)


def finish(result: AskResult, emit: Emit, seq: int = 2) -> AskResult:
    emit(AskFinished(ask_id=result.ask_id, seq=seq, result=result))
    return result


def asking(text: str = "hi", correlation: bytes = b"1", **more: Any) -> Incoming:
    """A request as a client sends it."""
    body = json.dumps({"text": text}).encode()
    return Incoming("rt/ask", body, id=7, reply=REPLY, correlation=correlation, **more)


def body_of(message: Outgoing) -> Any:
    return json.loads(message.body)


def kind_of(message: Outgoing) -> str:
    return message.properties["type"]


class MemoryLink:
    """One connection: what came, what was sent, what was acknowledged."""

    def __init__(self, terms: Terms, broker: "MemoryBroker") -> None:
        self.terms = terms
        self.acknowledged: list[Incoming] = []
        self.subscribed = terms.subscription is not None
        self.dead = False
        self.unreadable = False
        self._broker = broker
        self._inbox: asyncio.Queue[Incoming | None] = asyncio.Queue()

    async def messages(self) -> AsyncIterator[Incoming]:
        while (message := await self._inbox.get()) is not None:
            yield message
        raise LinkError("cut", unreadable=self.unreadable)

    async def publish(self, message: Outgoing) -> None:
        if self.dead:
            raise LinkError("cut")
        if self._broker.breaks_at(message):
            self.cut()
            raise LinkError("cut", broke=True)
        await self._broker.take(message)

    def acknowledge(self, message: Incoming) -> None:
        self.acknowledged.append(message)
        self._broker.changed.set()

    async def unsubscribe(self) -> None:
        self.subscribed = False

    def deliver(self, message: Incoming) -> None:
        self._inbox.put_nowait(message)

    def cut(self) -> None:
        self.dead = True
        self._inbox.put_nowait(None)


@dataclass
class MemoryBroker:
    """Keeps what was published; ``links`` are all connections that there were, the present one last.

    It ends a connection when it is given what it ``breaks_at``, and says that it took a message when
    ``takes_at`` is set, if that is given.
    """

    links: list[MemoryLink] = field(default_factory=list)
    answers: list[Outgoing] = field(default_factory=list)
    statuses: list[Outgoing] = field(default_factory=list)
    refuses: int = 0
    breaks_at: Callable[[Outgoing], bool] = lambda message: False
    refuses_by: Callable[[Outgoing], UndeliverableError | None] = lambda message: None
    takes_at: asyncio.Event | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def __call__(self, terms: Terms) -> AsyncIterator[MemoryLink]:
        if self.refuses:
            self.refuses -= 1
            self.changed.set()
            raise LinkError("refused")
        self.links.append(MemoryLink(terms, self))
        self.changed.set()
        yield self.links[-1]

    async def take(self, message: Outgoing) -> None:
        refusal = self.refuses_by(message)
        if refusal is not None:
            raise refusal
        (self.statuses if message.retained else self.answers).append(message)
        self.changed.set()
        if self.takes_at is not None:
            await self.takes_at.wait()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds that a message or a connection can change."""
        async with asyncio.timeout(HANGS_S):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


class StubDoor:
    """A runtime; ``keyring`` and ``signers`` may be changed while it is served."""

    def __init__(self, ask: AskFunction = answer, **settings: Any) -> None:
        self._ask = ask
        self._settings = MqttSettings(prefix="rt", **settings)
        self.keyring = Keyring()
        self.signers: Mapping[str, MqttSigner] = {}
        self.asked: list[AskRequest] = []
        self.chars: list[int] = []
        self.named: list[str] = []
        self.cancelled: list[tuple[str, str]] = []
        self.told = {"generation": 1}

    async def ask(self, request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        self.asked.append(request)
        self.chars.append(chars)
        self.named.append(ask_id)
        return await self._ask(request, emit)

    def cancel(self, ask_id: str, principal: Principal) -> bool:
        told_before = (ask_id, principal.name) in self.cancelled
        self.cancelled.append((ask_id, principal.name))
        return ask_id == "a1" and not told_before

    def keys(self) -> Keyring:
        return self.keyring

    def settings(self) -> MqttSettings:
        return self._settings.model_copy(update={"signers": self.signers})

    def presence(self) -> Mapping[str, Any]:
        return self.told

    def most_at_hand(self) -> int:
        return 4


def larger_than(most: int) -> Callable[[Outgoing], UndeliverableError | None]:
    """A broker that takes no larger body."""
    return lambda message: TooLargeError("too large") if len(message.body) > most else None


def signer(secret: str = SECRET) -> MqttSigner:
    return MqttSigner(secret=SecretStr(secret))


@dataclass
class Served:
    """A door that is open: its broker, its runtime, its numbers, and what ends it."""

    broker: MemoryBroker
    endpoint: MqttEndpoint
    state: MqttState
    stop: asyncio.Event
    serving: asyncio.Task[None]

    @property
    def link(self) -> MemoryLink:
        return self.broker.links[-1]

    async def send(self, *messages: Incoming, acknowledged: int | None = None) -> list[Outgoing]:
        """Deliver messages; once so many are acknowledged, give what was published for them."""
        before, link = len(self.broker.answers), self.link
        wanted = len(link.acknowledged) + (len(messages) if acknowledged is None else acknowledged)
        for message in messages:
            link.deliver(message)
        await self.broker.until(lambda: len(link.acknowledged) >= wanted)
        return [replace(each) for each in self.broker.answers[before:]]

    async def at_rest(self) -> None:
        """Wait until no message is in hand."""
        if self.endpoint._tasks:
            await asyncio.wait(self.endpoint._tasks, timeout=HANGS_S)

    async def reconnected(self) -> None:
        """Cut the connection, and wait for the next."""
        before = len(self.broker.links)
        self.link.cut()
        await self.broker.until(lambda: len(self.broker.links) > before)


@asynccontextmanager
async def served(
    door: StubDoor, broker: MemoryBroker | None = None, tell_s: float = HANGS_S, **options: Any
) -> AsyncIterator[Served]:
    """Open the door, and close it as the daemon does."""
    broker, state, stop = broker or MemoryBroker(), MqttState(), asyncio.Event()
    at_once = Backoff(lambda: 0.0, chance=lambda: -1.0)
    endpoint = MqttEndpoint(door, broker, "r1", state, backoff=at_once, tell_s=tell_s, **options)
    serving = asyncio.create_task(endpoint.serve(stop))
    await broker.until(lambda: bool(broker.links))
    try:
        yield Served(broker, endpoint, state, stop, serving)
    finally:
        stop.set()
        await serving
