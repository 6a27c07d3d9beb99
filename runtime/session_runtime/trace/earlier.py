"""What traces of earlier versions lack, as far as it follows from what they hold."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from session_runtime.trace.record import AskRecord, CallRecord, TurnRecord

ABSENT: Final[Mapping[str, Any]] = {"confirmed": []}
"""Fields of a record that have no default, and what an earlier version would have written there."""
_NEVER_COUNTED: Final = frozenset(
    {
        *("limit.calls", "limit.calls_in_turn", "tool.repeated"),
        *("tool.unknown", "tool.not_loaded", "tool.end_not_alone"),
    }
)
"""Codes of calls that were never about to run, as far as such traces tell."""


def with_counted(record: AskRecord) -> AskRecord:
    """The record with the calls marked that will have counted (ASK-8), if it is too old to say so."""
    if record.request is not None:
        return record
    return replace(
        record,
        confirmed=_calls(record.confirmed),
        turns=_turns(record.turns),
        agents=tuple(replace(each, turns=_turns(each.turns)) for each in record.agents),
        invoked=None if record.invoked is None else _call(record.invoked),
    )


def _turns(turns: Iterable[TurnRecord]) -> tuple[TurnRecord, ...]:
    return tuple(replace(each, calls=_calls(each.calls)) for each in turns)


def _calls(calls: Iterable[CallRecord]) -> tuple[CallRecord, ...]:
    return tuple(map(_call, calls))


def _call(call: CallRecord) -> CallRecord:
    return replace(call, counted=call.search is None and call.error_code not in _NEVER_COUNTED)
