"""The MQTT client ends asks: also one that nobody waits for any more, or whose replica is gone (NET-6)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from session_runtime.client.mqtt import MqttAnswer, MqttClient
from session_runtime.client.mqtt_ending import MOST_LEFT, Left
from session_runtime.client.mqtt_line import Sent
from session_runtime.errors import PermanentError, RequestError
from tests.client.mqtt_memory import ASK, RESULT, Broker

Asking = asyncio.Task[MqttAnswer]


@asynccontextmanager
async def begun(broker: Broker) -> AsyncIterator[tuple[MqttClient, Asking, Sent]]:
    """A client with an ask that ``r1`` has begun as ``a1``."""
    async with MqttClient(connect=broker, name="bot") as client, asyncio.timeout(30):
        asking = asyncio.create_task(client.ask("3 * 4"))
        sent = await broker.got(1)
        broker.say(sent, "ask.started", {"type": "ask.started", "ask_id": "a1"}, seq="1")
        await broker.read()
        yield client, asking, sent
        asking.cancel()
        await asyncio.wait([asking])


@pytest.mark.requirement("NET-6b")
async def test_an_ask_that_nobody_waits_for_any_more_can_be_ended() -> None:
    broker = Broker()
    async with begun(broker) as (client, asking, _):
        asking.cancel()
        await asyncio.wait([asking])
        cancelling = asyncio.create_task(client.cancel("a1"))
        wanted = await broker.got(2)
        broker.say(wanted, "cancelled", {"cancelled": True})
        assert await cancelling
    assert (wanted.topic, wanted.body) == (f"{ASK}/r1", b'{"cancel":"a1"}')


@pytest.mark.requirement("NET-6b")
async def test_an_ask_whose_replica_is_gone_is_not_asked_anew_once_it_is_to_end() -> None:
    broker = Broker()
    async with begun(broker) as (client, asking, _):
        cancelling = asyncio.create_task(client.cancel("a1"))
        await broker.got(2)
        broker.tell("r1", "offline", since=1.0)
        assert await cancelling
        with pytest.raises(PermanentError, match="its caller ended this ask") as ended:
            await asking
        with pytest.raises(RequestError):
            await client.cancel("a1")
    assert (ended.value.code, ended.value.may_have_run) == ("cancelled.caller", True)
    assert [each.topic for each in broker.sent] == [ASK, f"{ASK}/r1"]


@pytest.mark.requirement("NET-6b")
async def test_an_ask_on_its_way_to_another_replica_is_ended_there() -> None:
    broker = Broker()
    async with begun(broker) as (client, asking, _):
        broker.tell("r1", "offline", since=1.0)
        again = await broker.got(2)
        cancelling = asyncio.create_task(client.cancel("a1"))
        await broker.read()
        assert (len(broker.sent), cancelling.done()) == (2, False)
        told = {"type": "ask.started", "ask_id": "a2"}
        broker.say(again, "ask.started", told, seq="1", replica="r2")
        wanted = await broker.got(3)
        broker.say(wanted, "cancelled", {"cancelled": True}, replica="r2")
        ended = {"outcome": "cancelled", "text": ""}
        broker.say(again, "result", ended, seq="2", replica="r2")
        assert (await cancelling, (await asking).outcome) == (True, "cancelled")
    assert (wanted.topic, wanted.body) == (f"{ASK}/r2", b'{"cancel":"a2"}')


@pytest.mark.requirement("NET-6b")
async def test_an_ask_that_is_answered_before_it_can_be_ended_was_not_ended() -> None:
    broker = Broker()
    async with begun(broker) as (client, asking, _):
        broker.tell("r1", "offline", since=1.0)
        again = await broker.got(2)
        cancelling = asyncio.create_task(client.cancel("a1"))
        await broker.read()
        broker.say(again, "result", RESULT, seq="1", replica="r2")
        assert (await cancelling, (await asking).text) == (False, "12")


@pytest.mark.requirement("NET-6b")
async def test_an_ask_that_was_left_at_a_replica_that_is_gone_is_ended_by_that() -> None:
    broker = Broker(nobody_at=[f"{ASK}/r1"])
    async with begun(broker) as (client, asking, _):
        asking.cancel()
        await asyncio.wait([asking])
        broker.tell("r1", "offline", since=1.0)
        await broker.read()
        assert not await client.cancel("a1", timeout_s=20)
        with pytest.raises(RequestError):
            await client.cancel("a1")
    assert [each.topic for each in broker.sent] == [ASK]


def test_of_asks_that_were_left_only_the_last_are_known() -> None:
    left = Left()
    for number in range(MOST_LEFT + 2):
        left.add(f"a{number}", "r1")
    assert [left.replica_of(f"a{number}") for number in (0, 1, 2)] == [None, None, "r1"]
    left.drop("a2")
    assert left.replica_of("a2") is None
