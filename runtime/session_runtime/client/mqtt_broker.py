"""A backend's connection to an MQTT broker by aiomqtt; what goes over it is decided in ``mqtt``."""

import logging
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from session_runtime.client.mqtt_acks import QOS, Acks, BrokenError
from session_runtime.client.mqtt_line import Broker, LineError, Received, Sent
from session_runtime.wire.mqtt import JSON_TYPE

TIMEOUT_S: Final = 10.0
_NO_DELAY: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
_FAULTS: Final = (aiomqtt.MqttError, OSError)
_log = logging.getLogger(__name__)


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
            raise LineError(str(error), broke=isinstance(error, BrokenError)) from error


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
