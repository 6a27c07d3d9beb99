"""Who may run now, who waits, and who is next."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.ask import places as module
from session_runtime.ask.places import Bounds, Claim, Places
from session_runtime.errors import BusyError
from session_runtime.types import AskRequest


def places(running: int = 100, waiting: int = 100, in_all: int = 200) -> Places:
    return Places(lambda: Bounds(running, waiting, in_all))


def claim(
    name: str, user: str | None = None, talk: str | None = None, own: int | None = 1
) -> Claim:
    return Claim(name, "bot", user, talk, own)


async def entering(here: Places, *claims: Claim) -> list[asyncio.Task[bool]]:
    tasks = [asyncio.create_task(here.enter(each), name=each.ask_id) for each in claims]
    await asyncio.sleep(0)
    return tasks


async def settled() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.requirement("ASK-13")
async def test_free_places_go_round_the_users_who_wait_and_one_that_has_a_place_comes_last() -> (
    None
):
    here = places()
    await here.enter(claim("first", "greedy"))
    greedy = [claim(f"g{n}", "greedy") for n in range(3)]
    tasks = await entering(
        here, *greedy, claim("a0", "ann"), claim("b0", "bob"), claim("a1", "ann")
    )
    order, running = [], "first"
    for _ in tasks:
        here.leave(running)
        await settled()
        [running] = [
            task.get_name() for task in tasks if task.done() and task.get_name() not in order
        ]
        order.append(running)
    assert order == ["a0", "b0", "g0", "a1", "g1", "g2"]


@pytest.mark.requirement("ASK-13")
async def test_who_was_cancelled_a_moment_ago_is_passed_over() -> None:
    here = places()
    await here.enter(claim("first"))
    gone, going, last = await entering(here, claim("gone"), claim("going"), claim("last"))
    gone.cancel()
    going.cancel()
    here.dismiss("going")
    here.leave("first")
    await settled()
    assert (gone.cancelled(), going.cancelled(), last.done()) == (True, True, True)
    assert here.waiting == 0


@pytest.mark.requirement("ASK-13")
async def test_one_conversation_runs_in_order_and_another_does_not_wait_for_it() -> None:
    here = places()
    assert await here.enter(claim("one", "ann", "c", own=None)) is False
    two, three = await entering(here, *(claim(n, "ann", "c", own=None) for n in ("two", "three")))
    assert await here.enter(claim("other", "ann", "d", own=None)) is False
    assert await here.enter(claim("bob's", "bob", "c", own=None)) is False
    here.leave("one")
    await settled()
    assert (two.done(), three.done()) == (True, False)
    here.leave("two")
    assert await three is True


@pytest.mark.requirement("NET-5b")
async def test_a_user_cannot_fill_the_queue_for_the_others() -> None:
    here = places(waiting=4)
    await here.enter(claim("first"))
    tasks = await entering(here, claim("g0", "greedy"), claim("g1", "greedy"))
    with pytest.raises(BusyError) as refused:
        await here.enter(claim("g2", "greedy"))
    assert refused.value.code == "busy.queue"
    assert "2 of them of this user" in str(refused.value)
    tasks += await entering(here, claim("a0", "ann"), claim("b0", "bob"))
    with pytest.raises(BusyError):
        await here.enter(claim("c0", "cid"))
    assert [task.done() for task in tasks] == [False] * 4
    for task in tasks:
        task.cancel()


@pytest.mark.requirement("NET-5b")
async def test_no_principal_can_fill_the_queue_of_all() -> None:
    here = places(in_all=4)

    def of(principal: str, number: int) -> Claim:
        return Claim(f"{principal}{number}", principal, f"u{number}", "c", 1)

    for principal in ("greedy", "ann", "bob", "cid"):
        await here.enter(of(principal, 0))
    tasks = await entering(here, of("greedy", 1), of("greedy", 2))
    with pytest.raises(BusyError) as refused:
        await here.enter(of("greedy", 3))
    assert (refused.value.code, here.waiting) == ("busy.waiting", 2)
    assert "2 of them of 'greedy'" in str(refused.value)
    tasks += await entering(here, of("ann", 1), of("bob", 1))
    with pytest.raises(BusyError):
        await here.enter(of("cid", 1))
    for task in tasks:
        task.cancel()
    await settled()
    assert here.waiting == 0
    assert await entering(here, of("cid", 1))
    assert here.waiting == 1


@pytest.mark.requirement("NET-5c")
async def test_a_user_that_has_as_many_as_it_may_waits_until_one_of_its_own_has_ended() -> None:
    here = places()

    def of(name: str, user: str | None) -> Claim:
        return Claim(name, "bot", user, None, None, of_user=1)

    await here.enter(of("a0", "ann"))
    [waiting] = await entering(here, of("a1", "ann"))
    for name, user in (("b0", "bob"), ("n0", None)):
        assert await here.enter(of(name, user)) is False
    here.leave("b0")
    await settled()
    assert not waiting.done()
    here.leave("a0")
    assert await waiting is True


async def test_the_daemon_s_own_limit_refuses_and_lets_in_those_who_wait_first() -> None:
    here = places(running=1)
    await here.enter(claim("one", "ann", "c", own=None))
    [two] = await entering(here, claim("two", "ann", "c", own=None))
    with pytest.raises(BusyError) as refused:
        await here.enter(claim("three", own=None))
    assert refused.value.code == "busy.capacity"
    here.leave("one")
    assert await two is True


async def test_who_is_cancelled_with_a_place_in_hand_gives_it_back() -> None:
    here = places()
    await here.enter(claim("one"))
    two, three = await entering(here, claim("two"), claim("three"))
    here.leave("one")  # two has its place, and does not know yet
    two.cancel()
    assert await three is True
    here.leave("three")
    assert await here.enter(claim("four")) is False
    assert here.waiting == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "leave", "cancel", "dismiss"]),
        st.integers(0, 30),
        st.sampled_from("pq"),
        st.sampled_from(["ann", "bob", None]),
        st.sampled_from(["c", "d", None]),
    ),
    max_size=60,
)


@pytest.mark.requirement("ASK-13")
@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
async def test_no_bound_is_ever_passed_and_nobody_is_forgotten(
    steps: list[tuple[str, int, str, str | None, str | None]],
) -> None:
    here = places(running=4, waiting=5, in_all=6)
    claims: dict[str, Claim] = {}
    tasks: dict[str, asyncio.Task[bool]] = {}
    running: set[str] = set()
    for at, (what, which, principal, user, talk) in enumerate(steps):
        names = sorted(running if what == "leave" else tasks)
        name = names[which % len(names)] if names else ""
        if what == "enter":
            claims[str(at)] = Claim(str(at), principal, user, talk, 2, 1)
            tasks[str(at)] = asyncio.create_task(here.enter(claims[str(at)]))
        elif what == "leave":
            here.leave(name)
            running.discard(name)
        elif name and what == "cancel":
            tasks.pop(name).cancel()
        elif name:
            here.dismiss(name)
            tasks.pop(name)
        await settled()
        for each in [each for each, task in tasks.items() if task.done()]:
            if tasks.pop(each).exception() is None:
                running.add(each)
        held = [claims[each] for each in running]
        talks = [each.talk for each in held if each.conversation is not None]
        assert len(held) <= 4
        assert all(count <= 2 for count in Counter(each.principal for each in held).values())
        assert len(talks) == len(set(talks))
        assert len({each.whose for each in held}) == len(held)
        assert here.waiting == len(tasks) <= 6
    while running:
        here.leave(running.pop())
        await settled()
        running |= {each for each, task in tasks.items() if task.done()}
        tasks = {each: task for each, task in tasks.items() if not task.done()}
    assert (tasks, here.waiting) == ({}, 0)


@pytest.mark.requirement("ASK-13")
async def test_a_limit_that_is_raised_lets_in_those_who_wait_at_once() -> None:
    here = places()
    await here.enter(claim("first"))
    second, third, fourth = await entering(here, *map(claim, ("second", "third", "fourth")))
    here.review(lambda each: replace(each, own=3))
    await settled()
    assert (second.done(), third.done(), fourth.done(), here.waiting) == (True, True, False, 1)
    fourth.cancel()


@pytest.mark.requirement("NET-5")
async def test_requests_that_wait_are_bounded_by_their_length_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING_CHARS", 3_000)
    here, asks = places(), AskRequest("x" * 1_000)
    await here.enter(claim("first"))
    tasks = await entering(here, *(replace(claim(f"w{n}"), request=asks) for n in range(3)))
    await asyncio.wait([tasks[2]])
    with pytest.raises(BusyError, match="wait may have") as busy:
        await tasks[2]
    assert (busy.value.code, here.waiting) == ("busy.waiting", 2)
    [waits] = await entering(here, Claim("o1", "other", own=0, request=AskRequest("y" * 500)))
    assert (waits.done(), here.waiting) == (False, 3)
    for each in (*tasks[:2], waits):
        each.cancel()
    await asyncio.wait([*tasks[:2], waits])
    assert here.waiting == 0
