"""A request that the broker ends connections over is given up, and costs no other one anything (NET-6)."""

import asyncio

import pytest

from session_runtime.client.mqtt import MqttClient
from session_runtime.client.trials import DEATHS, LATELY_S, Deaths
from session_runtime.errors import PermanentError
from tests.client.mqtt_memory import RESULT, Broker


@pytest.mark.requirement("NET-6c")
async def test_a_request_that_connections_break_over_is_given_up_and_others_get_their_answer() -> (
    None
):
    broker = Broker(breaks_over=b"poison")
    async with MqttClient(connect=broker, name="bot") as client, asyncio.timeout(60):
        other = asyncio.create_task(client.ask({"text": "3 * 4"}))
        sent = await broker.got(1)
        broker.tell("r1", "online", retained=True)
        broker.say(sent, "alive", {})
        with pytest.raises(PermanentError, match=f"may have run: {DEATHS} connections") as caught:
            await client.ask({"text": "poison"})
        broker.say(sent, "result", RESULT)
        assert (await other).text == "12"
    assert (caught.value.code, broker.connections) == ("mqtt.not_taken", DEATHS + 1)
    assert caught.value.may_have_run  # the broker may have passed it on before each of them broke
    poison = [each for each in broker.sent if b"poison" in each.body]
    assert len(poison) == DEATHS


@pytest.mark.requirement("NET-6c")
async def test_what_was_on_its_way_beside_it_is_not_given_up_with_it() -> None:
    broker = Broker(breaks_over=b"poison")
    async with MqttClient(connect=broker, name="bot") as client, asyncio.timeout(60):
        asks = [asyncio.create_task(client.ask({"text": each})) for each in ("poison", "a", "b")]
        with pytest.raises(PermanentError):
            await asks[0]
        for text in ("a", "b"):
            body = f'{{"text":"{text}"}}'.encode()
            sent = [each for each in broker.sent if each.body == body]
            broker.say(sent[-1], "result", RESULT, attempt=str(len(sent)))
        assert [(await each).text for each in asks[1:]] == ["12", "12"]


@pytest.mark.requirement("NET-6c")
def test_connections_that_end_far_from_each_other_are_no_messages_fault() -> None:
    deaths = Deaths()
    for number in range(5):
        deaths.count(number * (LATELY_S + 1.0))
    assert deaths.number == 1
    deaths.count(4 * (LATELY_S + 1.0) + LATELY_S)
    assert deaths.number == 2
    deaths.forget()
    assert deaths.number == 0
