"""What is warned of in a fleet: a function of what the replicas said."""

from typing import Any

import pytest

from session_runtime.client.fleet import STALE_S, Finding, findings, merged
from session_runtime.wire.presence import Presence, unknown


def replica(name: str, **other: Any) -> Presence:
    alike: dict[str, Any] = {
        "state": "ready",
        "since": 1.0,
        "age_s": 2.0,
        "version": "1.0",
        "config_digest": "c1",
        "tools_digest": "t1",
        "generation": 1,
        "verdict": "applied",
    }
    return Presence(name, "mqtt", **(alike | other))


@pytest.mark.requirement("NET-7c")
def test_replicas_that_are_there_and_alike_are_no_reason_to_warn() -> None:
    assert findings([replica("a"), replica("b", generation=7, asks=9)]) == ()


@pytest.mark.parametrize(
    ("other", "warning"),
    [
        ({"version": "1.1"}, ("version", "versions differ: 1.0: a, b; 1.1: z")),
        ({"config_digest": "c2"}, ("config", "configurations differ: c1: a, b; c2: z")),
        ({"config_digest": None}, ("config", "configurations differ: c1: a, b; not told: z")),
        ({"tools_digest": "t2"}, ("tools", "tools differ: t1: a, b; t2: z")),
    ],
    ids=["version", "configuration", "not told", "tools"],
)
@pytest.mark.requirement("NET-7c")
def test_what_differs_is_told_with_who_says_what(
    other: dict[str, Any], warning: tuple[Any, str]
) -> None:
    fleet = [replica("a"), replica("z", **other), replica("b")]
    assert findings(fleet) == (Finding(*warning, ("a", "b", "z")),)


@pytest.mark.parametrize(
    ("other", "kind", "words"),
    [
        ({"state": "offline", "since": None}, "offline", "did not say goodbye"),
        ({"state": "offline"}, "offline", "was stopped"),
        ({"age_s": STALE_S + 1}, "stale", "was heard 181 s ago, and should be every 60"),
        ({"age_s": None}, "stale", "does not say when"),
        ({"verdict": "rejected"}, "rejected", "rejected its last edit"),
        ({"rejected_since": 5.0}, "rejected", "rejected its last edit"),
        ({"restart_needed": 2}, "restart", "has 2 edited keys that wait for a restart"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.requirement("NET-7c")
def test_each_replica_that_is_not_well_is_named(
    other: dict[str, Any], kind: str, words: str
) -> None:
    [found] = findings([replica("a"), replica("b", **other)])
    assert (found.kind, found.replicas) == (kind, ("b",))
    assert found.text.startswith("b ")
    assert words in found.text


def test_a_replica_that_was_stopped_may_be_passed_over_but_not_one_that_was_lost() -> None:
    stopped = replica("b", state="offline")
    lost = replica("c", state="offline", since=None)
    found = findings([replica("a"), stopped, lost], stopped_are_fine=True)
    assert [each.replicas for each in found] == [("c",)]


def test_a_fleet_in_which_nobody_serves_is_told_first() -> None:
    assert findings([]) == (Finding("empty", "no replica is ready"),)
    [first, second] = findings([replica("a", state="draining"), unknown("b", "mqtt", "gone")])
    assert (first.kind, second) == ("empty", Finding("unknown", "b: gone", ("b",)))


@pytest.mark.requirement("NET-7c")
def test_statuses_that_were_not_looked_at_are_a_reason_to_warn() -> None:
    [found] = findings([replica("a")], left_out=7)
    assert found.kind == "left_out"
    assert found.text.startswith("7 more statuses were not looked at: no more than 1000 are")


def test_of_a_replica_that_two_tell_of_the_later_one_that_knows_it_counts() -> None:
    told = replica("b")
    fresh = replica("b", asks=3)
    assert merged([told, replica("a")], [fresh]) == (replica("a"), fresh)
    assert merged([told], [unknown("b", "mqtt", "broken")]) == (told,)
