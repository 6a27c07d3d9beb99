"""What is wrong with replicas that should be alike: a function of what each of them said (NET-6).

How it is asked is decided in ``fleet_mqtt`` and ``fleet_http``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from session_runtime.wire.mqtt import BEAT_S
from session_runtime.wire.presence import Presence

STALE_S: Final = 3 * BEAT_S
"""A replica that was not heard for so long may be gone without anybody having noticed."""

MOST: Final = 1_000
"""So many replicas are looked at; of more, the rest is left out, first of all what is offline."""

Kind = Literal[
    "empty",
    "broker",
    "left_out",
    "unknown",
    "offline",
    "stale",
    "version",
    "config",
    "tools",
    "rejected",
    "restart",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that an operator should look at: what it is, in words too, and whom it concerns."""

    kind: Kind
    text: str
    replicas: tuple[str, ...] = ()


def merged(*seen: Iterable[Presence]) -> tuple[Presence, ...]:
    """Each replica once, by name: what is told later is fresher, unless it is that nothing is known."""
    found: dict[str, Presence] = {}
    for each in (one for some in seen for one in some):
        if each.state != "unknown" or each.replica not in found:
            found[each.replica] = each
    return tuple(found[name] for name in sorted(found))


def findings(
    replicas: Sequence[Presence],
    *,
    stopped_are_fine: bool = False,
    left_out: int = 0,
    broker_fault: str | None = None,
) -> tuple[Finding, ...]:
    """Everything to warn of, in the order of ``Kind``; nothing if all are there and alike.

    ``stopped_are_fine``: replicas that said goodbye are no reason to warn, as a rollout leaves some.
    ``left_out`` is of how many more there was a status that was not looked at, ``broker_fault`` why none of
    those at the broker was.
    """
    there = [each for each in replicas if each.state in ("ready", "draining")]
    serving = [each for each in there if each.state == "ready"]
    found = [
        *([] if serving else [Finding("empty", "no replica is ready")]),
        *([] if broker_fault is None else [_unread(broker_fault)]),
        *([_left_out(left_out)] if left_out else []),
        *_states(replicas, stopped_are_fine=stopped_are_fine),
        *_stale(there),
        *_differing("version", "versions differ", there, lambda each: each.version),
        *_differing("config", "configurations differ", there, lambda each: each.config_digest),
        *_differing("tools", "tools differ", there, lambda each: each.tools_digest),
        *_edits(there),
    ]
    return tuple(found)


def _unread(fault: str) -> Finding:
    return Finding("broker", f"only those asked by their address are shown: {fault}")


def _left_out(number: int) -> Finding:
    told = f"{number} more statuses were not looked at: no more than {MOST} are; see who publishes them"
    return Finding("left_out", told)


def _states(replicas: Sequence[Presence], *, stopped_are_fine: bool) -> Iterator[Finding]:
    for each in replicas:
        if each.state == "unknown":
            yield Finding("unknown", f"{each.replica}: {each.fault}", (each.replica,))
    for each in replicas:
        if each.lost:
            told = f"{each.replica} is offline, and did not say goodbye"
            yield Finding("offline", told, (each.replica,))
        elif each.state == "offline" and not stopped_are_fine:
            yield Finding("offline", f"{each.replica} is offline: it was stopped", (each.replica,))


def _stale(there: Sequence[Presence]) -> Iterator[Finding]:
    for each in there:
        if each.age_s is None:
            told = f"{each.replica} does not say when it was heard last"
            yield Finding("stale", told, (each.replica,))
        elif each.age_s > STALE_S:
            told = (
                f"{each.replica} was heard {each.age_s:.0f} s ago, and should be every {BEAT_S:.0f}"
            )
            yield Finding("stale", told, (each.replica,))


def _differing(
    kind: Kind, what: str, there: Sequence[Presence], of: Callable[[Presence], str | None]
) -> Iterator[Finding]:
    """One finding if not all say the same, with who says what; the most common comes first."""
    groups: dict[str, list[str]] = {}
    for each in there:
        groups.setdefault(of(each) or "not told", []).append(each.replica)
    if len(groups) < 2:
        return
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    told = "; ".join(f"{value}: {', '.join(names)}" for value, names in ordered)
    yield Finding(kind, f"{what}: {told}", tuple(name for _, names in ordered for name in names))


def _edits(there: Sequence[Presence]) -> Iterator[Finding]:
    for each in there:
        if each.rejected_since is not None or each.verdict == "rejected":
            told = f"{each.replica} rejected its last edit, and keeps the configuration before it"
            yield Finding("rejected", told, (each.replica,))
    for each in there:
        if each.restart_needed:
            told = f"{each.replica} has {each.restart_needed} edited keys that wait for a restart"
            yield Finding("restart", told, (each.replica,))
