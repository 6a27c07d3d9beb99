"""Connections of the daemon to a broker by aiomqtt (NET-6).

What the broker says of what it is given is heard by ``client/mqtt_acks``.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from session_runtime.client.mqtt_acks import QOS, Acks, BrokenError
from session_runtime.client.mqtt_line import NotTakenError
from session_runtime.config.addresses import broker_address
from session_runtime.config.mqtt import MqttSettings, tls_context
from session_runtime.threads import in_thread
from session_runtime.transports.mqtt.link import (
    Incoming,
    LinkError,
    Outgoing,
    Terms,
    TooLargeError,
    UndeliverableError,
)
from session_runtime.wire.mqtt import JSON_TYPE

TIMEOUT_S: Final = 10.0
"""How long a broker may take to answer anything; longer means that the connection is dead."""

_NO_DELAY: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
_LARGEST: Final = 4
"""So many times the largest request is received, to be refused; of what is larger the broker keeps quiet."""

GONE_S: Final = 5
"""How long a connection may be away before the broker says that the replica is: most are back sooner."""

MOST_UNBOUND: Final = 1_000
MOST_UNBOUND_BYTES: Final = 16 * 1024 * 1024
"""So much may wait to be read when one of QoS 0 comes; of others the broker sends no more than was agreed."""

_FAULTS: Final = (aiomqtt.MqttError, OSError)


@dataclass(frozen=True, slots=True)
class Broker:
    """Opens connections as the settings in force say; ``identifier`` is the client's name at the broker."""

    settings: Callable[[], MqttSettings]
    identifier: str

    @asynccontextmanager
    async def __call__(self, terms: Terms) -> AsyncIterator["BrokerLink"]:
        """See ``Connect``."""
        settings = self.settings()
        client = await self._client(settings, terms)
        acks = Acks(client, TIMEOUT_S, terms.passed_over)
        acks.connection.manual_ack_set(True)
        try:
            async with client:
                link = BrokerLink(client, acks, terms)
                await acks.unless_gone(link.subscribe())
                try:
                    yield link
                finally:
                    acks.give_up()
        except (*_FAULTS, LinkError) as error:
            why = "another client took its name" if acks.taken_over else _told(error)
            raise LinkError(why, unreadable=acks.unreadable, taken_over=acks.taken_over) from error

    async def _client(self, settings: MqttSettings, terms: Terms) -> aiomqtt.Client:
        try:
            tls = await in_thread("read certificates", lambda: tls_context(settings))
        except OSError as error:
            raise LinkError(_told(error)) from error
        broker, will, password = broker_address(settings.url), terms.will, settings.password
        return aiomqtt.Client(
            broker.host,
            broker.port,
            username=settings.username,
            password=None if password is None else password.get_secret_value(),
            identifier=self.identifier,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=terms.clean or settings.session_expiry_s == 0,
            will=aiomqtt.Will(
                will.topic,
                will.body,
                QOS,
                will.retained,
                _will_properties(will, settings),
            ),
            timeout=TIMEOUT_S,
            keepalive=settings.keepalive_s,
            properties=_connecting(settings, terms),
            tls_context=tls,
            socket_options=_NO_DELAY,
            max_inflight_messages=1_000,
            max_queued_incoming_messages=MOST_UNBOUND,
            queue_type=inbox(terms.dropped),
        )


class BrokerLink:
    """One connection; see ``Link``."""

    def __init__(self, client: aiomqtt.Client, acks: Acks, terms: Terms) -> None:
        self._client = client
        self._acks = acks
        self._terms = terms

    async def subscribe(self) -> None:
        """Have requests sent, but none that the broker keeps."""
        kept = SubscribeOptions.RETAIN_DO_NOT_SEND
        options = SubscribeOptions(qos=QOS, retainAsPublished=True, retainHandling=kept)
        for topic in (self._terms.own, self._terms.subscription):
            if topic is not None:
                await self._acks.subscribe(topic, options)

    async def messages(self) -> AsyncIterator[Incoming]:
        """See ``Link``."""
        try:
            async for message in self._client.messages:
                yield incoming(message, repeated=self._acks.may_be_repeated(message.mid))
        except _FAULTS as error:
            raise LinkError(_told(error)) from error

    async def publish(self, message: Outgoing) -> None:
        """See ``Link``."""
        try:
            properties = _properties(message, PacketTypes.PUBLISH)
            await self._acks.publish(
                message.topic, message.body, properties, retained=message.retained
            )
        except NotTakenError as error:
            raise (TooLargeError if error.too_large else UndeliverableError)(str(error)) from error
        except _FAULTS as error:
            raise LinkError(_told(error), broke=isinstance(error, BrokenError)) from error

    def acknowledge(self, message: Incoming) -> None:
        """See ``Link``."""
        if message.id is not None:
            self._acks.connection.ack(message.id, QOS)

    async def unsubscribe(self) -> None:
        """See ``Link``."""
        if self._terms.subscription is None:
            return
        try:
            await self._client.unsubscribe(self._terms.subscription)
        except _FAULTS as error:
            raise LinkError(_told(error)) from error


def _connecting(settings: MqttSettings, terms: Terms) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = settings.session_expiry_s
    properties.ReceiveMaximum = terms.receive_maximum
    properties.MaximumPacketSize = min(2**28, _LARGEST * settings.max_payload_bytes + 65_536)
    return properties


def _properties(message: Outgoing, packet: int) -> Properties:
    properties = Properties(packet)  # type: ignore[no-untyped-call]
    properties.ContentType = JSON_TYPE
    if message.correlation is not None:
        properties.CorrelationData = message.correlation
    if message.expiry_s is not None:
        properties.MessageExpiryInterval = message.expiry_s
    if message.properties:
        properties.UserProperty = list(message.properties.items())
    return properties


def _will_properties(will: Outgoing, settings: MqttSettings) -> Properties:
    properties = _properties(will, PacketTypes.WILLMESSAGE)
    properties.WillDelayInterval = min(GONE_S, settings.session_expiry_s)
    return properties


def inbox(dropped: Callable[[], object]) -> type[asyncio.Queue[aiomqtt.Message]]:
    """What the library keeps messages in that are not read yet: of QoS 0 no more than it is bound to."""

    class Inbox(asyncio.Queue[aiomqtt.Message]):
        waiting_bytes = 0

        def full(self) -> bool:
            return False

        def put_nowait(self, item: aiomqtt.Message) -> None:
            much = self.waiting_bytes + len(_bytes(item.payload)) > MOST_UNBOUND_BYTES
            if item.qos == 0 and (much or self.qsize() >= self.maxsize):
                dropped()
            else:
                self.waiting_bytes += len(_bytes(item.payload))
                super().put_nowait(item)

        def _get(self) -> aiomqtt.Message:
            item = super()._get()
            self.waiting_bytes -= len(_bytes(item.payload))
            return item

    return Inbox


def incoming(message: aiomqtt.Message, *, repeated: bool = False) -> Incoming:
    """A message as the library has it; ``repeated`` if the broker says that it may be."""
    given: Mapping[str, Any] = vars(message.properties) if message.properties else {}
    return Incoming(
        str(message.topic),
        _bytes(message.payload),
        message.mid if message.qos == QOS else None,
        message.retain,
        given.get("ResponseTopic"),
        given.get("CorrelationData"),
        given.get("MessageExpiryInterval"),
        dict(given.get("UserProperty", ())),
        repeated=repeated and message.qos == QOS,
    )


def _bytes(payload: object) -> bytes:
    return bytes(payload) if isinstance(payload, bytes | bytearray) else b""


def _told(error: Exception) -> str:
    told = str(error) or type(error).__name__
    return told if error.__cause__ is None else f"{told}: {error.__cause__}"
