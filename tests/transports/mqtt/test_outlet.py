"""What is published goes by the next connection if this one fails (NET-6)."""

import asyncio

import pytest

from session_runtime.client.trials import DEATHS
from session_runtime.transports.mqtt.link import BrokenOverError, LinkError, Outgoing, Terms
from session_runtime.transports.mqtt.outlet import Outlet
from tests.transports.mqtt.memory import MemoryBroker, MemoryLink

MESSAGE = Outgoing("rt/reply/me", b"{}")
TERMS = Terms("rt/ask", "rt/ask/r1", 1, MESSAGE, dropped=print, passed_over=print)


@pytest.mark.requirement("NET-6d")
async def test_what_a_broken_connection_did_not_take_goes_by_the_next_one() -> None:
    broker, outlet = MemoryBroker(), Outlet()
    dead = MemoryLink(TERMS, broker)
    dead.dead = True
    outlet.open(dead)
    publishing = asyncio.create_task(outlet.publish(MESSAGE))
    breaking = asyncio.create_task(outlet.broken.wait())
    await asyncio.wait((publishing, breaking), return_when=asyncio.FIRST_COMPLETED)
    assert not publishing.done()
    assert (outlet.up, broker.answers) == (False, [])
    outlet.open(MemoryLink(TERMS, broker))
    await publishing
    assert (broker.answers, outlet.broken.is_set()) == ([MESSAGE], False)


@pytest.mark.requirement("NET-6d")
async def test_without_a_connection_it_waits_for_one() -> None:
    broker, outlet = MemoryBroker(), Outlet()
    publishing = asyncio.create_task(outlet.publish(MESSAGE))
    outlet.open(MemoryLink(TERMS, broker))
    await publishing
    assert broker.answers == [MESSAGE]


class Cut:
    """Connections by which every message with this body ends them, one after the other."""

    def __init__(self, body: bytes) -> None:
        self.broker = MemoryBroker(breaks_at=lambda message: message.body == body)
        self.outlet = Outlet()
        self.deaths = 0

    async def keep_open(self) -> None:
        """Open the next connection each time that one breaks."""
        while True:
            self.outlet.open(MemoryLink(TERMS, self.broker))
            await self.outlet.broken.wait()
            self.deaths += 1


@pytest.mark.requirement("NET-6d")
async def test_a_message_that_three_connections_died_of_is_given_up_and_others_are_not() -> None:
    cut = Cut(b"poison")
    keeping = asyncio.create_task(cut.keep_open())
    bodies = (b"1", b"poison", b"2")
    async with asyncio.timeout(30):
        told = await asyncio.gather(
            *(cut.outlet.publish(Outgoing("rt/reply/me", body)) for body in bodies),
            return_exceptions=True,
        )
    keeping.cancel()
    assert [type(each) for each in told] == [type(None), BrokenOverError, type(None)]
    assert sorted(each.body for each in cut.broker.answers) == [b"1", b"2"]
    assert cut.deaths == DEATHS


class SlowLink(MemoryLink):
    """A connection whose broker takes a while for each message, and all on their way die together."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__(TERMS, broker)
        self._died = asyncio.Event()

    async def publish(self, message: Outgoing) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            if message.body == b"poison" or self._died.is_set():
                self._died.set()
                raise LinkError("cut", broke=True)
        await super().publish(message)


@pytest.mark.requirement("NET-6d")
async def test_what_was_on_its_way_beside_it_is_not_given_up_with_it() -> None:
    broker, outlet = MemoryBroker(), Outlet()

    async def keep_open() -> None:
        while True:
            outlet.open(SlowLink(broker))
            await outlet.broken.wait()

    keeping = asyncio.create_task(keep_open())
    async with asyncio.timeout(30):
        told = await asyncio.gather(
            *(outlet.publish(Outgoing("rt/reply/me", body)) for body in (b"1", b"poison", b"2")),
            return_exceptions=True,
        )
    keeping.cancel()
    assert [type(each) for each in told] == [type(None), BrokenOverError, type(None)]


@pytest.mark.requirement("NET-6d")
async def test_a_broker_that_is_restarted_again_and_again_costs_no_message() -> None:
    broker, outlet = MemoryBroker(), Outlet()
    publishing = asyncio.create_task(outlet.publish(MESSAGE))
    for _ in range(2 * DEATHS):
        dead = MemoryLink(TERMS, broker)
        dead.dead = True  # it broke before it was given anything
        outlet.open(dead)
        await outlet.broken.wait()
    outlet.open(MemoryLink(TERMS, broker))
    await publishing
    assert broker.answers == [MESSAGE]


@pytest.mark.requirement("NET-6d")
async def test_what_is_new_waits_until_one_that_broke_a_connection_was_tried_alone() -> None:
    broker, outlet = MemoryBroker(takes_at=asyncio.Event()), Outlet()
    broken = MemoryLink(TERMS, MemoryBroker(breaks_at=lambda message: True))
    outlet.open(broken)
    suspect = asyncio.create_task(outlet.publish(Outgoing("rt/reply/me", b"suspect")))
    await outlet.broken.wait()
    outlet.open(MemoryLink(TERMS, broker))
    await broker.until(lambda: len(broker.answers) == 1)
    new = asyncio.create_task(outlet.publish(Outgoing("rt/reply/me", b"new")))
    for _ in range(20):
        await asyncio.sleep(0)
    assert [each.body for each in broker.answers] == [b"suspect"]
    assert broker.takes_at is not None
    broker.takes_at.set()
    await asyncio.gather(suspect, new)
    assert [each.body for each in broker.answers] == [b"suspect", b"new"]
