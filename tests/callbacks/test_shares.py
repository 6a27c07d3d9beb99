"""Room for results: a slow receiver and a busy principal leave room for the others."""

import asyncio

import pytest

from session_runtime.callbacks.shares import Most, Shares
from session_runtime.errors import BusyError

NARROW = Most(results=3, results_of_one=2, bytes=30, bytes_of_one=20, at_once=3, at_once_of_one=1)


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
def test_bytes_on_their_way_are_bounded_for_each_callback_and_in_all() -> None:
    shares = Shares(NARROW)
    with shares.carrying("slow", 20) as first, shares.carrying("slow", 1) as second:
        assert (first, "20 bytes" in second) == ("", True)
        assert says_busy(shares, "slow", "ann") == 20.0
        with shares.carrying("other", 10) as third, shares.carrying("more", 5) as fourth:
            assert (third, "30 bytes" in fourth) == ("", True)
            assert says_busy(shares, "more", "ann") == 20.0
    assert says_busy(shares, "slow", "ann") is None


@pytest.mark.requirement("SEC-3b")
async def test_a_receiver_that_holds_its_connections_keeps_no_other_from_being_sent_to() -> None:
    shares, held, go_on = Shares(NARROW), asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with shares.turn("slow"):
            held.set()
            await go_on.wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(hold())
        await held.wait()
        async with shares.turn("other"):
            go_on.set()
