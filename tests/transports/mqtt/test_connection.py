"""The connection to the broker: its status, what it survives, how it ends (NET-6)."""

import asyncio
import json
from contextlib import suppress

import pytest

from session_runtime.transports.mqtt.backoff import Backoff
from session_runtime.transports.mqtt.link import Outgoing, Terms, UndeliverableError
from session_runtime.transports.mqtt.state import OUTCOMES
from session_runtime.types import AskRequest, AskResult
from session_runtime.wire.mqtt import BEAT_S
from tests.transports.mqtt.memory import (
    Emit,
    MemoryBroker,
    StubDoor,
    answer,
    asking,
    kind_of,
    served,
)


def status(state: str, **more: object) -> bytes:
    return json.dumps({"replica": "r1", "state": state, **more}, separators=(",", ":")).encode()


OFFLINE = Outgoing("rt/status/r1", status("offline"), retained=True, expiry_s=86_400)


@pytest.mark.requirement("NET-6d")
async def test_a_connection_has_a_will_a_shared_subscription_and_a_bound_on_what_is_in_hand() -> (
    None
):
    async with served(StubDoor()) as door:
        assert door.link.terms == Terms(
            "$share/replicas/rt/ask", "rt/ask/r1", 68, OFFLINE, dropped=print, passed_over=print
        )
    async with served(StubDoor(group="")) as door:
        assert door.link.terms.subscription == "rt/ask"


@pytest.mark.requirement("NET-6d")
async def test_the_retained_status_follows_what_the_replica_is_and_ends_as_offline() -> None:
    stub, now = StubDoor(), [100.0]
    async with served(stub, tell_s=0.001, wall=lambda: now[0]) as door:
        await door.broker.until(lambda: len(door.broker.statuses) == 1)
        stub.told, now[0] = {"generation": 2}, 107.0
        await door.broker.until(lambda: len(door.broker.statuses) == 2)
        now[0] = 109.0
    assert [each.body for each in door.broker.statuses] == [
        status("online", since=100.0, generation=1, at=100.0),
        status("online", since=100.0, generation=2, at=107.0),
        status("offline", since=109.0, at=109.0),
    ]
    assert {(each.retained, each.expiry_s) for each in door.broker.statuses} == {(True, 86_400)}


@pytest.mark.parametrize("later_s", [BEAT_S, -1.0], ids=["a minute on", "the clock was set back"])
@pytest.mark.requirement("NET-6d")
async def test_a_status_without_change_is_told_again_as_a_sign_of_life(later_s: float) -> None:
    now = [1_000.0]
    async with served(StubDoor(), tell_s=0.001, wall=lambda: now[0]) as door:
        await door.broker.until(lambda: len(door.broker.statuses) == 1)
        now[0] += later_s
        await door.broker.until(lambda: len(door.broker.statuses) == 2)
        told = [json.loads(each.body) for each in door.broker.statuses]
    assert told[1] == {**told[0], "at": 1_000.0 + later_s}


@pytest.mark.requirement("NET-6d")
async def test_draining_leaves_the_group_and_answers_what_is_at_hand() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        begun.set()
        await go_on.wait()
        return await answer(request, emit)

    async with served(StubDoor(ask)) as door:
        door.link.deliver(asking())
        await begun.wait()
        door.endpoint.drain()
        await door.broker.until(lambda: len(door.broker.statuses) == 2)
        assert not door.link.subscribed
        go_on.set()
        door.stop.set()
        await door.serving
    assert kind_of(door.broker.answers[-1]) == "result"
    assert [json.loads(each.body)["state"] for each in door.broker.statuses] == [
        *("online", "draining", "offline"),
    ]


@pytest.mark.requirement("NET-6d")
async def test_a_broker_that_goes_and_comes_is_subscribed_to_again_and_told_again() -> None:
    broker = MemoryBroker()
    async with served(StubDoor(), broker) as door:
        await broker.until(lambda: len(broker.statuses) == 1)
        broker.refuses = 2
        await door.reconnected()
        assert door.link.terms.subscription == "$share/replicas/rt/ask"
        await broker.until(lambda: len(broker.statuses) == 2)
        assert [kind_of(each) for each in await door.send(asking())] == ["ask.started", "result"]
        await door.at_rest()
        told = door.state.status()
    assert told is not None
    assert (told["connections"], told["fault"], told["in_hand"]) == (2, None, 0)


@pytest.mark.requirement("NET-6d")
async def test_what_cannot_be_read_is_forgotten_with_its_session_instead_of_coming_again() -> None:
    async with served(StubDoor()) as door:
        await door.broker.until(lambda: len(door.broker.statuses) == 1)
        door.link.unreadable = True
        await door.reconnected()
        await door.broker.until(lambda: len(door.broker.statuses) == 2)
        await door.reconnected()
    assert [link.terms.clean for link in door.broker.links] == [False, True, False]


@pytest.mark.requirement("NET-6d")
async def test_a_request_that_begins_while_the_door_is_closed_by_force_is_ended_with_it() -> None:
    begun = asyncio.Event()

    async def ask(request: AskRequest, emit: Emit) -> AskResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    with suppress(asyncio.CancelledError):
        async with served(StubDoor(ask)) as door:
            door.link.deliver(asking())
            await begun.wait()
            door.serving.cancel()
            door.link.deliver(asking(correlation=b"2"))
    assert door.endpoint._tasks == set()


@pytest.mark.requirement("NET-6d")
async def test_a_broker_that_takes_no_status_takes_asks_all_the_same() -> None:
    broker = MemoryBroker(
        refuses_by=lambda message: UndeliverableError("no") if message.retained else None
    )
    async with served(StubDoor(), broker) as door:
        assert [kind_of(each) for each in await door.send(asking())] == ["ask.started", "result"]
    assert len(broker.links) == 1


async def test_the_daemon_can_be_stopped_while_there_is_no_broker() -> None:
    broker = MemoryBroker()
    async with served(StubDoor(), broker) as door:
        broker.refuses = 10**9
        door.link.cut()
        await broker.until(lambda: broker.refuses < 10**9)
        door.stop.set()
        await asyncio.wait_for(door.serving, 30)
    assert door.serving.done()


async def test_metrics_have_every_outcome_at_any_time() -> None:
    async with served(StubDoor()) as door:
        await door.send(asking())
        await door.at_rest()
        told = {
            (each.name, tuple(sample.labels.values())): sample.value
            for each in door.state.metrics()
            for sample in each.samples
        }
    assert told == {
        ("mqtt_connected", ()): 1,
        ("mqtt_messages_in_hand", ()): 0,
        ("mqtt_connections_total", ()): 1,
        ("mqtt_messages_total", ("answered",)): 1,
        **{("mqtt_messages_total", (outcome,)): 0 for outcome in OUTCOMES if outcome != "answered"},
    }


def test_waits_between_connections_grow_and_depend_on_chance() -> None:
    lucky, unlucky = (Backoff(lambda: 0.0, lambda part=part: part) for part in (0.0, 1.0))
    assert [lucky.next_s() for _ in range(4)] == [0.25, 0.5, 1.0, 2.0]
    assert [unlucky.next_s() for _ in range(9)][-3:] == [30.0, 30.0, 30.0]


def test_only_a_connection_that_lasted_makes_waits_short_again() -> None:
    now = [0.0]
    backoff = Backoff(lambda: now[0], lambda: 1.0)
    for lasted, wait_s in ((0.1, 0.5), (0.1, 1.0), (10.0, 0.5)):
        backoff.connected()
        now[0] += lasted
        assert backoff.next_s() == wait_s


def test_a_name_that_two_daemons_have_is_fought_over_ever_more_seldom() -> None:
    now = [0.0]
    backoff = Backoff(lambda: now[0], lambda: 1.0)
    told = []
    for lasted in (0.1, 0.1, 0.1, 20.0, 59.0, 60.0):
        backoff.connected()
        now[0] += lasted
        told.append((backoff.next_s(), backoff.disputed))
    assert told == [
        *((0.5, False), (1.0, False), (2.0, True), (4.0, True), (8.0, True)),
        (0.5, False),
    ]


def test_a_broker_that_is_restarted_often_is_not_taken_for_another_of_the_same_name() -> None:
    backoff = Backoff(lambda: 0.0)
    for _ in range(9):
        backoff.connected()
        backoff.next_s()
        backoff.next_s()  # nothing listened for a moment
    assert not backoff.disputed
    for _ in range(3):
        backoff.next_s(taken_over=True)
    assert backoff.disputed


@pytest.mark.requirement("NET-6d")
async def test_a_name_that_another_daemon_may_have_is_told_to_operators() -> None:
    async with served(StubDoor()) as door:
        for _ in range(3):
            await door.reconnected()
        status = door.state.status()
    assert status is not None
    assert (status["name_disputed"], status["connections"]) == (True, 4)


async def test_messages_that_cannot_be_read_are_counted_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(StubDoor()) as door:
        for _ in range(3):
            door.link.terms.passed_over()
        status = door.state.status()
    assert status is not None
    assert status["messages"]["unreadable"] == 3
    assert sum("cannot be read" in each for each in caplog.messages) == 1
