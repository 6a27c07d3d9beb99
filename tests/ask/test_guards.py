"""Limits on the calls of one ask."""

import pytest

from session_runtime.ask.guards import Admitted, CallGuard, Refused, same_as


@pytest.mark.requirement("ASK-8")
def test_an_identical_call_is_warned_about_the_third_time_and_refused_from_the_fourth() -> None:
    guard = CallGuard(max_calls=100)
    decisions = [guard.admit("weather", same_as({"city": "Rome", "days": 1})) for _ in range(5)]
    assert decisions[:2] == [Admitted(), Admitted()]
    assert isinstance(decisions[2], Admitted)
    assert "call 3 of weather" in str(decisions[2].warning)
    assert [type(d) for d in decisions[3:]] == [Refused, Refused]
    assert {d.code for d in decisions[3:] if isinstance(d, Refused)} == {"tool.repeated"}


@pytest.mark.requirement("ASK-8")
def test_the_order_of_keys_does_not_make_a_call_a_different_one() -> None:
    guard = CallGuard(max_calls=100)
    for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}):
        guard.admit("t", same_as(arguments))
    assert isinstance(guard.admit("t", same_as({"b": 2, "a": 1})), Refused)


@pytest.mark.requirement("ASK-8")
def test_calls_beyond_the_limit_are_refused_and_a_refusal_costs_nothing() -> None:
    guard = CallGuard(max_calls=4)
    for _ in range(6):
        guard.admit("same", same_as({}))
    assert not guard.exhausted
    assert guard.admit("other", same_as({})) == Admitted()
    refused = guard.admit("third", same_as({}))
    assert isinstance(refused, Refused)
    assert refused.code == "limit.calls"
    assert "limit of 4 tool calls" in refused.reason
