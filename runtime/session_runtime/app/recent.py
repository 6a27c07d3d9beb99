"""The asks that ended last (OPS-3); the trace keeps them for good, and ``measures`` what all came to."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from session_runtime.errors import RequestError
from session_runtime.trace.record import AskRecord, CallRecord, TurnRecord, record_to_json
from session_runtime.trace.redact import redact_text

KEPT: Final = 200
LONGEST_ARGUMENTS: Final = 4_000
TOO_LONG: Final = "too long to be kept here: see the trace"


class RecentAsks:
    """The last records in memory, each bounded; the event loop's alone."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, AskRecord] = OrderedDict()

    def add(self, record: AskRecord) -> None:
        """Take note of an ask that ended; the oldest of many is forgotten."""
        self._records[record.ask_id] = _bounded(record)
        if len(self._records) > KEPT:
            self._records.popitem(last=False)

    def newest(self, most: int) -> list[dict[str, Any]]:
        """The last ones in a few words each, newest first."""
        return [_summary(record) for record in islice(reversed(self._records.values()), most)]

    def one(self, ask_id: str) -> dict[str, Any]:
        """One of them as its trace tells it; raises RequestError if it is not remembered."""
        record = self._records.get(ask_id)
        if record is None:
            raise RequestError(
                f"no ask {ask_id[:100]!r} is among the last {KEPT} that ended; its trace may tell of it",
                code="request.unknown_ask",
            )
        return record_to_json(record)


def _summary(record: AskRecord) -> dict[str, Any]:
    return {
        "ask_id": record.ask_id,
        "started_at": record.started_at,
        "generation": record.generation,
        "model": record.model,
        "principal": record.principal.name,
        "user": record.identity.user,
        "outcome": record.outcome,
        "error_code": None if record.error is None else record.error.code,
        "error": None if record.error is None else redact_text(record.error.message),
        "duration_s": round(record.duration_s, 6),
        "daemon_s": round(record.daemon_s, 6),
        "steps": len(record.turns),
        "tool_calls": _own_calls(record),
        "tokens": record.usage.total_tokens,
        "tokens_saved": record.tokens_saved,
    }


def _own_calls(record: AskRecord) -> int:
    """How many calls the ask made, as it was told while it ran: without prefetch and sub-agents."""
    in_turns = sum(len(turn.calls) for turn in record.turns)
    return in_turns + len(record.confirmed) + (record.invoked is not None)


def _bounded(record: AskRecord) -> AskRecord:
    """The record without arguments that would fill the memory; nothing else of it is long."""
    return replace(
        record,
        prefetch=_calls(record.prefetch),
        confirmed=_calls(record.confirmed),
        turns=_turns(record.turns),
        agents=tuple(replace(agent, turns=_turns(agent.turns)) for agent in record.agents),
        invoked=None if record.invoked is None else _call(record.invoked),
    )


def _turns(turns: Sequence[TurnRecord]) -> tuple[TurnRecord, ...]:
    return tuple(replace(turn, calls=_calls(turn.calls)) for turn in turns)


def _calls(calls: Sequence[CallRecord]) -> tuple[CallRecord, ...]:
    return tuple(map(_call, calls))


def _call(call: CallRecord) -> CallRecord:
    if _size(call.arguments) > LONGEST_ARGUMENTS:
        return replace(call, arguments=TOO_LONG)
    return call


def _size(value: object) -> int:
    """About how long a value is as JSON, counted no further than is needed."""
    size, waiting = 0, [value]
    while waiting and size <= LONGEST_ARGUMENTS:
        match waiting.pop():
            case str(text):
                size += len(text) + 2
            case dict(members):
                size += sum(len(str(name)) for name in islice(members, LONGEST_ARGUMENTS))
                waiting += islice(members.values(), LONGEST_ARGUMENTS)
            case list(items):
                size += len(items)
                waiting += islice(items, LONGEST_ARGUMENTS)
            case other:
                size += len(str(other))
    return size
