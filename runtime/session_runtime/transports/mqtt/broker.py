"""Connections to a broker by aiomqtt, which nothing else in the daemon imports (NET-6).

Of the library, one thing is used that it keeps to itself: the connection below it, paho's. Over that one a
message is acknowledged when it was answered instead of when it came, and what a broker says of its bounds and of
each message is heard, which the library passes over.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiomqtt
from paho.mqtt.client import Client as Connection
from paho.mqtt.client import ConnectFlags
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from session_runtime.config.mqtt import MqttSettings
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

_QOS: Final = 1
_REFUSED: Final = 0x80
_NO_DELAY: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
_LARGEST: Final = 4
"""So many times the largest request is received, to be refused; of what is larger the broker keeps quiet."""

GONE_S: Final = 5
"""How long a connection may be away before the broker says that the replica is: most are back sooner."""

MOST_UNBOUND: Final = 1_000
"""So many messages of QoS 0 may wait to be read; others the broker sends no more of than was agreed."""

_TOO_LARGE: Final = 0x95
_HEAD_BYTES: Final = 256
"""What a packet has besides topic, body, correlation data and user properties, and some to spare."""

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
            acks = _Acks(_connection(client))
            async with client:
                link = BrokerLink(client, acks, terms)
                await link.subscribe()
                try:
                    yield link
                finally:
                    acks.give_up()
        except _FAULTS as error:
            raise LinkError(_told(error)) from error

    async def _client(self, settings: MqttSettings, terms: Terms) -> aiomqtt.Client:
        tls = await in_thread("read certificates", lambda: _tls(settings))
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
                _will_properties(will, settings),
            ),
            timeout=TIMEOUT_S,
            keepalive=settings.keepalive_s,
            properties=_connecting(settings, terms),
            tls_context=tls,
            socket_options=_NO_DELAY,
            max_inflight_messages=1_000,
            max_queued_incoming_messages=MOST_UNBOUND,
            queue_type=_inbox(terms.dropped),
        )
        client.pending_calls_threshold = _MOST_PENDING  # else each publish of many logs a warning
        _connection(client).manual_ack_set(True)
        return client


class _Acks:
    """What the broker says of what it is given: its bound, and whether it took each message."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._max_bytes: int | None = None
        self._library: Callable[..., object] | None = connection.on_connect
        connection.on_connect = self._connected
        connection.on_publish = self._taken

    async def publish(self, message: Outgoing) -> None:
        """Send a message, and wait until it is taken; see ``Link``."""
        properties = _properties(message, PacketTypes.PUBLISH)
        size = _size(message)
        if self._max_bytes is not None and size > self._max_bytes:
            raise TooLargeError(f"{size} bytes, and the broker takes {self._max_bytes}")
        sent = self._connection.publish(
            message.topic, message.body, _QOS, message.retained, properties
        )
        if sent.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise LinkError(f"the connection takes no message ({sent.rc.name})")
        taken = self._waiting[sent.mid] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                code = await taken
        except TimeoutError:
            raise LinkError(f"the broker was silent for {TIMEOUT_S:g} s") from None
        finally:
            self._waiting.pop(sent.mid, None)
        if code >= _REFUSED:
            raise (TooLargeError if code == _TOO_LARGE else UndeliverableError)(
                f"the broker refuses it (reason code {code})"
            )

    def give_up(self) -> None:
        """Wait no longer: the connection is over."""
        for taken in self._waiting.values():
            if not taken.done():
                taken.set_exception(LinkError("the connection broke"))

    def _connected(
        self,
        client: Connection,
        userdata: object,
        flags: ConnectFlags,
        reason: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        given: Mapping[str, Any] = vars(properties) if properties else {}
        self._max_bytes = given.get("MaximumPacketSize")
        if self._library is not None:
            self._library(client, userdata, flags, reason, properties)

    def _taken(
        self,
        client: Connection,
        userdata: object,
        mid: int,
        reason: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        del client, userdata, properties
        taken = self._waiting.get(mid)
        if taken is not None and not taken.done():
            taken.set_result(reason.value)


class BrokerLink:
    """One connection; see ``Link``."""

    def __init__(self, client: aiomqtt.Client, acks: _Acks, terms: Terms) -> None:
        self._client = client
        self._acks = acks
        self._terms = terms

    async def subscribe(self) -> None:
        """Have requests sent, but none that the broker keeps."""
        kept = SubscribeOptions.RETAIN_DO_NOT_SEND
        options = SubscribeOptions(qos=_QOS, retainAsPublished=True, retainHandling=kept)
        for topic in (self._terms.own, self._terms.subscription):
            if topic is None:
                continue
            granted = await self._client.subscribe(topic, options=options)
            codes = [code if isinstance(code, int) else code.value for code in granted]
            refused = [code for code in codes if code >= _REFUSED]
            if refused:
                raise LinkError(f"the broker refuses {topic} (reason code {refused[0]})")

    async def messages(self) -> AsyncIterator[Incoming]:
        """See ``Link``."""
        try:
            async for message in self._client.messages:
                yield _incoming(message)
        except _FAULTS as error:
            raise LinkError(_told(error)) from error

    async def publish(self, message: Outgoing) -> None:
        """See ``Link``."""
        try:
            await self._acks.publish(message)
        except _FAULTS as error:
            raise LinkError(_told(error)) from error

    def acknowledge(self, message: Incoming) -> None:
        """See ``Link``."""
        if message.id is not None:
            _connection(self._client).ack(message.id, _QOS)

    async def unsubscribe(self) -> None:
        """See ``Link``."""
        if self._terms.subscription is None:
            return
        try:
            await self._client.unsubscribe(self._terms.subscription)
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


def _will_properties(will: Outgoing, settings: MqttSettings) -> Properties:
    properties = _properties(will, PacketTypes.WILLMESSAGE)
    properties.WillDelayInterval = min(GONE_S, settings.session_expiry_s)
    return properties


def _size(message: Outgoing) -> int:
    """How large its packet is at most, in bytes."""
    texts = [message.topic, *message.properties, *message.properties.values()]
    heads = 5 * len(message.properties)
    return (
        _HEAD_BYTES
        + heads
        + sum(len(text.encode()) for text in texts)
        + len(message.correlation or b"")
        + len(message.body)
    )


def _inbox(dropped: Callable[[], object]) -> type[asyncio.Queue[aiomqtt.Message]]:
    """What the library keeps messages in that are not read yet: of QoS 0 no more than it is bound to."""

    class Inbox(asyncio.Queue[aiomqtt.Message]):
        def full(self) -> bool:
            return False

        def put_nowait(self, item: aiomqtt.Message) -> None:
            if item.qos == 0 and self.qsize() >= self.maxsize:
                dropped()
            else:
                super().put_nowait(item)

    return Inbox


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


def _tls(settings: MqttSettings) -> ssl.SSLContext | None:
    if not settings.tls:
        return None
    context = ssl.create_default_context(cafile=settings.ca_file)
    if settings.cert_file is not None:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
