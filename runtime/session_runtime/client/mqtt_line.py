"""A backend's connection to an MQTT broker by aiomqtt; what goes over it is decided in ``mqtt``."""

import logging
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from session_runtime.client.mqtt_acks import QOS, Acks
from session_runtime.types import nothing
from session_runtime.wire.mqtt import JSON_TYPE

TIMEOUT_S: Final = 10.0
_NO_DELAY: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
_FAULTS: Final = (aiomqtt.MqttError, OSError)
_log = logging.getLogger(__name__)


class LineError(Exception):
    """The connection cannot be made, or broke; the text says why."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, and as whom it is spoken to; ``tls`` encrypts the connection."""

    host: str = "127.0.0.1"
    port: int = 1883
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A message from the broker; ``retained`` is one that it had kept, ``expiry_s`` what is left of it."""

    topic: str
    body: bytes
    correlation: bytes | None = None
    retained: bool = False
    properties: Mapping[str, str] = field(default_factory=nothing)
    expiry_s: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request; ``expiry_s`` is how long it is worth carrying out."""

    topic: str
    body: bytes
    reply: str
    correlation: bytes
    expiry_s: int
    properties: Mapping[str, str]


class Line(Protocol):
    """One connection; both methods raise LineError once it broke."""

    def messages(self) -> AsyncIterator[Received]:
        """Give what comes, in order."""

    async def publish(self, message: Sent) -> bool:
        """Send a request, and wait until the broker has it; NotTakenError if it does not take it.

        False if the broker told that nobody gets it.
        """


class Connect(Protocol):
    """Opens connections that are subscribed to these topics; LineError if there can be none."""

    def __call__(self, topics: Sequence[str]) -> AbstractAsyncContextManager[Line]:
        """Open one."""


@dataclass(frozen=True, slots=True)
class BrokerConnect:
    """Connections to one broker; see ``Connect``. It keeps messages of more than ``most_bytes`` to itself."""

    broker: Broker
    most_bytes: int | None = None

    @asynccontextmanager
    async def __call__(self, topics: Sequence[str]) -> AsyncIterator["BrokerLine"]:
        """See ``Connect``."""
        broker = self.broker
        client = aiomqtt.Client(
            broker.host,
            broker.port,
            username=broker.username,
            password=broker.password,
            protocol=aiomqtt.ProtocolVersion.V5,
            tls_context=broker.tls,
            timeout=TIMEOUT_S,
            socket_options=_NO_DELAY,
            max_inflight_messages=1_000,
            properties=_connecting(self.most_bytes),
        )
        acks = Acks(client, TIMEOUT_S, _Passing().over)
        try:
            async with client:
                for topic in topics:
                    await acks.subscribe(topic, SubscribeOptions(qos=QOS))
                try:
                    yield BrokerLine(client, acks)
                finally:
                    acks.give_up()
        except _FAULTS as error:
            raise LineError(str(error)) from error


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """See ``Line``."""

    client: aiomqtt.Client
    acks: Acks

    async def messages(self) -> AsyncIterator[Received]:
        """See ``Line``."""
        try:
            async for message in self.client.messages:
                yield _received(message)
        except _FAULTS as error:
            raise LineError(str(error)) from error

    async def publish(self, message: Sent) -> bool:
        """See ``Line``."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ContentType = JSON_TYPE
        properties.ResponseTopic = message.reply
        properties.CorrelationData = message.correlation
        properties.MessageExpiryInterval = message.expiry_s
        properties.UserProperty = list(message.properties.items())
        try:
            return await self.acks.publish(message.topic, message.body, properties)
        except _FAULTS as error:
            raise LineError(str(error)) from error


@dataclass(slots=True)
class _Passing:
    """Tells of the first message of a connection that cannot be read; there may be many."""

    told: bool = False

    def over(self) -> None:
        if not self.told:
            _log.warning("a message of the MQTT broker cannot be read, and is passed over")
        self.told = True


def _connecting(most_bytes: int | None) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    if most_bytes is not None:
        properties.MaximumPacketSize = most_bytes
    return properties


def _received(message: aiomqtt.Message) -> Received:
    given: Mapping[str, Any] = vars(message.properties) if message.properties else {}
    body = message.payload if isinstance(message.payload, bytes | bytearray) else b""
    return Received(
        str(message.topic),
        bytes(body),
        given.get("CorrelationData"),
        message.retain,
        dict(given.get("UserProperty", ())),
        given.get("MessageExpiryInterval"),
    )
