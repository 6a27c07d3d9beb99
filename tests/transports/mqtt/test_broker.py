"""The edge to the MQTT library: what it keeps of what is not read yet, how its messages are read (NET-6)."""

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from session_runtime.transports.mqtt.broker import MOST_UNBOUND_BYTES, inbox, incoming
from session_runtime.transports.mqtt.link import Incoming


def message(qos: int, number: int = 1, properties: Properties | None = None) -> aiomqtt.Message:
    return aiomqtt.Message("rt/ask", b"{}", qos, False, number, properties)


@pytest.mark.requirement("NET-6d")
async def test_of_what_no_bound_was_agreed_on_so_much_waits_and_the_rest_is_dropped() -> None:
    dropped = []
    queue = inbox(lambda: dropped.append(1))(maxsize=2)
    for qos in (0, 0, 0, 1, 0, 1):
        queue.put_nowait(message(qos))
    assert [queue.get_nowait().qos for _ in range(queue.qsize())] == [0, 0, 1, 1]
    assert len(dropped) == 2
    large = aiomqtt.Message("rt/ask", b"x" * (MOST_UNBOUND_BYTES // 2 + 1), 0, False, 1, None)
    for _ in range(2):
        queue.put_nowait(large)
    assert (queue.get_nowait(), queue.qsize(), len(dropped)) == (large, 0, 3)
    queue.put_nowait(large)
    assert queue.qsize() == 1


@pytest.mark.requirement("NET-6c")
def test_a_message_without_time_left_is_not_one_without_a_bound() -> None:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.MessageExpiryInterval = 0
    properties.UserProperty = [("a", "1"), ("a", "2")]
    assert incoming(message(1, 7, properties)) == Incoming(
        "rt/ask", b"{}", id=7, expiry_s=0, properties={"a": "2"}
    )
    assert incoming(message(0), repeated=True) == Incoming("rt/ask", b"{}")
    assert incoming(message(1), repeated=True) == Incoming("rt/ask", b"{}", id=1, repeated=True)
