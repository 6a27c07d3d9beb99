"""Publishes by aiomqtt and hears what the broker says, which the library passes over; for both ends.

It passes over what the library cannot read, instead of ending the connection, as paho would. It uses the
connection below the library, paho's, which aiomqtt keeps to itself (docs/decisions/mqtt.md).
"""

import asyncio
import struct
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import aiomqtt
from paho.mqtt.client import Client as Connection
from paho.mqtt.client import ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.exception import MalformedPacket
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from session_runtime.client.mqtt_line import NotTakenError

QOS: Final = 1
REFUSED: Final = 0x80
"""The first reason code of those that say no."""

_TOO_LARGE: Final = 0x95
_HEAD_BYTES: Final = 16
"""What a packet has besides topic, properties and body: flags, lengths and number."""


_UNREADABLE: Final = (0x81, 0x82)
"""Reason codes of a connection that ended over what came by it: malformed packet, protocol error."""

_TAKEN_OVER: Final = 0x8E
_NOBODY: Final = 0x10
"""The broker took a message, and nobody is subscribed to its topic."""

_BAD_PUBLISH: Final = (MalformedPacket, ValueError, IndexError, struct.error)
"""What the library raises over a message that it cannot read."""

_T = TypeVar("_T")


class BrokenError(aiomqtt.MqttError):
    """The connection broke while the broker was given a message, before it said that it has it."""


class Acks:
    """What the broker says: its bound, whether it took each message, and which of its own are repeated.

    ``unreadable`` says that the connection ended over something that came by it, ``taken_over`` that
    another one has the same name. ``passed_over`` is called for each message that cannot be read. Made
    before the client connects, and used while it is connected.
    """

    def __init__(
        self, client: aiomqtt.Client, timeout_s: float, passed_over: Callable[[], object]
    ) -> None:
        connection = client._client  # noqa: SLF001 - see above
        self._client = client
        self.connection: Connection = connection
        self._timeout_s = timeout_s
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._max_bytes: int | None = None
        self._gone = asyncio.Event()
        self._repeated: set[int] = set()
        self._passed_over = passed_over
        self.unreadable = False
        self.taken_over = False
        self._on_connect: Callable[..., object] | None = connection.on_connect
        self._on_disconnect: Callable[..., object] | None = connection.on_disconnect
        connection.on_connect = self._connected
        connection.on_disconnect = self._disconnected
        connection.on_publish = self._acknowledged
        self._on_message: Callable[..., object] | None = connection.on_message
        connection.on_message = self._came
        self._read_publish: Callable[[], MQTTErrorCode] = connection._handle_publish  # noqa: SLF001 - see above
        connection._handle_publish = self._readable  # type: ignore[method-assign]  # noqa: SLF001 - see above

    async def publish(
        self, topic: str, body: bytes, properties: Properties, *, retained: bool = False
    ) -> bool:
        """Publish with QoS 1, and wait until the broker has the message.

        False if the broker says that nobody gets it. Raises NotTakenError if it does not take it, MqttError
        if there is no connection or no word of the broker, and BrokenError if the connection broke over it.
        """
        packed: bytes = properties.pack()  # type: ignore[no-untyped-call]
        size = _HEAD_BYTES + len(topic.encode()) + len(packed) + len(body)
        if self._max_bytes is not None and size > self._max_bytes:
            why = f"it has {size} bytes, and the broker takes {self._max_bytes}"
            raise NotTakenError(why, too_large=True)
        sent = self.connection.publish(topic, body, QOS, retained, properties)
        if sent.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise aiomqtt.MqttError(f"the connection takes no message ({sent.rc.name})")
        code = await self._code_of(sent.mid)
        if code >= REFUSED:
            why = f"the broker refuses it (reason code {code})"
            raise NotTakenError(why, too_large=code == _TOO_LARGE)
        return code != _NOBODY

    def may_be_repeated(self, number: int) -> bool:
        """Whether the broker says of a message that it may have been sent before (DUP)."""
        return number in self._repeated

    async def subscribe(self, topic: str, options: SubscribeOptions) -> None:
        """Subscribe; raises MqttError if the broker refuses that."""
        granted = await self._client.subscribe(topic, options=options)
        codes = [code if isinstance(code, int) else code.value for code in granted]
        refused = [code for code in codes if code >= REFUSED]
        if refused:
            raise aiomqtt.MqttError(f"the broker refuses {topic} (reason code {refused[0]})")

    async def _code_of(self, number: int) -> int:
        waiting: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            async with asyncio.timeout(self._timeout_s):
                return await waiting
        except TimeoutError:
            raise aiomqtt.MqttError(f"the broker was silent for {self._timeout_s:g} s") from None
        finally:
            del self._waiting[number]

    async def unless_gone(self, doing: Coroutine[Any, Any, _T]) -> _T:
        """Do something for which the library would wait for its time-out if the connection broke."""
        done = asyncio.create_task(doing)
        gone = asyncio.create_task(self._gone.wait())
        try:
            await asyncio.wait((done, gone), return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                raise aiomqtt.MqttError("the connection broke")
            return done.result()
        finally:
            done.cancel()
            gone.cancel()
            await asyncio.wait((done, gone))

    def give_up(self) -> None:
        """Wait no longer: the connection is over."""
        self._hear_end()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(BrokenError("the connection broke"))

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
        if self._on_connect is not None:
            self._on_connect(client, userdata, flags, reason, properties)

    def _disconnected(
        self,
        client: Connection,
        userdata: object,
        flags: DisconnectFlags,
        reason: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        self.unreadable = reason.value in _UNREADABLE
        self.taken_over = reason.value == _TAKEN_OVER
        if self._on_disconnect is not None:
            self._on_disconnect(client, userdata, flags, reason, properties)
        self._hear_end()
        self._gone.set()
        self.give_up()

    def _hear_end(self) -> None:
        """Take note of why the connection ended, which the library tells nobody who has left by then."""
        ended = self._client._disconnected  # noqa: SLF001 - see above
        if ended.done() and not ended.cancelled():
            ended.exception()

    def _came(self, client: Connection, userdata: object, message: MQTTMessage) -> None:
        """Note which messages may be repeated; a number is that of one message until it is acknowledged."""
        (self._repeated.add if message.dup else self._repeated.discard)(message.mid)
        if self._on_message is not None:
            self._on_message(client, userdata, message)

    def _readable(self) -> MQTTErrorCode:
        """Read a message, and pass one over that the library cannot read: the broker is to forget it."""
        try:
            return self._read_publish()
        except _BAD_PUBLISH:
            self._passed_over()
            head: Mapping[str, Any] = self.connection._in_packet  # noqa: SLF001 - see above
            number = _number(head["command"], bytes(head["packet"]))
            if number is None:
                return MQTTErrorCode.MQTT_ERR_SUCCESS
            return self.connection._send_puback(number)  # noqa: SLF001 - see above

    def _acknowledged(
        self,
        client: Connection,
        userdata: object,
        mid: int,
        reason: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        del client, userdata, properties
        waiting = self._waiting.get(mid)
        if waiting is not None and not waiting.done():
            waiting.set_result(reason.value)


def _number(command: int, packet: bytes) -> int | None:
    """The number of a message that came; None if it has none, with QoS 0. ValueError without its place."""
    if command & 0x06 == 0:
        return None
    at = 2 + int.from_bytes(packet[:2])
    if len(packet) < at + 2:
        raise ValueError("a message without its number")
    return int.from_bytes(packet[at : at + 2])
