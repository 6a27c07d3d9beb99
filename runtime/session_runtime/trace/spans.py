"""The record of an ask as spans: the ask, its turns, their calls, and sub-agents below theirs (OPS-1).

What is sent of them, and when, is decided in ``export``; what they are called in ``conventions``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from session_runtime.trace import conventions as name
from session_runtime.trace.record import AgentRecord, AskRecord, CallRecord, TurnRecord
from session_runtime.trace.traceparent import (
    AskTrace,
    agent_span,
    ask_span,
    call_span,
    turn_span,
)
from session_runtime.types import Usage
from session_runtime.wire import to_bytes

MAX_CHARS: Final = 256
MAX_ARGUMENTS_CHARS: Final = 8_000
_NANO: Final = 1_000_000_000
Value = str | int | float | bool | list[str]


@dataclass(frozen=True, slots=True)
class Span:
    """One span; times in nanoseconds since 1970, ids as hexadecimal digits, ``error`` a code of ours."""

    title: str
    kind: Literal["internal", "client", "server"]
    trace_id: str
    span_id: str
    parent_id: str | None
    start: int
    end: int
    attributes: Mapping[str, Value]
    error: str | None = None
    state: str = ""


def spans_of(record: AskRecord, agent: str, *, content: bool) -> Iterator[Span]:
    """All spans of an ask that is part of a trace; ``content`` lets arguments of calls in."""
    if record.trace is not None:
        yield from _Spans(record, record.trace, agent, content).all()


@dataclass(frozen=True, slots=True)
class _Around:
    """What a turn or call is inside of: the span, and the id of the sub-agent's call, if it is one."""

    span_id: str
    call_id: str = ""

    def inner(self, call_id: str) -> str:
        """The id of a call in here that no other of the ask has."""
        return f"{self.call_id}/{call_id}" if self.call_id else call_id


class _Spans:
    def __init__(self, record: AskRecord, trace: AskTrace, agent: str, content: bool) -> None:
        self._record = record
        self._trace = trace
        self._agent = agent
        self._content = content
        began = datetime.fromisoformat(record.started_at).timestamp()
        self._began = round(began * 1_000_000) * 1_000
        self._agents: dict[str, list[AgentRecord]] = {}
        for each in record.agents:
            self._agents.setdefault(each.call_id, []).append(each)

    def all(self) -> Iterator[Span]:
        record, ask = self._record, _Around(ask_span(self._record.ask_id))
        yield self._of_ask(ask)
        before = (*record.prefetch, *record.confirmed)
        invoked = () if record.invoked is None else (record.invoked,)
        yield from self._calls((*before, *invoked), ask, 0.0)
        yield from self._turns(record.turns, ask)

    def _of_ask(self, ask: _Around) -> Span:
        record = self._record
        attributes: dict[str, Value] = {
            name.OPERATION: name.INVOKE_AGENT,
            name.PROVIDER: name.OURSELVES,
            name.AGENT_NAME: self._agent,
            name.REQUEST_MODEL: _cut(record.model),
            **_usage(record.usage),
            name.ASK_ID: _cut(record.ask_id),
            name.OUTCOME: record.outcome,
            name.GENERATION: record.generation,
            name.CONFIG_DIGEST: record.config_digest,
            name.DAEMON_SECONDS: record.daemon_s,
            name.TOKENS_SAVED: record.tokens_saved,
            name.SEARCH_RULE: record.tool_search.rule,
        }
        error = None if record.error is None else record.error.code
        title = f"{name.INVOKE_AGENT} {self._agent}"
        parent = _Around(self._trace.parent_id) if self._trace.parent_id else None
        times = (0.0, record.duration_s)
        return self._span(title, "server", ask.span_id, parent, times, attributes, error)

    def _turns(self, turns: Sequence[TurnRecord], around: _Around) -> Iterator[Span]:
        for turn in turns:
            yield self._of_turn(turn, around)
            yield from self._calls(turn.calls, around, turn.at_s + turn.model_s)

    def _of_turn(self, turn: TurnRecord, around: _Around) -> Span:
        attributes: dict[str, Value] = {
            name.OPERATION: name.CHAT,
            name.PROVIDER: name.OURSELVES,
            name.REQUEST_MODEL: _cut(turn.model),
            **_usage(turn.usage),
            name.OFFERED: len(turn.exposed),
            name.OFFERED_TOKENS: turn.exposed_tokens,
            name.ATTEMPTS: turn.attempts,
        }
        if turn.finish_reason is not None:
            attributes[name.FINISH_REASONS] = [_cut(turn.finish_reason)]
        span_id = turn_span(self._record.ask_id, around.call_id, turn.step)
        times = (turn.at_s, turn.at_s + turn.model_s)
        title = f"{name.CHAT} {_cut(turn.model)}"
        return self._span(title, "client", span_id, around, times, attributes, None)

    def _calls(self, calls: Sequence[CallRecord], around: _Around, at_s: float) -> Iterator[Span]:
        for call in calls:
            own = self._of_call(call, around, at_s)
            yield own
            inner = around.inner(call.call_id)
            if self._agents.get(
                inner
            ):  # ids may come again in later turns, and agents are in order
                yield from self._of_agent(self._agents[inner].pop(0), inner, own)

    def _of_call(self, call: CallRecord, around: _Around, at_s: float) -> Span:
        attributes: dict[str, Value] = {
            name.OPERATION: name.EXECUTE_TOOL,
            name.TOOL_NAME: _cut(call.name),
            name.TOOL_TYPE: name.FUNCTION,
            name.TOOL_CALL_ID: _cut(call.call_id),
            name.STATUS: call.status,
            name.ATTEMPTS: call.attempts,
            name.RESULT_CHARS: call.result_chars,
        }
        if call.search is not None:
            attributes[name.SEARCH_LOADED] = [_cut(each) for each in call.search.loaded]
        if self._content and call.arguments is not None:
            written = to_bytes(call.arguments).decode()
            attributes[name.TOOL_ARGUMENTS] = written[:MAX_ARGUMENTS_CHARS]
        span_id = call_span(self._record.ask_id, around.inner(call.call_id))
        title = f"{name.EXECUTE_TOOL} {_cut(call.name)}"
        times = (at_s, at_s + call.latency_s)
        return self._span(title, "internal", span_id, around, times, attributes, call.error_code)

    def _of_agent(self, agent: AgentRecord, call_id: str, call: Span) -> Iterator[Span]:
        around = _Around(agent_span(self._record.ask_id, call_id), call_id)
        attributes: dict[str, Value] = {
            name.OPERATION: name.INVOKE_AGENT,
            name.PROVIDER: name.OURSELVES,
            name.AGENT_NAME: _cut(agent.agent),
            name.OUTCOME: agent.outcome,
        }
        title = f"{name.INVOKE_AGENT} {_cut(agent.agent)}"
        times = ((call.start - self._began) / _NANO, (call.end - self._began) / _NANO)
        parent = _Around(call.span_id)
        yield self._span(
            title, "internal", around.span_id, parent, times, attributes, agent.error_code
        )
        yield from self._turns(agent.turns, around)

    def _span(
        self,
        title: str,
        kind: Literal["internal", "client", "server"],
        span_id: str,
        parent: _Around | None,
        times: tuple[float, float],
        attributes: dict[str, Value],
        error: str | None,
    ) -> Span:
        start, end = (self._began + round(at_s * _NANO) for at_s in times)
        if error is not None:
            attributes[name.ERROR_TYPE] = _cut(error)
        return Span(
            *(title, kind, self._trace.trace_id, span_id),
            *(None if parent is None else parent.span_id, start, end, attributes),
            *(None if error is None else _cut(error), self._trace.state),
        )


def _usage(usage: Usage) -> dict[str, Value]:
    return {
        name.INPUT_TOKENS: usage.input_tokens,
        name.OUTPUT_TOKENS: usage.output_tokens,
        name.CACHED_TOKENS: usage.cached_tokens,
        name.REASONING_TOKENS: usage.reasoning_tokens,
    }


def _cut(text: str) -> str:
    return text[:MAX_CHARS]
