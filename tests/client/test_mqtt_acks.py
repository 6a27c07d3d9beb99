"""What a broker says of what it is given, as both ends of the MQTT door hear it (NET-6)."""

import asyncio
import gc
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from session_runtime.client.mqtt_acks import Acks


class Refusing(aiomqtt.Client):
    """A client whose broker grants nothing, which the library takes for a success."""

    async def subscribe(self, *arguments: Any, **options: Any) -> Any:
        return [ReasonCode(PacketTypes.SUBACK, "Not authorized")]


@pytest.mark.requirement("NET-6d")
async def test_a_subscription_that_the_broker_refuses_is_an_error_that_names_the_topic() -> None:
    acks = Acks(Refusing("127.0.0.1"), 1.0, print)
    with pytest.raises(aiomqtt.MqttError, match=r"refuses rt/reply/me \(reason code 135\)"):
        await acks.subscribe("rt/reply/me", SubscribeOptions(qos=1))


@pytest.mark.requirement("NET-6d")
async def test_a_connection_that_is_cut_leaves_no_error_that_nobody_hears() -> None:
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: unheard.append(about))
    client = aiomqtt.Client("127.0.0.1", protocol=aiomqtt.ProtocolVersion.V5)
    acks = Acks(client, 1.0, print)
    connected = ReasonCode(PacketTypes.CONNACK, "Success")
    acks.connection.on_connect(acks.connection, None, None, connected, None)  # type: ignore[misc,arg-type]
    cut = ReasonCode(PacketTypes.DISCONNECT, "Unspecified error")
    acks.connection.on_disconnect(acks.connection, None, None, cut, None)  # type: ignore[misc,arg-type]
    del client, acks
    gc.collect()
    assert unheard == []
