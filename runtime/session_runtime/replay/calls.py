"""What would become of the recorded calls of a turn: the checks of ``ask/turn``, without running anything."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from session_runtime.ask.exposure import Exposure, Turn
from session_runtime.ask.guards import CallGuard, Refused, same_as
from session_runtime.ask.turn import MAX_CALLS
from session_runtime.ask.unexposed import NOT_LOADED, UNKNOWN, refuse_unexposed
from session_runtime.generation import Generation
from session_runtime.registry.invoke.consent import NEEDS_CONFIRMATION_CODE
from session_runtime.registry.names import END
from session_runtime.registry.spec import ToolSpec
from session_runtime.replay.difference import Findings
from session_runtime.replay.tools import Blindness, Reasons
from session_runtime.search import SearchGovernor
from session_runtime.trace.record import CallRecord, SearchRecord
from session_runtime.trace.redact import CUT, MASK, redact
from session_runtime.types import JsonObject

RAN: Final = "ran"
SEARCHED: Final = "searched"
INVALID: Final = "tool.invalid_arguments"
REPEATED: Final = "tool.repeated"
EXPOSURE_CODES: Final = frozenset({UNKNOWN, NOT_LOADED})


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a call: ``RAN``, ``SEARCHED`` or the code of why not; ``ready``: it was admitted."""

    name: str
    ready: bool = True


@dataclass(frozen=True, slots=True)
class TurnFates:
    """What becomes of the calls of one turn; ``ran`` are those that run now."""

    ran: tuple[CallRecord, ...]
    ended: bool
    pending: bool
    all_refused: bool


class Calls:
    """Replays the calls of one ask, turn after turn; ``confirmed`` are the tools that a person agreed to."""

    def __init__(
        self,
        generation: Generation,
        exposure: Exposure,
        reasons: Reasons,
        findings: Findings,
        confirmed: frozenset[str],
    ) -> None:
        self._generation = generation
        self._exposure = exposure
        self._reasons = reasons
        self._findings = findings
        self._confirmed = confirmed
        self._blind = Blindness(generation)
        self._anonymous = 0
        self.guard = CallGuard(generation.settings.ask.max_tool_calls)
        self.moved: set[str] = set()
        """Tools that a search loaded in one of the two and not in the other."""

    def confirm(self, calls: Sequence[CallRecord]) -> TurnFates:
        """Replay what was carried out before the first turn."""
        return self._compared(0, calls, [self._confirmed_fate(call) for call in calls])

    def turn(self, number: int, calls: Sequence[CallRecord], turn: Turn) -> TurnFates:
        """Replay the calls of a turn in order: first all are prepared, then searches are answered."""
        fates = [self._prepare(at, call, calls, turn) for at, call in enumerate(calls)]
        fates = [
            self._search(number, call) if fate.name == SEARCHED else fate
            for call, fate in zip(calls, fates, strict=True)
        ]
        return self._compared(number, calls, fates)

    def _compared(
        self, number: int, calls: Sequence[CallRecord], fates: Sequence[Fate]
    ) -> TurnFates:
        for call, fate in zip(calls, fates, strict=True):
            self._compare(number, call, fate)
        return TurnFates(
            ran=tuple(call for call, fate in zip(calls, fates, strict=True) if fate.name == RAN),
            ended=any(self._ends(call, fate) for call, fate in zip(calls, fates, strict=True)),
            pending=any(fate.name == NEEDS_CONFIRMATION_CODE for fate in fates),
            all_refused=not any(fate.ready for fate in fates),
        )

    def _ends(self, call: CallRecord, fate: Fate) -> bool:
        """Whether ``end`` was called and runs; unless it failed then, it is taken to succeed."""
        return call.name == END and fate.name == RAN and not (call.counted and call.status != "ok")

    def _confirmed_fate(self, call: CallRecord) -> Fate:
        if not call.counted and call.error_code != UNKNOWN:
            return Fate(recorded_fate(call), ready=False)  # declined, changed, over a limit
        spec = self._exposure.permitted(call.name)
        if spec is None:
            hidden = self._blind.hides(call.name)
            return self._as_recorded(call) if hidden else Fate(UNKNOWN, ready=False)
        return self._admit(call, spec)

    def _prepare(self, at: int, call: CallRecord, calls: Sequence[CallRecord], turn: Turn) -> Fate:
        if at >= MAX_CALLS:
            return Fate("limit.calls_in_turn", ready=False)
        spec = turn.by_name.get(call.name)
        if spec is None and self._blind.hides(call.name) and not _withheld(call):
            return self._as_recorded(call)
        if spec is None:
            refusal = refuse_unexposed(self._exposure, turn, self.guard, call.name)
            return Fate(refusal.code, ready=False)
        if spec.name == END and len(calls) > 1:
            return Fate("tool.end_not_alone", ready=False)
        if call.error_code == INVALID and not call.counted:
            return Fate(INVALID, ready=False)
        return Fate(SEARCHED) if spec.origin == "virtual" else self._admit(call, spec)

    def _admit(self, call: CallRecord, spec: ToolSpec) -> Fate:
        """Limits, arguments and consent, as far as the arguments are known."""
        arguments = known_arguments(call.arguments)
        if arguments is None and call.error_code == REPEATED and not self.guard.exhausted:
            self._findings.unknown("arguments were not kept: repeated calls are taken as recorded")
            return Fate(REPEATED, ready=False)
        decision = self.guard.admit(spec.name, same_as(arguments or self._nobody_elses()))
        if isinstance(decision, Refused):
            return Fate(decision.code, ready=False)
        if self._are_wrong(call, spec, arguments):
            return Fate(INVALID)
        return Fate(self._consent(spec))

    def _are_wrong(self, call: CallRecord, spec: ToolSpec, arguments: JsonObject | None) -> bool:
        if arguments is not None:
            return bool(self._generation.catalog.checks[spec.name].problems(arguments))
        return call.counted and call.error_code == INVALID

    def _consent(self, spec: ToolSpec) -> str:
        asks = self._generation.settings.access.destructive == "confirm"
        if asks and spec.annotations.destructive and spec.name not in self._confirmed:
            return NEEDS_CONFIRMATION_CODE
        return RAN

    def _nobody_elses(self) -> JsonObject:
        """Arguments that no other call has: what is not known is no repetition."""
        self._anonymous += 1
        return {"": self._anonymous}

    def _as_recorded(self, call: CallRecord) -> Fate:
        self._findings.unknown(self._blind.reason)
        if call.counted:
            self.guard.count()
        return Fate(recorded_fate(call), call.counted)

    def _search(self, number: int, call: CallRecord) -> Fate:
        governor, session = self._exposure.governor, self._exposure.session
        before = call.search
        if governor is None or session is None:
            return Fate(SEARCHED)
        if before is None:
            self._findings.unknown("what a refused call searched for was not recorded")
            return Fate(SEARCHED)
        if reason := self._unsearchable(before):
            self._findings.unknown(reason)
            for name in before.loaded:
                session.load(name)
            return Fate(recorded_fate(call))
        return self._searched(number, call, before, governor)

    def _searched(
        self, number: int, call: CallRecord, before: SearchRecord, governor: SearchGovernor
    ) -> Fate:
        reply = governor.answer(before.query, before.max_results)
        if reply.refused:
            self.moved.update(before.loaded)
            return Fate(reply.error_code or SEARCHED)
        found = json.loads(reply.content)
        after = SearchRecord(
            before.query,
            tuple(found["loaded"]),
            tuple(found["already_loaded"]),
            tuple(found["not_found"]),
            found["truncated"],
            before.max_results,
        )
        self.moved.update(set(before.loaded) ^ set(after.loaded))
        was, now = (_plain(each) for each in (before, after))
        if call.status == "ok" and was != now:
            self._findings.differ(
                *("search", number, f"search {before.query!r}: {_told(before, after)}"),
                *(was, now, tuple(self._in_general(before, after))),
            )
        return Fate(SEARCHED)

    def _in_general(self, before: SearchRecord, after: SearchRecord) -> Iterator[str]:
        """The same without the query."""
        lost = [name for name in before.loaded if name not in after.loaded]
        new = [name for name in after.loaded if name not in before.loaded]
        for name in lost:
            gone = self._exposure.permitted(name) is None
            why = f" ({self._reasons.forbidden(name)})" if gone else ""
            yield f"a search does not load {name} any more{why}"
        yield from (f"a search loads {name} now" for name in new)
        if not lost and not new:
            yield "a search answers something else, and loads the same tools"

    def _unsearchable(self, search: SearchRecord) -> str | None:
        if MASK in search.query or CUT in search.query:
            return "a query was blacked out or cut: its answer is taken as recorded"
        return self._blind.reason if self._blind.servers else None

    def _compare(self, number: int, call: CallRecord, fate: Fate) -> None:
        before = recorded_fate(call)
        if before == fate.name:
            return
        why = ""
        if fate.name in EXPOSURE_CODES:
            why = f" ({self._reasons.absent(self._exposure, call.name)})"
        what = f"call of {call.name}: {before} -> {fate.name}{why}"
        self._findings.differ("call", number, what, before, fate.name)
        if fate.name == RAN:
            self._findings.unknown(f"the result of {call.name}, which did not run then")


def recorded_fate(call: CallRecord) -> str:
    """What became of a call when it was recorded; how a run of it ended is not looked at."""
    code = call.error_code
    if call.search is not None:
        return SEARCHED if call.status == "ok" else code or SEARCHED
    if call.counted:
        return code if code in (NEEDS_CONFIRMATION_CODE, INVALID) and code is not None else RAN
    return code or RAN


def _withheld(call: CallRecord) -> bool:
    return call.error_code == NOT_LOADED


def known_arguments(arguments: object) -> JsonObject | None:
    """Arguments as they were, None if they were not kept, or not whole."""
    if not isinstance(arguments, dict):
        return None
    text = json.dumps(arguments, ensure_ascii=False)
    return None if MASK in text or CUT in text else arguments


def _plain(search: SearchRecord) -> Any:
    """The answer as a trace has it."""
    answer = json.loads(json.dumps(redact(asdict(search))))
    return {key: answer[key] for key in ("loaded", "already_loaded", "not_found", "truncated")}


def _told(before: SearchRecord, after: SearchRecord) -> str:
    parts = [
        f"{what} {_listed(was)} -> {_listed(now)}"
        for what, was, now in (
            ("loaded", before.loaded, after.loaded),
            ("already loaded", before.already_loaded, after.already_loaded),
            ("not found", before.not_found, after.not_found),
        )
        if was != now
    ]
    if before.truncated != after.truncated:
        parts.append(f"truncated {before.truncated} -> {after.truncated}".lower())
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
