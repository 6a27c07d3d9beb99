"""One ask that ended, in lines for people; whatever they hold, they are bounded and cannot steer a terminal.

Everything in a record may be from a caller, a model or a tool (SEC-4).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from session_runtime.cli.screen import one_line
from session_runtime.trace.record import (
    AgentRecord,
    AskRecord,
    CallRecord,
    SearchRecord,
    TurnRecord,
)
from session_runtime.types import Usage
from session_runtime.wire import to_bytes

MAX_LINES: Final = 2_000
MAX_CHARS: Final = 240
MAX_NAMES: Final = 12
_DEEPEST: Final = 8
_STEP: Final = "  "
Agents = Mapping[str, list[AgentRecord]]
"""Those that are not told yet, by the calls that they answered."""


def summary(record: AskRecord) -> str:
    """One ask in one line."""
    code = "" if record.error is None else f" ({record.error.code})"
    calls = sum(len(turn.calls) for turn in record.turns)
    return _bounded(
        f"{_moment(record)}  {record.ask_id}  {record.outcome}{code}  {record.duration_s:.3f} s"
        f"  {_count(len(record.turns), 'turn')}  {_count(calls, 'call')}"
        f"  {record.usage.total_tokens} tokens, {record.tokens_saved} saved  {_who(record)}"
    )


def story(record: AskRecord) -> Iterator[str]:
    """All of one ask, MAX_LINES at most."""
    lines = map(_bounded, chain(_opening(record), _middle(record), _end(record)))
    yield from islice(lines, MAX_LINES)
    if more := sum(1 for _ in lines):
        yield f"and {more} lines more: see --json"


def _opening(record: AskRecord) -> Iterator[str]:
    yield f"{record.ask_id}  {record.outcome} after {record.duration_s:.3f} s  ({_moment(record)})"
    yield f"asked by     {_who(record)}"
    yield f"ran on       generation {record.generation} ({record.config_digest}), model {record.model or '-'}"
    if record.trace is not None:
        sent = "sent as spans" if record.trace.exported else "no spans sent"
        yield f"part of      trace {record.trace.trace_id}, {sent}"
    search = record.tool_search
    yield (
        f"tool search  {search.rule}: {search.deferred} tools withheld, their names cost"
        f" {search.directory_tokens} tokens a turn"
        if search.active
        else f"tool search  not used ({search.rule})"
    )


def _middle(record: AskRecord) -> Iterator[str]:
    agents = _by_call(record.agents)
    for name, calls in (("prefetched", record.prefetch), ("confirmed", record.confirmed)):
        if calls:
            yield name
            yield from _indented(_calls(calls, agents, "", 0))
    if record.invoked is not None:
        yield "called instead of a question"
        yield from _indented(_calls([record.invoked], agents, "", 0))
    yield from _turns(record.turns, agents, "", 0)


def _turns(turns: Sequence[TurnRecord], agents: Agents, path: str, depth: int) -> Iterator[str]:
    before: frozenset[str] = frozenset()
    for turn in turns:
        yield (
            f"turn {turn.step}  at {turn.at_s:.3f} s  {turn.model}: {turn.model_s:.3f} s, "
            f"{_tokens(turn.usage)}, {turn.finish_reason or 'no reply'}"
            + (f", after {turn.attempts} attempts" if turn.attempts > 1 else "")
        )
        yield f"{_STEP}offered {_offered(turn, before)}"
        before = frozenset(turn.exposed)
        yield from _indented(_calls(turn.calls, agents, path, depth))
        if turn.calls:
            yield f"{_STEP}{_count(len(turn.calls), 'call')} in {turn.tools_s:.3f} s"


def _offered(turn: TurnRecord, before: frozenset[str]) -> str:
    told = f"{_count(len(turn.exposed), 'tool')} ({turn.exposed_tokens} tokens)"
    fresh = [name for name in turn.exposed if name not in before]
    if not before:
        return f"{told}: {_names(fresh)}"
    return f"{told}, newly {_names(fresh)}" if fresh else f"{told}, as before"


def _calls(calls: Sequence[CallRecord], agents: Agents, path: str, depth: int) -> Iterator[str]:
    for call in calls:
        yield _call(call)
        if call.arguments is not None:
            yield f"{_STEP}with {_cut(to_bytes(call.arguments).decode(), MAX_CHARS - 40)}"
        if call.search is not None:
            yield f"{_STEP}{_searched(call.search)}"
        inner = f"{path}/{call.call_id}" if path else call.call_id
        if depth < _DEEPEST and agents.get(inner):
            agent = agents[inner].pop(
                0
            )  # ids may come again in later turns, and agents are in order
            yield from _indented(_agent(agent, agents, inner, depth + 1))


def _agent(agent: AgentRecord, agents: Agents, path: str, depth: int) -> Iterator[str]:
    code = f" ({agent.error_code})" if agent.error_code else ""
    yield f"sub-agent {agent.agent}  {agent.outcome}{code}  {_count(len(agent.turns), 'turn')}"
    yield from _indented(_turns(agent.turns, agents, path, depth))


def _call(call: CallRecord) -> str:
    code = f" ({call.error_code})" if call.error_code else ""
    whole = "" if call.whole_chars is None else f" of {call.whole_chars}"
    parts = (
        f"{call.name}  {call.status}{code}  {call.latency_s:.3f} s",
        f"{call.result_chars}{whole} characters ({call.result_digest})",
        f"{call.attempts} attempts" if call.attempts > 1 else "",
        f"repaired: {_names(call.repairs)}" if call.repairs else "",
        f"call {call.call_id}",
    )
    return ", ".join(filter(None, parts))


def _searched(search: SearchRecord) -> str:
    found = (
        f"loaded {_names(search.loaded)}" if search.loaded else "",
        f"had {_names(search.already_loaded)}" if search.already_loaded else "",
        f"did not find {_names(search.not_found)}" if search.not_found else "",
        "and there was more" if search.truncated else "",
    )
    return f"searched {_cut(search.query, MAX_CHARS // 2)!r}: " + (
        ", ".join(filter(None, found)) or "nothing found"
    )


def _end(record: AskRecord) -> Iterator[str]:
    yield f"used         {_tokens(record.usage)}, {_count(record.usage.model_calls, 'request')}"
    yield (
        f"saved        {record.tokens_saved} tokens: all tools had cost {record.tokens_full_list}, what was"
        f" offered cost {record.tokens_exposed}"
    )
    per_turn = record.daemon_s / max(1, len(record.turns)) * 1_000
    yield f"daemon       {record.daemon_s * 1_000:.1f} ms of its own time, {per_turn:.1f} ms per turn"
    if record.error is not None:
        again = "; trying again may help" if record.error.retryable else ""
        yield f"error        {record.error.code}: {record.error.message}{again}"
    yield f"outcome      {record.outcome}"


def _by_call(agents: Sequence[AgentRecord]) -> Agents:
    """The id of a call by a sub-agent follows those of the way to it."""
    found: dict[str, list[AgentRecord]] = {}
    for agent in agents:
        found.setdefault(agent.call_id, []).append(agent)
    return found


def _who(record: AskRecord) -> str:
    identity = record.identity
    roles = identity.roles
    stated = (
        ("user", identity.user),
        ("roles", None if roles is None else _names(sorted(roles)) or "none"),
        ("channel", identity.channel),
        ("group", identity.group),
    )
    told = ", ".join(f"{name} {value}" for name, value in stated if value is not None)
    return f"{record.principal.name} for {told}" if told else record.principal.name


def _moment(record: AskRecord) -> str:
    return record.started_at.replace("T", " ").replace("+00:00", " UTC")


def _tokens(usage: Usage) -> str:
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    thinking = f" ({usage.reasoning_tokens} thinking)" if usage.reasoning_tokens else ""
    about = "about " if usage.estimated else ""
    return f"{about}{usage.input_tokens} tokens in{cached}, {usage.output_tokens} out{thinking}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(_cut(name, 80) for name in names[:MAX_NAMES]) + more


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (_STEP + line for line in lines)


def _bounded(line: str) -> str:
    return _cut(one_line(_cut(line, MAX_CHARS)), 2 * MAX_CHARS)
