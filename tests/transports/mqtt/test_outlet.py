"""What is published goes by the next connection if this one fails (NET-6)."""

import asyncio

import pytest

from session_runtime.transports.mqtt.link import Outgoing, Terms
from session_runtime.transports.mqtt.outlet import Outlet
from tests.transports.mqtt.memory import MemoryBroker, MemoryLink

MESSAGE = Outgoing("rt/reply/me", b"{}")
TERMS = Terms("rt/ask", 1, MESSAGE)


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
