"""Replays one recorded ask: what its model decided is the script, all else is decided anew (OPS-2).

Nothing runs: no tool, no model, no server. How calls fare is decided in ``calls``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from session_runtime.ask.calling import CONTEXT_TOO_LONG
from session_runtime.ask.exposure import Exposure, Turn
from session_runtime.ask.guards import Budget
from session_runtime.ask.loop import Ending
from session_runtime.ask.record import NOT_REACHED, tool_search_record
from session_runtime.errors import PermanentError, RequestError
from session_runtime.generation import Generation, instructions_of
from session_runtime.registry.revocations import Revocations
from session_runtime.replay.agents import Agents
from session_runtime.replay.caller import REFUSED_AT_THE_DOOR, Caller, caller_of, profile_of
from session_runtime.replay.calls import Calls
from session_runtime.replay.difference import Findings, Replayed
from session_runtime.replay.direct import replay_direct
from session_runtime.replay.opening import Opening, open_ask
from session_runtime.replay.results import Results
from session_runtime.replay.tools import Blindness
from session_runtime.trace.record import AgentRecord, AskRecord, CallRecord, TurnRecord
from session_runtime.types import ErrorInfo

GRACE_S: Final = 5.0
"""How much longer than its time limit an ask may take to come to its end."""

INSTRUCTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "prompt": "what the model does with another system prompt",
        "profile": "what the model of profile {} does, which is another one or is asked in another way",
        "agent": "what sub-agent {} does with another prompt",
    }
)
"""What cannot be known where a model would be asked with something else."""

_FROM_OUTSIDE: Final = frozenset({"failed", "cancelled"})
_WIRE_CODES: Final = frozenset({"model.too_many_tools", "internal.exposure"})


def replay(generation: Generation, record: AskRecord) -> Replayed:
    """Tell what would differ if the ask came now; the same for the same record and configuration."""
    findings = Findings()
    if record.request is None:
        findings.unknown("recorded by an earlier version: parts of the request are not known")
    _replay(_without_revocations(generation), record, findings)
    _compare_instructions(generation, record, findings)
    return findings.of(record.ask_id, record.started_at)


def _without_revocations(generation: Generation) -> Generation:
    """The same generation where nothing is revoked: that is taken from the record (REL-9)."""
    return replace(generation, policy=generation.policy.under(Revocations()))


def _replay(generation: Generation, record: AskRecord, findings: Findings) -> None:
    code = record.error.code if record.error is not None else ""
    was_refused = code in REFUSED_AT_THE_DOOR and not record.turns
    try:
        caller = caller_of(generation, record)
        profile = None if _is_direct(record) else profile_of(generation, record)
    except RequestError as error:
        if not was_refused or error.code != code:
            what = f"the request is refused: {error.code}: {error}"
            groups = (f"the request is refused: {error.code}",)
            findings.differ("request", 0, what, code or record.outcome, error.code, groups)
        return
    if was_refused:
        findings.differ(
            "request", 0, f"the request is let in; it was refused: {code}", code, "let in"
        )
        findings.unknown("how an ask goes that was refused when it was recorded")
    elif profile is None:
        replay_direct(generation, record, caller, findings)
    elif record.tool_search.rule == NOT_REACHED:
        findings.unknown("the ask ended before its tools were chosen")
    else:
        if profile.name != record.model:
            what = f"model profile {record.model} -> {profile.name}"
            findings.differ("profile", 0, what, record.model, profile.name)
        opening = open_ask(generation, record, caller, profile, findings)
        _Play(generation, record, caller, opening, findings).run()


def _compare_instructions(generation: Generation, record: AskRecord, findings: Findings) -> None:
    """Tell where a model would be asked with something else: what it would do then, nobody knows."""
    now = {(each.kind, each.name): each.digest for each in instructions_of(generation, record)}
    for before in record.instructions:
        if now.get((before.kind, before.name), before.digest) != before.digest:
            findings.unknown(INSTRUCTED[before.kind].format(before.name))


def _is_direct(record: AskRecord) -> bool:
    return record.invoked is not None or (
        record.request is not None and record.request.tool is not None
    )


@dataclass(slots=True)
class _Progress:
    """How far a replay has come: turns, nudges, tokens spent and tokens of tools, then and now."""

    turns: int = 0
    nudges: int = 0
    tokens: int = 0
    exposed_before: int = 0
    exposed_after: int = 0


class _Play:
    """The turns of one ask."""

    def __init__(
        self,
        generation: Generation,
        record: AskRecord,
        caller: Caller,
        opening: Opening,
        findings: Findings,
    ) -> None:
        self._generation = generation
        self._ask = generation.settings.ask
        self._record = record
        self._findings = findings
        self._exposure: Exposure = opening.exposure
        self._reasons = opening.reasons
        self._blind = Blindness(generation)
        self._profile = record.model
        self._agents = Agents(generation, record.agents, opening.reasons, findings)
        self._told: set[tuple[str, bool]] = set()
        self._at = _Progress()
        self._steps = Budget(self._ask.max_steps)
        confirmed = frozenset(call.name for call in record.confirmed)
        self._calls = Calls(generation, opening.exposure, opening.reasons, findings, confirmed)
        self._results = Results(generation, record, opening.exposure, findings)
        self._directories = (
            record.tool_search.directory_tokens,
            tool_search_record(opening.exposure).directory_tokens,
        )

    def run(self) -> None:
        """Play all turns, and compare how it ends."""
        self._results.prefetched(self._reasons.prefetched)
        fates = self._calls.confirm(self._record.confirmed)
        self._results.ran(fates.ran)
        ending = Ending("needs_confirmation") if fates.pending else self._turns()
        self._compare_tokens()
        self._compare_ending(ending)

    def _turns(self) -> Ending | None:
        for number, turn in enumerate(self._record.turns, 1):
            if not self._steps.take():
                return _limit("limit.steps")
            self._results.before(number)
            try:
                now = self._exposure.next_turn()
            except PermanentError as error:
                return Ending("failed", error=ErrorInfo(error.code, str(error)))
            self._at.turns = number
            self._compare_exposed(number, turn, now)
            self._spend(turn, now)
            self._hand_over(number, turn, now)
            ending = self._after(number, turn, now)
            if ending is not None:
                return ending
        self._take_over()
        return self._beyond()

    def _after(self, number: int, turn: TurnRecord, now: Turn) -> Ending | None:
        if not turn.calls:
            return self._after_prose(number)
        self._reasons.withdrawn.at(turn)
        fates = self._calls.turn(number, turn.calls, now)
        self._count_agents(number, fates.ran)
        self._results.ran(fates.ran)
        if fates.ended:
            return Ending("ended")
        if fates.pending:
            return Ending("needs_confirmation")
        if fates.all_refused and self._calls.guard.exhausted:
            return _limit("limit.calls")
        return self._out_of_tokens()

    def _after_prose(self, number: int) -> Ending | None:
        if self._from_outside and number == len(self._record.turns):
            return None  # there was no reply
        if self._ask.require_end and self._at.nudges < self._ask.missing_tool_call_retries:
            self._at.nudges += 1
            return self._out_of_tokens()
        return Ending("answered")

    def _out_of_tokens(self) -> Ending | None:
        most = self._ask.max_total_tokens
        return _limit("limit.tokens") if most and self._at.tokens >= most else None

    def _beyond(self) -> Ending | None:
        """How it ends after the last recorded turn; None: as nobody can know, or as it did."""
        if self._steps.left <= 0 and not self._broke_off:
            return _limit("limit.steps")
        if _code(self._record.error) in _WIRE_CODES:
            try:
                self._exposure.next_turn()
            except PermanentError as error:
                return Ending("failed", error=ErrorInfo(error.code, str(error)))
        return None

    @property
    def _from_outside(self) -> bool:
        """Whether something ended the ask that no configuration of tools decides about."""
        record = self._record
        return record.outcome in _FROM_OUTSIDE or _code(record.error) == "limit.deadline"

    @property
    def _broke_off(self) -> bool:
        """Whether the last recorded turn did not come to its end."""
        turns = self._record.turns
        return self._from_outside and bool(turns) and not turns[-1].calls

    def _spend(self, turn: TurnRecord, now: Turn) -> None:
        """Count tokens: as recorded, and what is sent otherwise, as an estimate."""
        before, after = (
            turn.exposed_tokens + self._directories[0],
            now.tokens + self._directories[1],
        )
        if self._blind.servers:
            after = before
        at = self._at
        at.exposed_before += before
        at.exposed_after += after
        at.tokens += turn.usage.total_tokens + after - before

    def _count_agents(self, number: int, calls: Sequence[CallRecord]) -> None:
        """Turns, calls and tokens of the sub-agents that this turn called count for the ask (ASK-11)."""
        for call in calls:
            for agent in self._agents.called_by(call):
                self._agents.compare(number, agent, self._exposure)
                self._count_turns(agent)
                self._at.tokens += sum(each.usage.total_tokens for each in agent.turns)
                inner = (each for done in agent.turns for each in done.calls)
                for _ in range(sum(each.counted for each in inner)):
                    self._calls.guard.count()

    def _count_turns(self, agent: AgentRecord) -> None:
        """Count no more turns than leave one for each that waits; it would have ended there."""
        waiting = len(agent.agent.split("/"))
        for _ in agent.turns:
            if self._steps.left <= waiting:
                self._findings.unknown("how a sub-agent ends that has fewer turns")
                return
            self._steps.count()

    def _hand_over(self, number: int, turn: TurnRecord, now: Turn) -> None:
        """Let another profile take over where one did."""
        if not turn.model or turn.model == self._profile:
            return
        failed, self._profile = self._profile, turn.model
        if self._exposure.profile.name != failed:
            return
        what = f"when model profile {failed} fails, {turn.model} does not take over any more"
        for profile in self._generation.fallbacks(self._exposure.profile):
            if profile.name == turn.model:
                obstacle = self._exposure.obstacle(profile, now)
                if obstacle is None:
                    self._exposure.hand_over(profile)
                    return
                what = f"{what}: {obstacle}"
        self._findings.differ("profile", number, what, turn.model, None)

    def _take_over(self) -> None:
        """Tell which profile takes over now where none did, and the model failed for good."""
        record, profile = self._record, self._exposure.profile
        code = _code(record.error)
        asked = code.startswith("model.") and code not in (CONTEXT_TOO_LONG, *_WIRE_CODES)
        if not (record.outcome == "failed" and self._broke_off and asked):
            return
        if profile.name != record.turns[-1].model:
            return
        turn = self._exposure.next_turn()
        for other in self._generation.fallbacks(profile):
            if self._exposure.obstacle(other, turn) is None:
                what = f"when model profile {profile.name} fails, {other.name} takes over now"
                self._findings.differ("profile", self._at.turns, what, None, other.name)
                self._findings.unknown("how an ask goes on when another profile takes over")
                return

    def _compare_exposed(self, number: int, turn: TurnRecord, now: Turn) -> None:
        before = tuple(name for name in turn.exposed if not self._blind.hides(name))
        if before != turn.exposed:
            self._findings.unknown(self._blind.reason)
        after = tuple(now.by_name)
        if before == after:
            return
        if self._record.tool_search.active != (self._exposure.session is not None):
            self._compare_lists(number, before, after)
            return
        self._compare_names(number, before, after)

    def _compare_lists(self, number: int, before: Sequence[str], after: Sequence[str]) -> None:
        """With tool search in one of them only, naming all tools would tell nothing."""
        if ("", True) not in self._told:
            self._told.add(("", True))
            what = f"{len(before)} -> {len(after)} tools exposed"
            groups = ("another number of tools exposed",)
            self._findings.differ("exposed", number, what, list(before), list(after), groups)

    def _compare_names(self, number: int, before: Sequence[str], after: Sequence[str]) -> None:
        was, now = set(before), set(after)
        for name in sorted(was ^ now):
            there = name in now
            if name in self._calls.moved or (name, there) in self._told:
                continue
            self._told.add((name, there))
            if there:
                what = f"{name} exposed now ({self._reasons.present(self._exposure, name)})"
            else:
                what = f"{name} no longer exposed ({self._reasons.absent(self._exposure, name)})"
            self._findings.differ("exposed", number, what, name in was, there)
        if was == now and ("", False) not in self._told:
            self._told.add(("", False))
            what = "the same tools in another order"
            self._findings.differ("exposed", number, what, list(before), list(after))

    def _compare_tokens(self) -> None:
        at, record = self._at, self._record
        if not at.turns or self._blind.servers:
            return
        whole = record.tokens_full_list // len(record.turns)
        before = {"exposed": at.exposed_before, "full_list": whole * at.turns}
        after = {
            "exposed": at.exposed_after,
            "full_list": self._exposure.full_list_tokens * at.turns,
        }
        if before != after:
            what = (
                f"tokens of tools {before['exposed']} -> {after['exposed']}"
                f" (all at once: {before['full_list']} -> {after['full_list']})"
            )
            groups = ("another number of tokens of tools",)
            self._findings.differ("tokens", 0, what, before, after, groups)

    def _compare_ending(self, ending: Ending | None) -> None:
        record, at = self._record, self._at
        was = _told(record.outcome, record.error)
        if self._out_of_time():
            what = f"ends as {was} after {record.duration_s:.1f} s -> limit.deadline"
            groups = (f"ends as {was} -> limit.deadline",)
            self._findings.differ("ending", at.turns, what, was, "limit.deadline", groups)
            return
        if ending is None and (self._from_outside and _code(record.error) not in _WIRE_CODES):
            return
        now = "open" if ending is None else _told(ending.outcome, ending.error)
        turns = len(record.turns)
        if now == was and at.turns == turns:
            return
        if ending is None:
            what = f"ends as {was} after {turns} turns -> goes on, nobody knows how"
            self._findings.unknown("how an ask goes on after its last recorded turn")
        else:
            what = f"ends as {was} after {turns} turns -> {now} after {at.turns}"
        groups = (f"ends as {was} -> {now}" if now != was else f"ends as {was} in another turn",)
        before, after = {"as": was, "turns": turns}, {"as": now, "turns": at.turns}
        self._findings.differ("ending", at.turns, what, before, after, groups)

    def _out_of_time(self) -> bool:
        if self._from_outside:
            return False
        return self._record.duration_s - GRACE_S > self._generation.settings.runtime.ask_timeout_s


def _limit(code: str) -> Ending:
    return Ending("limit", error=ErrorInfo(code, ""))


def _code(error: ErrorInfo | None) -> str:
    return "" if error is None else error.code


def _told(outcome: str, error: ErrorInfo | None) -> str:
    return _code(error) or outcome
