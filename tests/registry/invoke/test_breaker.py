"""The breaker does what its model does, whatever happens in whatever order."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from session_runtime.registry.invoke.guard import Admission, Breaker, Verdict
from session_runtime.registry.spec import Limits

LIMITS = Limits(failures=3, pause_s=10)
VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from(["answered", "failed", "lost", "unknown"])


class BreakerAgainstModel(RuleBasedStateMachine):
    """The model remembers everything: when each call began, and since when the breaker is as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker()
        self.now = 0.0
        self.changes = 0
        self.opened_at: float | None = None
        self.in_a_row = 0
        self.losses = 0
        self.running: list[tuple[Admission, int, bool, int]] = []

    @property
    def probes(self) -> int:
        return sum(probe and began == self.changes for _, began, probe, _ in self.running)

    @property
    def wait_s(self) -> float | None:
        if self.opened_at is None:
            return None
        left = self.opened_at + LIMITS.pause_s - self.now
        if left > 0:
            return left
        return LIMITS.pause_s if self.probes else None

    @rule(seconds=st.sampled_from([0.5, 4.0, 10.0, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_call_begins_if_it_may(self) -> None:
        if self.wait_s is None:
            probe = self.opened_at is not None
            admission = self.breaker.enter(LIMITS)
            assert admission.probe is probe
            self.running.append((admission, self.changes, probe, self.losses))

    @rule(which=st.integers(0, 50), verdict=VERDICTS)
    def a_call_ends(self, which: int, verdict: Verdict) -> None:
        if not self.running:
            return
        admission, began, probe, losses = self.running.pop(which % len(self.running))
        self.breaker.leave(admission, verdict, self.now, LIMITS)
        if began != self.changes or verdict == "unknown":
            return
        if verdict == "lost":
            if losses < self.losses:
                return  # lost with the connection that another call was lost with
            self.losses += 1
        self.in_a_row = 0 if verdict == "answered" else self.in_a_row + 1
        if verdict != "answered" and (probe or self.in_a_row >= LIMITS.failures):
            self.opened_at, self.changes = self.now, self.changes + 1
        elif probe:
            self.opened_at, self.changes = None, self.changes + 1

    @invariant()
    def it_blocks_as_long_as_the_model(self) -> None:
        assert self.breaker.blocked_s(self.now, LIMITS) == self.wait_s

    @invariant()
    def it_is_in_the_state_of_the_model(self) -> None:
        if self.opened_at is None:
            expected = "closed"
        else:
            expected = "open" if self.opened_at + LIMITS.pause_s > self.now else "half_open"
        assert self.breaker.state(self.now, LIMITS) == expected

    @invariant()
    def no_two_probes_are_out(self) -> None:
        assert self.probes <= 1


@pytest.mark.requirement("RTE-6")
def test_a_breaker_does_what_its_model_does() -> None:
    run_state_machine_as_test(BreakerAgainstModel)


def opened(limits: Limits = LIMITS) -> Breaker:
    breaker = Breaker()
    for _ in range(limits.failures):
        breaker.leave(breaker.enter(limits), "failed", 0.0, limits)
    return breaker


@pytest.mark.requirement("RTE-6")
def test_all_calls_that_one_lost_connection_takes_along_are_one_failure() -> None:
    breaker = Breaker()
    for crash in range(LIMITS.failures):
        assert breaker.state(0.0, LIMITS) == "closed", crash
        for admission in [breaker.enter(LIMITS) for _ in range(50)]:
            breaker.leave(admission, "lost", 0.0, LIMITS)
    assert breaker.state(0.0, LIMITS) == "open"


@pytest.mark.requirement("RTE-6")
def test_a_route_without_a_limit_of_failures_is_never_left_alone() -> None:
    breaker = Breaker()
    for _ in range(1_000):
        breaker.leave(breaker.enter(Limits()), "failed", 0.0, Limits())
    assert breaker.blocked_s(0.0, Limits()) is None


@pytest.mark.requirement("RTE-6")
def test_a_shorter_pause_acts_at_once() -> None:
    breaker = opened()
    assert breaker.blocked_s(4.0, LIMITS) == 6.0
    assert breaker.blocked_s(4.0, Limits(failures=3, pause_s=4)) is None


@pytest.mark.requirement("RTE-6")
def test_a_breaker_that_was_switched_off_begins_anew_when_it_is_on_again() -> None:
    breaker = opened()
    breaker.enter(Limits())
    assert breaker.blocked_s(0.0, LIMITS) is None
    assert breaker.state(0.0, LIMITS) == "closed"
