"""Runs a sub-agent for a call: a loop of its own inside of the ask, within what is left to that (ASK-11).

Which agents there are is decided in ``generation.agents``, what they may use in ``registry.policy``.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

from session_runtime.ask.agent_ends import answer_of, could_not_go_on
from session_runtime.ask.emitter import AgentEmitter
from session_runtime.ask.exposure import whole_exposure
from session_runtime.ask.kept import KeptResults
from session_runtime.ask.loop import Ending, Loop
from session_runtime.ask.scope import AskScope, LoopLimits
from session_runtime.ask.transcript import Transcript
from session_runtime.errors import SessionRuntimeError, ToolError
from session_runtime.generation import Generation, Profile
from session_runtime.generation.agents import Agent
from session_runtime.registry.invoke.consent import Consent, NotRun, Proposed
from session_runtime.trace.record import AgentRecord
from session_runtime.types import Identity, Message, Outcome, PendingCall, Principal, ToolCall

STOPPING_S: Final = 2.0
"""How long before its call is cut off an agent ends by itself: its tools stop, and it says what it did."""

_SHARE: Final = 0.25
"""The most of the time of a call that is kept for that."""

_TASK: Final = ("prompt", "task")
_log = logging.getLogger(__name__)

ProfileInUse = Callable[[], Profile]


def with_agents(scope: AskScope, profile: ProfileInUse) -> AskScope:
    """The same scope, whose tools may be sub-agents; ``profile`` tells which one answers just now."""
    return replace(scope, services=replace(scope.services, agents=AgentRuns(scope, profile)))


@dataclass(frozen=True, slots=True)
class AgentRuns:
    """The sub-agents as one loop may call them; see ``services.Agents``."""

    scope: AskScope
    profile: ProfileInUse

    async def run(
        self, name: str, arguments: Mapping[str, Any], call_id: str, deadline: float | None
    ) -> str:
        """Give the agent a fresh conversation and let it work until it answers."""
        agent = self._admitted(name)
        generation, stated = self.scope.generation, agent.settings
        profile = self.profile() if stated.model is None else generation.profiles[stated.model]
        exposure = whole_exposure(generation, profile, self._mask(agent))
        opening = (Message("system", agent.prompt),)
        transcript = Transcript(opening, (Message("user", _task(arguments)),))
        with closing(self.scope.results.another()) as results:
            scope = self._inner(agent, call_id, deadline, results)
            inner = with_agents(scope, lambda: exposure.profile)
            loop = Loop(inner, exposure, transcript)
            ending = await self._finished(name, inner, loop)
        return answer_of(name, ending, loop.progress, transcript)

    async def _finished(self, name: str, inner: AskScope, loop: Loop) -> Ending:
        """Let the loop run to its end, and keep what it did for the trace however that comes."""
        outcome: Outcome = "cancelled"
        code: str | None = None
        try:
            ending = await loop.run()
            outcome, code = ending.outcome, ending.error.code if ending.error else None
        except SessionRuntimeError as error:
            outcome, code = "failed", error.code
            _log.warning("sub-agent %r could not go on (%s): %s", name, code, error)
            raise could_not_go_on(name, error, loop.progress) from error
        finally:
            self._keep(inner, loop, outcome, code)
        return ending

    def _admitted(self, name: str) -> Agent:
        """The agent, if it may be called from here: checked at the list and again at the call."""
        generation = self.scope.generation
        agent = generation.agents.get(name)
        if agent is None or not _may_call(generation, self.scope.agents, agent):
            raise ToolError(f"{name} may not be called from here", code="agent.refused")
        return agent

    def _mask(self, agent: Agent) -> int:
        scope = self.scope
        path = (*scope.agents, agent.spec.name)
        return mask_of_agent(scope.generation, scope.principal, scope.identity, path)

    def _inner(
        self, agent: Agent, call_id: str, deadline: float | None, results: KeptResults
    ) -> AskScope:
        scope, stated = self.scope, agent.settings
        path = (*scope.agents, agent.spec.name)
        return replace(
            scope,
            emitter=AgentEmitter(scope.emitter, "/".join(path), call_id),
            guard=scope.guard.within(stated.max_tool_calls),
            steps=scope.steps.within(stated.max_steps, kept=1),
            deadline=_ends_by(
                scope.deadline if deadline is None else min(scope.deadline, deadline)
            ),
            consent=_Nobody(agent.spec.name),
            limits=LoopLimits(
                max_total_tokens=scope.limits.max_total_tokens,
            ),
            results=results,
            services=replace(scope.services, results=results),
            agents=path,
            call=call_id,
        )

    def _keep(self, inner: AskScope, loop: Loop, outcome: Outcome, code: str | None) -> None:
        turns = tuple(loop.progress.turns)
        path = "/".join(inner.agents)
        self.scope.totals.agents.append(AgentRecord(path, inner.call, outcome, code, turns))


def mask_of_agent(
    generation: Generation, principal: Principal, identity: Identity, path: Sequence[str]
) -> int:
    """What the last agent on a path may use there: of other agents those that it may call."""
    tools = generation.agents[path[-1]].tools
    mask = generation.policy.permitted_in(tools, principal, identity)
    for other in generation.agents.values():
        if not _may_call(generation, path, other):
            mask &= ~(1 << generation.catalog.position(other.spec.name))
    return mask


def _may_call(generation: Generation, running: Sequence[str], agent: Agent) -> bool:
    """Whether an agent may be called where ``running`` are on the way."""
    is_free = agent.spec.name not in running and len(running) < generation.settings.agents.max_depth
    return is_free and agent.may_be_called_by(running[-1] if running else None)


def _task(arguments: Mapping[str, Any]) -> str:
    """What the agent is asked: its one text if there is one, else its arguments as JSON."""
    for name in _TASK:
        if set(arguments) == {name} and isinstance(arguments[name], str):
            return str(arguments[name])
    return json.dumps(dict(arguments), ensure_ascii=False)


def _ends_by(cut_off_at: float) -> float:
    """When an agent has to end so that its call still gets what it has: both in event-loop time."""
    left_s = cut_off_at - asyncio.get_running_loop().time()
    return cut_off_at - min(STOPPING_S, max(0.0, left_s) * _SHARE)


@dataclass(frozen=True, slots=True)
class _Nobody:
    """No person is asked about what a sub-agent wants to do."""

    agent: str

    def of(self, call: ToolCall) -> Consent:
        """The consent to one call."""
        del call
        return _NotHere(self.agent)

    def pending(self, call_id: str) -> PendingCall | None:
        """No call waits."""
        del call_id
        return None


@dataclass(frozen=True, slots=True)
class _NotHere:
    agent: str

    async def missing(self, proposed: Proposed) -> NotRun | None:
        """Refuse, and say who could ask."""
        return NotRun(
            f"{proposed.spec.name} was not run and nothing was changed: a person has to agree to it, and "
            f"is asked by whoever called {self.agent} only. Do not try again: answer with what is to be done."
        )

    def give_back(self) -> None:
        """Nothing was used up."""
