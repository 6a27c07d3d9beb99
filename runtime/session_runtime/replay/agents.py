"""What the sub-agents of a recorded ask would be given, and what they used up of its limits (ASK-11)."""

from collections.abc import Sequence
from typing import Final

from session_runtime.ask.agents import mask_of_agent
from session_runtime.ask.exposure import Exposure, whole_exposure
from session_runtime.errors import PermanentError
from session_runtime.generation import Generation
from session_runtime.replay.difference import Findings
from session_runtime.replay.tools import Blindness, Reasons
from session_runtime.trace.record import AgentRecord, CallRecord

NOT_REPLAYED: Final = "how a sub-agent goes on with other tools"


class Agents:
    """The runs of sub-agents in one ask, each told and counted once."""

    def __init__(
        self,
        generation: Generation,
        records: Sequence[AgentRecord],
        reasons: Reasons,
        findings: Findings,
    ) -> None:
        self._generation = generation
        self._waiting = list(records)
        self._reasons = reasons
        self._findings = findings
        self._blind = Blindness(generation)

    def called_by(self, call: CallRecord) -> list[AgentRecord]:
        """The runs that a call led to, those inside of them too; none of them comes again."""
        inside = f"{call.call_id}/"
        found = [
            each
            for each in self._waiting
            if each.call_id == call.call_id or each.call_id.startswith(inside)
        ]
        self._waiting = [each for each in self._waiting if each not in found]
        return found

    def compare(self, number: int, record: AgentRecord, ask: Exposure) -> None:
        """Tell which tools a sub-agent would be given otherwise."""
        path = record.agent.split("/")
        if not record.turns or not self._is_known(path):
            return
        before = [name for name in record.turns[0].exposed if not self._blind.hides(name)]
        after = self._given(number, path, ask)
        if after is None:
            return
        for name in sorted({*before} ^ {*after}):
            there = name in after
            change = "given now" if there else f"no longer given ({self._why(name)})"
            what = f"sub-agent {record.agent}: {name} {change}"
            self._findings.differ("exposed", number, what, not there, there)
            self._findings.unknown(NOT_REPLAYED)

    def _is_known(self, path: Sequence[str]) -> bool:
        """Whether the agent is there; that it is not is told of the call."""
        return all(name in self._generation.agents for name in path)

    def _given(self, number: int, path: Sequence[str], ask: Exposure) -> tuple[str, ...] | None:
        generation, caller = self._generation, self._reasons.caller
        mask = mask_of_agent(generation, caller.principal, caller.identity, path)
        for name in self._reasons.withdrawn.names & generation.catalog.positions.keys():
            mask &= ~(1 << generation.catalog.position(name))
        named = generation.agents[path[-1]].settings.model
        profile = ask.profile if named is None else generation.profiles[named]
        try:
            return tuple(whole_exposure(generation, profile, mask).next_turn().by_name)
        except PermanentError as error:
            what = f"sub-agent {'/'.join(path)} cannot begin: {error.code}"
            self._findings.differ("exposed", number, what, None, error.code)
            return None

    def _why(self, name: str) -> str:
        spec = self._generation.catalog.positions.get(name)
        if spec is not None and self._generation.catalog.specs[spec].owner:
            return "denied by an access rule"
        why = self._reasons.forbidden(name)
        return "not among its tools" if why.startswith("allowed") else why
