"""Publishes by aiomqtt and hears what the broker says of it, which the library passes over; for both ends.

It uses the connection below the library, paho's, which aiomqtt keeps to itself (docs/decisions/mqtt.md).
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

import aiomqtt
from paho.mqtt.client import Client as Connection
from paho.mqtt.client import ConnectFlags, DisconnectFlags
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

QOS: Final = 1
REFUSED: Final = 0x80
"""The first reason code of those that say no."""

_TOO_LARGE: Final = 0x95
_HEAD_BYTES: Final = 16
"""What a packet has besides topic, properties and body: flags, lengths and number."""


_UNREADABLE: Final = (0x81, 0x82)
"""Reason codes of a connection that ended over what came by it: malformed packet, protocol error."""

_T = TypeVar("_T")


class NotTakenError(Exception):
    """The broker does not take a message, and will not; ``too_large`` if that is for its size."""

    def __init__(self, why: str, *, too_large: bool = False) -> None:
        super().__init__(why)
        self.too_large = too_large


class Acks:
    """What the broker says of what it is given: its bound, and whether it took each message.

    ``unreadable`` says that the connection ended over something that came by it. Made before the client
    connects, and used while it is connected.
    """

    def __init__(self, client: aiomqtt.Client, timeout_s: float) -> None:
        connection = client._client  # noqa: SLF001 - see above
        self.connection: Connection = connection
        self._timeout_s = timeout_s
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._max_bytes: int | None = None
        self._gone = asyncio.Event()
        self.unreadable = False
        self._on_connect: Callable[..., object] | None = connection.on_connect
        self._on_disconnect: Callable[..., object] | None = connection.on_disconnect
        connection.on_connect = self._connected
        connection.on_disconnect = self._disconnected
        connection.on_publish = self._acknowledged

    async def publish(
        self, topic: str, body: bytes, properties: Properties, *, retained: bool = False
    ) -> None:
        """Publish with QoS 1, and wait until the broker has the message.

        Raises NotTakenError if it does not take it, and MqttError if the connection broke.
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
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(aiomqtt.MqttError("the connection broke"))

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
        if self._on_disconnect is not None:
            self._on_disconnect(client, userdata, flags, reason, properties)
        self._gone.set()
        self.give_up()

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
