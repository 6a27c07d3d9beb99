"""Rates and budgets of principals and their users."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask.admission import DAY_S, MINUTE_S, Admission, Who
from session_runtime.errors import BusyError
from session_runtime.limits import Limits

ANN, BOB = Who("bot", "ann"), Who("bot", "bob")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def refused(attempt: Callable[[], None]) -> tuple[str, float]:
    with pytest.raises(BusyError) as told:
        attempt()
    return told.value.code, told.value.retry_after_s or 0.0


@pytest.mark.requirement("NET-5c")
def test_so_many_asks_are_let_in_at_once_and_then_one_whenever_its_time_has_passed() -> None:
    clock = Clock()
    admission, limits = Admission(clock), Limits(asks_per_minute=3)
    for who in (ANN, BOB, ANN):
        admission.enter(who, limits)
    assert refused(lambda: admission.enter(BOB, limits)) == ("busy.rate", 20.0)
    assert refused(lambda: admission.enter(BOB, limits)) == ("busy.rate", 20.0)
    clock.now += 20.0
    admission.enter(BOB, limits)
    assert refused(lambda: admission.enter(ANN, limits)) == ("busy.rate", 20.0)
    admission.enter(Who("other", "ann"), limits)


@pytest.mark.requirement("NET-5c")
@pytest.mark.requirement("NET-2d")
def test_a_user_that_asks_too_often_does_not_use_up_what_its_principal_may() -> None:
    clock = Clock()
    admission, limits = Admission(clock), Limits(asks_per_minute=2, user_asks_per_minute=1)
    admission.enter(ANN, limits)
    for _ in range(5):
        assert refused(lambda: admission.enter(ANN, limits)) == ("busy.rate", 60.0)
    admission.enter(BOB, limits)
    assert refused(lambda: admission.enter(Who("bot", None), limits))[0] == "busy.rate"
    admission.enter(Who("other", "ann"), limits)


@pytest.mark.requirement("NET-5c")
@pytest.mark.requirement("NET-2d")
def test_a_budget_that_is_overdrawn_is_open_again_when_it_was_told() -> None:
    clock = Clock()
    admission, limits = Admission(clock), Limits(user_tokens_per_day=86_400)
    admission.enter(ANN, limits)
    admission.charge(ANN, limits, 86_400 + 99)
    assert refused(lambda: admission.enter(ANN, limits)) == ("busy.budget", 100.0)
    admission.enter(BOB, limits)
    clock.now += 99.0
    assert refused(lambda: admission.enter(ANN, limits)) == ("busy.budget", 1.0)
    clock.now += 1.0
    admission.enter(ANN, limits)


@pytest.mark.requirement("NET-5c")
def test_a_limit_that_is_changed_counts_from_then_on() -> None:
    clock = Clock()
    admission = Admission(clock)
    for _ in range(4):
        admission.enter(ANN, Limits(asks_per_minute=4))
    assert refused(lambda: admission.enter(ANN, Limits(asks_per_minute=4))) == ("busy.rate", 15.0)
    admission.enter(ANN, Limits(asks_per_minute=8))
    assert refused(lambda: admission.enter(ANN, Limits(asks_per_minute=2))) == ("busy.rate", 30.0)
    admission.enter(ANN, Limits())


def let_in(admission: Admission, limits: Limits) -> float | None:
    """Ask once; gives how long to wait if it was refused."""
    try:
        admission.enter(ANN, limits)
    except BusyError as error:
        return error.retry_after_s or 0.0
    return None


STEPS = st.lists(st.tuples(st.floats(0, 40), st.sampled_from(["ask", "wait"])), max_size=60)


@pytest.mark.requirement("NET-5c")
@given(most=st.integers(1, 9), steps=STEPS)
def test_no_stretch_of_time_lets_in_more_than_it_may_and_who_waits_as_told_is_let_in(
    most: int, steps: list[tuple[float, str]]
) -> None:
    clock, times = Clock(), []
    admission, limits = Admission(clock), Limits(asks_per_minute=most)
    for passed, what in steps:
        clock.now += passed
        wait_s = let_in(admission, limits)
        if wait_s is not None and what == "ask":
            continue
        if wait_s is not None:
            clock.now += wait_s
            assert let_in(admission, limits) is None
        times.append(clock.now)
    for first, start in enumerate(times):
        for last, end in enumerate(times[first:], first):
            assert last - first + 1 <= most + (end - start) * most / MINUTE_S + 0.001


@pytest.mark.requirement("NET-5c")
def test_so_many_users_are_remembered_and_a_principal_that_makes_them_up_forgets_its_own() -> None:
    clock = Clock()
    admission, limits = Admission(clock, most_users=10), Limits(user_asks_per_minute=1)
    admission.enter(ANN, limits)
    for number in range(1_000):
        admission.enter(Who("flood", f"user {number}"), limits)
        assert admission.users <= 10
    assert refused(lambda: admission.enter(ANN, limits))[0] == "busy.rate"
    assert refused(lambda: admission.enter(Who("flood", "user 999"), limits))[0] == "busy.rate"
    admission.enter(Who("flood", "user 0"), limits)


@pytest.mark.requirement("NET-5c")
def test_principals_without_end_are_forgotten_with_their_users() -> None:
    admission, limits = Admission(Clock()), Limits(user_asks_per_minute=1)
    for number in range(2_000):
        admission.enter(Who(f"p{number}", "ann"), limits)
    assert admission.users == 1_024


def test_nobody_is_remembered_where_there_is_no_limit() -> None:
    admission = Admission(Clock())
    admission.enter(ANN, Limits(user_max_concurrent_asks=1))
    admission.charge(ANN, Limits(), 10)
    assert admission.users == 0


@given(used=st.lists(st.tuples(st.integers(0, 500), st.floats(0, 30_000)), max_size=30))
def test_over_days_no_more_tokens_are_used_than_accrue_but_for_the_last_ask_of_each(
    used: list[tuple[int, float]],
) -> None:
    clock, total, start = Clock(), 0, 1_000.0
    admission, limits = Admission(clock), Limits(tokens_per_day=1_000)
    for tokens, passed in used:
        clock.now += passed
        if let_in(admission, limits) is not None:
            continue
        assert total <= 1_000 * (1 + (clock.now - start) / DAY_S)
        admission.charge(ANN, limits, tokens)
        total += tokens


@pytest.mark.requirement("NET-5c")
def test_a_limit_that_is_lowered_leaves_as_long_to_wait_as_the_new_one_means() -> None:
    clock = Clock()
    admission = Admission(clock)
    for _ in range(60):
        admission.enter(ANN, Limits(asks_per_minute=60))
    assert refused(lambda: admission.enter(ANN, Limits(asks_per_minute=2))) == ("busy.rate", 30.0)
    wide, narrow = Limits(tokens_per_day=1_000_000), Limits(tokens_per_day=1_000)
    admission.enter(BOB, wide)
    admission.charge(BOB, wide, 2_000_000)  # overdrawn by a day, and so it stays
    code, wait_s = refused(lambda: admission.enter(BOB, narrow))
    assert (code, round(wait_s / DAY_S, 2)) == ("busy.budget", 1.0)
