"""A guard lets calls through in order, no more than its limits say, and forgets those who left."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.registry.invoke.guard import (
    MINUTE_S,
    MOST_CONNECTIONS,
    Guard,
    Pass,
    Refused,
    RouteStatistics,
)
from session_runtime.registry.spec import UNLIMITED, Limits
from tests.registry.invoke.virtual_time import now, virtually

LATER = 1_000.0
NOTHING = RouteStatistics(0, 0, "closed", 0, 0, {})


async def entered(guard: Guard, limits: Limits, until: float = LATER, over: str = "") -> Pass:
    answer = await guard.enter(limits, until, over)
    assert isinstance(answer, Pass)
    return answer


def waiting_for(
    guard: Guard, limits: Limits, until: float = LATER, over: str = ""
) -> asyncio.Task[Pass | Refused]:
    return asyncio.create_task(guard.enter(limits, until, over))


@pytest.mark.requirement("RTE-6")
def test_those_who_wait_for_room_get_it_in_the_order_in_which_they_came() -> None:
    async def run() -> list[int]:
        guard, order = Guard(), list[int]()

        async def one(number: int) -> None:
            admitted = await entered(guard, Limits(max_concurrency=2))
            order.append(number)
            assert guard.statistics(now()).in_flight <= 2
            await asyncio.sleep(1 + number % 3)
            guard.leave(admitted, "answered")

        await asyncio.gather(*(one(number) for number in range(20)))
        assert guard.statistics(now()) == RouteStatistics(20, 0, "closed", 0, 0, {})
        return order

    assert virtually(run()) == list(range(20))


@pytest.mark.requirement("RTE-6")
def test_who_comes_later_does_not_overtake_those_who_wait() -> None:
    async def run() -> None:
        guard, limits = Guard(), Limits(max_concurrency=1)
        first = await entered(guard, limits)
        second = waiting_for(guard, limits)
        await asyncio.sleep(0)
        guard.leave(first, "answered")
        late = waiting_for(guard, limits)
        admitted = await second
        assert isinstance(admitted, Pass)
        assert guard.statistics(now()).waiting == 1
        guard.leave(admitted, "answered")
        assert isinstance(await late, Pass)

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_the_wait_for_room_ends_with_the_time_of_the_call() -> None:
    async def run() -> None:
        guard, limits = Guard(), Limits(max_concurrency=1)
        await entered(guard, limits)
        answer = await guard.enter(limits, 5.0)
        assert isinstance(answer, Refused)
        assert (answer.reason, now()) == ("full", 5.0)
        assert guard.statistics(now()) == RouteStatistics(1, 0, "closed", 1, 0, {"full": 1})

    virtually(run())


@pytest.mark.requirement("RTE-6")
@given(
    rate=st.integers(1, 5),
    gaps=st.lists(st.sampled_from([0.0, 1.0, 20.0, 59.0, 61.0]), max_size=30),
)
def test_no_minute_sees_more_calls_begin_than_may(rate: int, gaps: list[float]) -> None:
    async def run() -> list[float]:
        guard, began = Guard(), list[float]()

        async def one() -> None:
            guard.leave(await entered(guard, Limits(rate_per_minute=rate), 1e9), "answered")
            began.append(now())

        async with asyncio.TaskGroup() as group:
            for gap in gaps:
                await asyncio.sleep(gap)
                group.create_task(one())
        return began

    began = virtually(run())
    assert len(began) == len(gaps)
    for start in began:
        assert sum(start <= each < start + MINUTE_S for each in began) <= rate


@pytest.mark.requirement("RTE-6")
def test_a_rate_that_leaves_no_room_in_time_refuses_at_once_and_says_when_there_is() -> None:
    async def run() -> None:
        guard, limits = Guard(), Limits(rate_per_minute=1)
        guard.leave(await entered(guard, limits), "answered")
        await asyncio.sleep(10)
        answer = await guard.enter(limits, 30.0)
        assert isinstance(answer, Refused)
        assert (answer.reason, answer.retry_after_s, now()) == ("rate", 50.0, 10.0)

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_new_limits_act_with_the_next_call_on_those_who_wait_too() -> None:
    async def run() -> None:
        guard = Guard()
        await entered(guard, Limits(max_concurrency=1))
        waiting = [waiting_for(guard, Limits(max_concurrency=1)) for _ in range(2)]
        await asyncio.sleep(1)
        await entered(guard, Limits(max_concurrency=4))
        assert [isinstance(await each, Pass) for each in waiting] == [True, True]
        assert guard.statistics(now()).in_flight == 4

    virtually(run())


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize("limits", [Limits(max_concurrency=1), Limits(rate_per_minute=1)])
@pytest.mark.parametrize("let_in_before", [False, True])
def test_who_stops_waiting_leaves_nothing_behind(limits: Limits, let_in_before: bool) -> None:
    async def run() -> None:
        guard = Guard()
        first = await entered(guard, limits)
        gone = waiting_for(guard, limits)
        await asyncio.sleep(0)
        if let_in_before:
            guard.leave(first, "answered")
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        if not let_in_before:
            guard.leave(first, "answered")
        assert guard.statistics(now()) == RouteStatistics(1, 0, "closed", 0, 0, {})
        assert guard.idle
        await entered(guard, limits)
        assert now() == (MINUTE_S if limits.rate_per_minute else 0.0)

    virtually(run())


async def gone_once_let_in(guard: Guard, limits: Limits, running: Pass) -> None:
    """A waiter whose caller goes away when room has come, but before it can take it."""
    gone = waiting_for(guard, limits)
    await asyncio.sleep(0)
    guard.leave(running, "unknown")
    assert guard.statistics(now()).waiting == 0
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone


@pytest.mark.requirement("RTE-6")
def test_who_goes_away_once_let_in_gives_its_token_back() -> None:
    async def run() -> None:
        guard, limits = Guard(), Limits(max_concurrency=1, rate_per_minute=2)
        await gone_once_let_in(guard, limits, await entered(guard, limits))
        await entered(guard, limits)
        assert now() == 0.0

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_the_room_of_who_goes_away_once_let_in_is_that_of_the_next_who_waits() -> None:
    async def run() -> None:
        guard, limits = Guard(), Limits(max_concurrency=1)
        running = await entered(guard, limits)
        gone, following = (waiting_for(guard, limits) for _ in range(2))
        await asyncio.sleep(0)
        guard.leave(running, "answered")
        gone.cancel()
        assert isinstance(await following, Pass)
        assert (gone.cancelled(), now()) == (True, 0.0)
        assert guard.statistics(now()) == RouteStatistics(2, 0, "closed", 1, 0, {})

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_who_goes_away_once_let_in_as_the_probe_is_none() -> None:
    async def run() -> None:
        guard, limits = Guard(), Limits(max_concurrency=1, failures=1, pause_s=30)
        running = await entered(guard, limits)
        guard.leave(await entered(guard, Limits(2, failures=1, pause_s=30)), "failed")
        await asyncio.sleep(30)
        await gone_once_let_in(guard, limits, running)
        guard.leave(await entered(guard, limits), "answered")
        assert guard.statistics(now()).breaker == "closed"

    virtually(run())


async def fail(guard: Guard, limits: Limits, over: str = "") -> None:
    for _ in range(limits.failures):
        guard.leave(await entered(guard, limits, over=over), "failed")


BREAKS = Limits(max_concurrency=2, failures=3, pause_s=30)


@pytest.mark.requirement("RTE-6")
def test_an_open_breaker_refuses_at_once_and_says_when_to_come_again() -> None:
    async def run() -> None:
        guard = Guard()
        await fail(guard, BREAKS)
        await asyncio.sleep(10)
        answer = await guard.enter(BREAKS, LATER)
        assert isinstance(answer, Refused)
        assert (answer.reason, answer.retry_after_s, now()) == ("open", 20.0, 10.0)
        assert guard.statistics(now()) == RouteStatistics(3, 3, "open", 0, 0, {"open": 1})

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_those_who_wait_are_refused_the_moment_the_breaker_opens() -> None:
    async def run() -> None:
        guard, limits = Guard(), Limits(max_concurrency=1, failures=1, pause_s=30)
        running = await entered(guard, limits)
        waiting = [waiting_for(guard, limits) for _ in range(3)]
        await asyncio.sleep(4)
        guard.leave(running, "failed")
        answers = await asyncio.gather(*waiting)
        assert [getattr(each, "reason", None) for each in answers] == ["open"] * 3
        assert now() == 4.0

    virtually(run())


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize("verdict", ["answered", "failed"])
def test_one_of_fifty_is_the_probe_and_decides_for_all(verdict: str) -> None:
    async def run() -> None:
        guard = Guard()
        await fail(guard, BREAKS)
        await asyncio.sleep(30)
        answers = await asyncio.gather(*(guard.enter(BREAKS, LATER) for _ in range(50)))
        probes = [each for each in answers if isinstance(each, Pass)]
        assert len(probes) == 1
        guard.leave(probes[0], "answered" if verdict == "answered" else "failed")
        after = guard.statistics(now())
        assert after.breaker == ("closed" if verdict == "answered" else "open")
        assert (after.calls, after.refused) == (4, {"open": 49})

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_a_probe_whose_caller_gives_up_lets_the_next_call_be_the_probe() -> None:
    async def run() -> None:
        guard = Guard()
        await fail(guard, BREAKS)
        await asyncio.sleep(30)
        guard.leave(await entered(guard, BREAKS), "unknown")
        assert guard.statistics(now()).breaker == "half_open"
        guard.leave(await entered(guard, BREAKS), "answered")
        assert guard.statistics(now()).breaker == "closed"

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_a_connection_that_fails_is_left_alone_and_no_other_is() -> None:
    async def run() -> None:
        guard = Guard()
        await fail(guard, BREAKS, "one")
        refused = await guard.enter(BREAKS, LATER, "one")
        assert isinstance(refused, Refused)
        assert refused.reason == "open"
        guard.leave(await entered(guard, BREAKS, over="other"), "answered")
        assert isinstance(await guard.enter(BREAKS, LATER, "one"), Refused)

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_all_connections_share_the_room_and_the_rate_in_the_order_of_their_calls() -> None:
    async def run() -> list[tuple[str, float]]:
        guard, began = Guard(), list[tuple[str, float]]()

        async def one(over: str, name: str) -> None:
            limits = replace(BREAKS, max_concurrency=1, rate_per_minute=3)
            admitted = await entered(guard, limits, over=over)
            began.append((name, now()))
            await asyncio.sleep(1)
            guard.leave(admitted, "answered")

        calls = [("one", "a"), ("other", "b"), ("other", "c"), ("one", "d")]
        await asyncio.gather(*(one(*each) for each in calls))
        return began

    assert virtually(run()) == [("a", 0.0), ("b", 1.0), ("c", 2.0), ("d", 60.0)]


@pytest.mark.requirement("RTE-6")
def test_those_who_wait_for_a_connection_that_fails_are_refused_and_others_wait_on() -> None:
    async def run() -> None:
        guard = Guard()
        limits = replace(BREAKS, failures=1)
        failing, running = [await entered(guard, limits, over=each) for each in ("one", "other")]
        waiting = [waiting_for(guard, limits, over=each) for each in ("other", "one", "other")]
        await asyncio.sleep(0)
        guard.leave(failing, "failed")
        first, refused = await waiting[0], await waiting[1]
        assert isinstance(first, Pass)
        assert isinstance(refused, Refused)
        assert (refused.reason, waiting[2].done()) == ("open", False)
        guard.leave(running, "answered")
        assert isinstance(await waiting[2], Pass)

    virtually(run())


@pytest.mark.requirement("RTE-6")
def test_what_a_connection_owes_is_forgotten_once_there_were_a_thousand_others() -> None:
    async def run() -> None:
        guard = Guard()
        await fail(guard, BREAKS, "one")
        for number in range(MOST_CONNECTIONS - 1):
            guard.leave(await entered(guard, BREAKS, over=str(number)), "failed")
        assert isinstance(await guard.enter(BREAKS, LATER, "one"), Refused)
        guard.leave(await entered(guard, BREAKS, over="other"), "failed")
        assert isinstance(await guard.enter(BREAKS, LATER, "one"), Pass)

    virtually(run())


def test_where_nothing_is_limited_nobody_waits() -> None:
    async def run() -> None:
        guard = Guard()
        assert guard.statistics(now()) == NOTHING
        passes = [await entered(guard, UNLIMITED, 0.0) for _ in range(1_000)]
        for each in passes:
            guard.leave(each, "failed")
        assert guard.statistics(now()) == RouteStatistics(1_000, 1_000, "closed", 0, 0, {})

    virtually(run())
