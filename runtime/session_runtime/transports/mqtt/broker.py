"""Connections to a broker by aiomqtt, which nothing else in the daemon imports (NET-6).

Of the library, two things are used that it keeps to itself, for want of others: acknowledging a message
when it was answered instead of when it came, and the connection that this needs.
"""

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiomqtt
from paho.mqtt.client import Client as Connection
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from session_runtime.config.mqtt import MqttSettings, tls_context
from session_runtime.threads import in_thread
from session_runtime.transports.mqtt.link import Incoming, LinkError, Outgoing, Terms
from session_runtime.wire.mqtt import JSON_TYPE

TIMEOUT_S: Final = 10.0
"""How long a broker may take to answer anything; longer means that the connection is dead."""

_QOS: Final = 1
_REFUSED: Final = 0x80
_NO_DELAY: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
_LARGEST: Final = 4
"""So many times the largest request is received, to be refused; of what is larger the broker keeps quiet."""

_MOST_PENDING: Final = 100_000
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
        try:
            client = await self._client(settings, terms)
            async with client:
                link = BrokerLink(client, terms.subscription)
                await link.subscribe()
                yield link
        except _FAULTS as error:
            raise LinkError(_told(error)) from error

    async def _client(self, settings: MqttSettings, terms: Terms) -> aiomqtt.Client:
        tls = await in_thread("read certificates", lambda: tls_context(settings))
        will, password = terms.will, settings.password
        client = aiomqtt.Client(
            settings.host,
            settings.port,
            username=settings.username,
            password=None if password is None else password.get_secret_value(),
            identifier=self.identifier,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=settings.session_expiry_s == 0,
            will=aiomqtt.Will(
                will.topic,
                will.body,
                _QOS,
                will.retained,
                _properties(will, PacketTypes.WILLMESSAGE),
            ),
            timeout=TIMEOUT_S,
            keepalive=settings.keepalive_s,
            properties=_connecting(settings, terms),
            tls_context=tls,
            socket_options=_NO_DELAY,
            max_inflight_messages=1_000,
        )
        client.pending_calls_threshold = _MOST_PENDING  # else each publish of many logs a warning
        _connection(client).manual_ack_set(True)
        return client


class BrokerLink:
    """One connection; see ``Link``."""

    def __init__(self, client: aiomqtt.Client, subscription: str | None) -> None:
        self._client = client
        self._subscription = subscription

    async def subscribe(self) -> None:
        """Have requests sent, but none that the broker keeps."""
        if self._subscription is None:
            return
        kept = SubscribeOptions.RETAIN_DO_NOT_SEND
        options = SubscribeOptions(qos=_QOS, retainAsPublished=True, retainHandling=kept)
        granted = await self._client.subscribe(self._subscription, options=options)
        codes = [code if isinstance(code, int) else code.value for code in granted]
        refused = [code for code in codes if code >= _REFUSED]
        if refused:
            raise LinkError(f"the broker refuses {self._subscription} (reason code {refused[0]})")

    async def messages(self) -> AsyncIterator[Incoming]:
        """See ``Link``."""
        try:
            async for message in self._client.messages:
                yield _incoming(message)
        except _FAULTS as error:
            raise LinkError(_told(error)) from error

    async def publish(self, message: Outgoing) -> None:
        """See ``Link``."""
        properties = _properties(message, PacketTypes.PUBLISH)
        try:
            await self._client.publish(
                message.topic, message.body, _QOS, message.retained, properties
            )
        except _FAULTS as error:
            raise LinkError(_told(error)) from error

    def acknowledge(self, message: Incoming) -> None:
        """See ``Link``."""
        if message.id is not None:
            _connection(self._client).ack(message.id, _QOS)

    async def unsubscribe(self) -> None:
        """See ``Link``."""
        if self._subscription is None:
            return
        try:
            await self._client.unsubscribe(self._subscription)
        except _FAULTS as error:
            raise LinkError(_told(error)) from error


def _connection(client: aiomqtt.Client) -> Connection:
    return client._client  # noqa: SLF001 - the only way to acknowledge late; see docs/decisions/mqtt.md


def _connecting(settings: MqttSettings, terms: Terms) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = settings.session_expiry_s
    properties.ReceiveMaximum = terms.receive_maximum
    properties.MaximumPacketSize = min(2**28, _LARGEST * settings.max_message_bytes + 65_536)
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


def _incoming(message: aiomqtt.Message) -> Incoming:
    given: Mapping[str, Any] = vars(message.properties) if message.properties else {}
    return Incoming(
        str(message.topic),
        _bytes(message.payload),
        message.mid if message.qos == _QOS else None,
        message.retain,
        given.get("ResponseTopic"),
        given.get("CorrelationData"),
        given.get("MessageExpiryInterval"),
        dict(given.get("UserProperty", ())),
    )


def _bytes(payload: object) -> bytes:
    return bytes(payload) if isinstance(payload, bytes | bytearray) else b""


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
