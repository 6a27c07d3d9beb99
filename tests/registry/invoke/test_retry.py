"""Which try comes next: by the class of what went wrong, in time, and never a second effect."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from session_runtime.errors import TransientError
from session_runtime.registry.invoke.guard import Refused
from session_runtime.registry.invoke.outcome import Outcome, Raised, Returned, TimedOut
from session_runtime.registry.invoke.retry import Tries
from session_runtime.registry.spec import Annotations, Route, ToolSpec
from tests.registry.invoke.remote import (
    BAD_ARGUMENTS,
    CRASH,
    DOWN,
    INTERNAL,
    LOST_AFTER,
    LOST_BEFORE,
    NOT_FOUND,
    RATE_LIMITED,
    TOOL_ERROR,
    Fault,
)
from tests.registry.tools import nothing, spec

PLAIN = spec("far.t", origin="mcp")
REPEATABLE = replace(PLAIN, annotations=Annotations(idempotent=True))
OPEN = Refused("open", "it failed", 20.0)
OBSTACLE = Refused("obstacle", "it is down")
FULL = Refused("full", "it is full")
IDLE = TimedOut("idle", 2.0, may_have_run=True)

Tried = tuple[str, float, bool]


def of(fault: Fault) -> Raised:
    assert fault.error is not None
    return Raised(fault.error())


def played(
    outcomes: Sequence[Outcome],
    tool: ToolSpec = PLAIN,
    routes: str = "a",
    deadline: float = 1_000.0,
    jitter: float = 1.0,
) -> tuple[list[Tried], Tries]:
    """What is tried when tries end like this, the last for ever: route, pause before, waits for room."""
    tries = Tries(tool, [Route(each, nothing) for each in routes], deadline, lambda: jitter)
    made: list[Tried] = []
    now, left = 0.0, list(outcomes)
    while (following := tries.next(now)) is not None:
        now += following.pause_s
        made.append((following.route.id, following.pause_s, following.patient))
        tries.ended(following, left.pop(0) if len(left) > 1 else left[0])
        assert len(made) < 50
    return made, tries


def order(outcomes: Sequence[Outcome], **how: Any) -> str:
    """The routes in the order in which they were tried."""
    return "".join(route for route, _, _ in played(outcomes, **how)[0])


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("fault", [BAD_ARGUMENTS, INTERNAL, TOOL_ERROR, CRASH])
@pytest.mark.parametrize("tool", [PLAIN, REPEATABLE])
def test_what_would_fail_again_is_not_tried_again(fault: Fault, tool: ToolSpec) -> None:
    assert order([of(fault)], tool=tool, routes="ab") == "a"


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("fault", [LOST_BEFORE, DOWN])
def test_what_did_not_run_is_tried_three_times_with_growing_pauses(fault: Fault) -> None:
    made, _ = played([of(fault)])
    assert made == [("a", 0.0, True), ("a", 0.5, True), ("a", 1.0, True)]


@pytest.mark.requirement("RTE-8")
def test_pauses_are_as_long_as_chance_says() -> None:
    made, _ = played([of(LOST_BEFORE)], jitter=0.25)
    assert [pause for _, pause, _ in made] == [0.0, 0.125, 0.25]


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("outcome", [of(LOST_AFTER), IDLE])
def test_what_may_have_run_is_tried_again_only_if_that_does_no_harm(outcome: Outcome) -> None:
    assert order([outcome], routes="ab") == "a"
    assert order([outcome], routes="ab", tool=REPEATABLE) == "ababab"
    assert order([outcome], tool=replace(PLAIN, keyed=True)) == "aaa"


@pytest.mark.requirement("RTE-8")
def test_a_rate_limit_is_waited_for_as_long_as_the_other_side_asks() -> None:
    made, _ = played([of(RATE_LIMITED), Returned("x")])
    assert made == [("a", 0.0, True), ("a", 7.0, True)]


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("wanted", [float("nan"), -5.0])
def test_a_wait_that_makes_no_sense_is_not_heeded(wanted: float) -> None:
    error = TransientError("x", code="mcp.rate_limited", retry_after_s=wanted)
    assert played([Raised(error), Returned("x")])[0] == [("a", 0.0, True), ("a", 0.5, True)]


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("wanted", [10.0, float("inf")])
def test_there_is_no_pause_beyond_the_deadline(wanted: float) -> None:
    error = TransientError("x", code="mcp.rate_limited", retry_after_s=wanted)
    made, tries = played([Raised(error)], deadline=10.0)
    assert (len(made), tries.outcome) == (1, Raised(error))


@pytest.mark.requirement("RTE-8")
def test_nothing_is_tried_again_after_the_deadline() -> None:
    assert order([IDLE], tool=REPEATABLE, routes="ab", deadline=0.0) == "a"


@pytest.mark.requirement("RTE-3")
@pytest.mark.parametrize("outcome", [OPEN, OBSTACLE, FULL, of(LOST_BEFORE), of(NOT_FOUND)])
def test_the_next_route_takes_over_at_once_where_the_best_did_not_run_it(outcome: Outcome) -> None:
    made, tries = played([outcome, Returned("x")], routes="abc")
    assert made == [("a", 0.0, False), ("b", 0.0, False)]
    assert tries.outcome == Returned("x")


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize("outcome", [OPEN, OBSTACLE])
def test_if_no_route_can_be_used_that_is_told_at_once(outcome: Refused) -> None:
    made, tries = played([outcome, OPEN], routes="ab")
    assert made == [("a", 0.0, False), ("b", 0.0, False)]
    assert (tries.outcome, tries.attempts) == (outcome, 0)


@pytest.mark.requirement("RTE-6")
def test_if_no_route_has_room_the_best_of_them_is_waited_for() -> None:
    made, _ = played([OPEN, FULL, FULL, Returned("x")], routes="abc")
    assert made == [("a", 0.0, False), ("b", 0.0, False), ("c", 0.0, False), ("b", 0.0, True)]


@pytest.mark.requirement("RTE-8")
def test_a_connection_that_comes_back_during_the_pauses_is_used() -> None:
    made, tries = played([of(LOST_BEFORE), OBSTACLE, Returned("x")])
    assert [route for route, _, _ in made] == ["a", "a", "a"]
    assert (tries.outcome, tries.attempts) == (Returned("x"), 2)


@pytest.mark.requirement("RTE-8")
def test_a_failure_is_told_rather_than_what_was_refused_later() -> None:
    _, tries = played([of(LOST_BEFORE), OPEN])
    assert isinstance(tries.outcome, Raised)


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("origin", ["handler", "bundled", "agent"])
def test_what_runs_in_this_process_is_never_run_twice(origin: Any) -> None:
    assert order([of(LOST_BEFORE)], tool=replace(REPEATABLE, origin=origin), routes="ab") == "a"


@pytest.mark.requirement("RTE-8")
def test_where_nobody_of_a_group_is_there_all_of_them_are_named() -> None:
    _, tries = played([Refused("obstacle", f"{each} is down") for each in "abc"], routes="abc")
    assert tries.outcome == Refused("obstacle", "a is down; b is down; c is down")
    _, tries = played([Refused("obstacle", "a is down"), OPEN], routes="ab")
    assert tries.outcome == Refused("obstacle", "a is down")
