"""Room for results: a slow receiver and a busy principal leave room for the others."""

import asyncio

import pytest

from session_runtime.callbacks.shares import Most, Shares
from session_runtime.errors import BusyError

NARROW = Most(
    results=3,
    results_of_one=2,
    bytes=30,
    bytes_of_one=20,
    bytes_waiting=40,
    at_once=3,
    at_once_of_one=1,
)


def says_busy(shares: Shares, name: str, principal: str) -> float | None:
    """How long it tells to wait; None if there is room."""
    try:
        shares.check(name, principal, 20.0)
    except BusyError as busy:
        return busy.retry_after_s if busy.code == "busy.callbacks" else None
    return None


@pytest.mark.requirement("SEC-3b")
def test_a_callback_that_is_full_is_so_for_itself_and_says_how_long_to_wait() -> None:
    shares = Shares(NARROW)
    with shares.expecting("slow", "ann"):
        with shares.expecting("slow", "bob"):
            assert says_busy(shares, "slow", "eve") == 20.0
            assert says_busy(shares, "other", "eve") is None
        assert says_busy(shares, "slow", "eve") is None


@pytest.mark.requirement("SEC-3b")
def test_a_principal_has_a_share_and_all_together_a_bound() -> None:
    shares = Shares(NARROW)
    with shares.expecting("a", "ann"), shares.expecting("b", "ann"):
        assert says_busy(shares, "c", "ann") == 20.0
        assert says_busy(shares, "c", "bob") is None
        with shares.expecting("c", "bob"):
            assert says_busy(shares, "d", "eve") == 20.0


@pytest.mark.requirement("SEC-3b")
async def test_bytes_on_their_way_are_bounded_for_each_callback_and_in_all_and_the_rest_waits() -> (
    None
):
    shares, order = Shares(NARROW), list[str]()

    async def carry(name: str, size: int) -> None:
        async with shares.carrying(name, size) as no_room:
            order.append(f"{name} {size}{no_room and ' no room'}")

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        async with shares.carrying("slow", 20), shares.carrying("other", 10):
            assert says_busy(shares, "slow", "ann") == 20.0
            for name, size in (("slow", 9), ("more", 5), ("slow", 30), ("more", 1)):
                tasks.create_task(carry(name, size))
                await asyncio.sleep(0)
            assert order == ["slow 30 no room"]  # 14 bytes wait, and 40 may
    assert order == ["slow 30 no room", "more 5", "more 1", "slow 9"]
    assert says_busy(shares, "slow", "ann") is None


@pytest.mark.requirement("SEC-3b")
async def test_whoever_waits_for_room_and_is_cancelled_leaves_it_to_others() -> None:
    shares = Shares(NARROW)

    async def carry(size: int) -> str:
        async with shares.carrying("slow", size) as no_room:
            return no_room

    async with shares.carrying("slow", 20):
        waiting = [asyncio.create_task(carry(size)) for size in (20, 20)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        assert await carry(40)  # 20 bytes wait
    assert await waiting[1] == ""


async def held(shares: Shares, name: str, go_on: asyncio.Event, there: asyncio.Semaphore) -> None:
    async with shares.turn(name):
        there.release()
        await go_on.wait()


@pytest.mark.requirement("SEC-3b")
async def test_a_receiver_that_holds_its_connections_keeps_no_other_from_being_sent_to() -> None:
    shares, go_on, there = Shares(NARROW), asyncio.Event(), asyncio.Semaphore(0)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(held(shares, "slow", go_on, there))
        await there.acquire()
        async with shares.turn("other"):
            go_on.set()


@pytest.mark.requirement("SEC-3b")
async def test_many_receivers_that_hold_their_connections_leave_room_for_one_that_does_not() -> (
    None
):
    shares, go_on, there = Shares(Most()), asyncio.Event(), asyncio.Semaphore(0)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        for name in "abcdefgh":
            for _ in range(8):
                tasks.create_task(held(shares, name, go_on, there))
        for _ in range(36):
            await there.acquire()
        async with shares.turn("healthy"):
            go_on.set()
