"""What is kept of an ask after it ended (OPS-1); what is secret in it is decided in ``redact``."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from session_runtime.trace.redact import redact, redact_text
from session_runtime.trace.traceparent import AskTrace
from session_runtime.types import (
    ErrorInfo,
    Identity,
    JsonObject,
    Outcome,
    Principal,
    ToolResult,
    Usage,
)
from session_runtime.wire import error_to_json, usage_to_json

MOST_EARLIER: Final = 16
MAX_NAME_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class ToolSearchRecord:
    """Whether tool search was active in an ask and which rule decided it (TS-10).

    ``deferred`` counts the tools withheld at first, ``directory_tokens`` estimates what listing
    their names cost.
    """

    active: bool
    rule: str
    deferred: int = 0
    directory_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """What one executed tool search was asked and what it let through."""

    query: str
    loaded: tuple[str, ...] = ()
    already_loaded: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    truncated: bool = False
    max_results: int | None = None


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One tool call and how it came out; made by ``record_call``, so that it holds no secret.

    ``arguments`` are redacted (None: not usable as JSON, or not to be kept), ``result_digest`` is a
    short hash of the result text that the model was given, ``result_chars`` its length, and
    ``whole_chars`` that of the whole result if it was given shortened; ``latency_s`` in seconds.
    ``counted`` says that the call counted against the limit of calls, as it was about to run (ASK-8).
    """

    call_id: str
    name: str
    arguments: object
    status: str
    error_code: str | None
    result_digest: str
    result_chars: int
    attempts: int
    latency_s: float
    repairs: tuple[str, ...] = ()
    search: SearchRecord | None = None
    whole_chars: int | None = None
    counted: bool = False


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One request to the model with its answer and the calls it led to.

    ``exposed`` are the tools sent, ``exposed_tokens`` estimates their schemas; ``attempts`` counts
    model calls, ``model`` is the profile that was asked last; ``model_s``, waiting included, and
    ``tools_s`` are seconds, ``at_s`` those from the start of the ask to that of the turn. ``revoked`` are
    the tools that had been taken away from the ask when its calls were made (REL-9).
    """

    step: int
    model: str
    exposed: tuple[str, ...]
    exposed_tokens: int
    attempts: int
    model_s: float
    tools_s: float
    usage: Usage
    finish_reason: str | None
    calls: tuple[CallRecord, ...] = ()
    at_s: float = 0.0
    revoked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """What a sub-agent did for one call: ``agent`` is its path, ``call_id`` the call that it answered."""

    agent: str
    call_id: str
    outcome: Outcome
    error_code: str | None
    turns: tuple[TurnRecord, ...]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What of a request decides about its tools, so that the ask can be replayed (OPS-2); no text of it.

    ``model`` is the profile that it named, None for the default one. ``key`` says that the principal has a
    key in the configuration; ``bound`` is what the principal is by itself, None if nothing bounds it.
    ``earlier`` are the tools that the last ``MOST_EARLIER`` turns of the history called, a tuple for each,
    ``revoked`` those that were taken away when the ask began (REL-9), ``tool`` the one that was to be called
    instead of a question.
    """

    model: str | None = None
    key: bool = False
    bound: Identity | None = None
    earlier: tuple[tuple[str, ...], ...] = ()
    revoked: tuple[str, ...] = ()
    tool: str | None = None


@dataclass(frozen=True, slots=True)
class InstructionRecord:
    """A digest of what a model was asked with beside tools.

    That is the system prompt, the prompt of the agent ``name``, or what the model of the profile ``name`` is
    and how it is spoken to.
    """

    kind: Literal["prompt", "profile", "agent"]
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class AskRecord:
    """One ask from start to end; ``principal`` is who asked, ``identity`` what the request stated.

    ``started_at`` is ISO 8601 in UTC; ``duration_s`` all seconds, ``daemon_s`` those spent neither
    in the model nor in tools. ``tokens_full_list`` estimates what the tool schemas of all turns had
    cost without tool search, ``tokens_exposed`` what they did cost, directory included. ``confirmed`` are
    the calls that a person had agreed to or declined, which the ask began with; ``invoked`` is the one call
    that stood instead of a question. ``request`` is None in traces of earlier versions, ``trace`` the trace
    over several programs that the ask is part of. ``max_result_chars`` is how much of a result a model was
    shown (ASK-8b), None in traces of earlier versions, which have no ``instructions`` either.
    """

    ask_id: str
    started_at: str
    generation: int
    config_digest: str
    model: str
    principal: Principal
    identity: Identity
    tool_search: ToolSearchRecord
    prefetch: tuple[CallRecord, ...]
    confirmed: tuple[CallRecord, ...]
    turns: tuple[TurnRecord, ...]
    outcome: Outcome
    error: ErrorInfo | None
    usage: Usage
    duration_s: float
    daemon_s: float
    tokens_full_list: int
    tokens_exposed: int
    agents: tuple[AgentRecord, ...] = ()
    invoked: CallRecord | None = None
    request: RequestRecord | None = None
    trace: AskTrace | None = None
    max_result_chars: int | None = None
    instructions: tuple[InstructionRecord, ...] = ()

    @property
    def tokens_saved(self) -> int:
        """Input tokens that tool search saved in this ask; negative if it cost more."""
        return self.tokens_full_list - self.tokens_exposed

    @property
    def all_turns(self) -> Iterator[TurnRecord]:
        """Those of the ask, then those of its sub-agents."""
        yield from self.turns
        for agent in self.agents:
            yield from agent.turns

    @property
    def all_calls(self) -> Iterator[CallRecord]:
        """Every tool call of the ask and its sub-agents, also those before the first turn."""
        yield from (*self.prefetch, *self.confirmed)
        if self.invoked is not None:
            yield self.invoked
        for turn in self.all_turns:
            yield from turn.calls


def record_call(
    result: ToolResult,
    arguments: JsonObject | None,
    *,
    repairs: tuple[str, ...] = (),
    search: SearchRecord | None = None,
    counted: bool = False,
) -> CallRecord:
    """Keep of a call what may be kept: redacted arguments, the result's digest and size."""
    return CallRecord(
        call_id=redact_text(result.call_id),
        name=redact_text(result.name),
        arguments=None if arguments is None else redact(arguments),
        status=result.status,
        error_code=result.error_code,
        result_digest=_digest(result.content),
        result_chars=len(result.content),
        attempts=result.attempts,
        latency_s=result.latency_s,
        repairs=repairs,
        search=search,
        whole_chars=result.whole_chars,
        counted=counted,
    )


def record_to_json(record: AskRecord) -> dict[str, Any]:
    """One line of the trace as plain data; all that models, tools and errors say is redacted."""
    invoked = {} if record.invoked is None else {"invoked": _call_to_json(record.invoked)}
    request = {} if record.request is None else {"request": _request_to_json(record.request)}
    return {
        "ask_id": record.ask_id,
        "started_at": record.started_at,
        "generation": record.generation,
        "config_digest": record.config_digest,
        "model": record.model,
        "principal": record.principal.name,
        "identity": _identity_to_json(record.identity),
        "tool_search": asdict(record.tool_search),
        "prefetch": [_call_to_json(call) for call in record.prefetch],
        "confirmed": [_call_to_json(call) for call in record.confirmed],
        "turns": [_turn_to_json(turn) for turn in record.turns],
        "agents": [_agent_to_json(agent) for agent in record.agents],
        "outcome": record.outcome,
        "error": _error_to_json(record.error),
        "usage": usage_to_json(record.usage),
        "duration_s": _seconds(record.duration_s),
        "daemon_s": _seconds(record.daemon_s),
        "tokens_full_list": record.tokens_full_list,
        "tokens_exposed": record.tokens_exposed,
        "tokens_saved": record.tokens_saved,
        "max_result_chars": record.max_result_chars,
        "instructions": [asdict(each) for each in record.instructions],
        **invoked,
        **request,
        **({} if record.trace is None else {"trace": asdict(record.trace)}),
    }


def _request_to_json(request: RequestRecord) -> dict[str, Any]:
    """Names that callers gave are redacted, as models and clients may have put anything there."""
    return {
        "model": _short(request.model),
        "key": request.key,
        "bound": None if request.bound is None else _identity_to_json(request.bound),
        "earlier": [[_short(name) for name in turn] for turn in request.earlier],
        "revoked": list(request.revoked),
        "tool": _short(request.tool),
    }


def _short(name: str | None) -> str | None:
    return None if name is None else redact_text(name[:MAX_NAME_CHARS])


def _agent_to_json(record: AgentRecord) -> dict[str, Any]:
    return {
        "agent": record.agent,
        "call_id": redact_text(record.call_id),
        "outcome": record.outcome,
        "error_code": record.error_code,
        "turns": [_turn_to_json(turn) for turn in record.turns],
    }


def _turn_to_json(turn: TurnRecord) -> dict[str, Any]:
    data: dict[str, Any] = {
        "step": turn.step,
        "model": turn.model,
        "exposed": list(turn.exposed),
        "exposed_tokens": turn.exposed_tokens,
        "attempts": turn.attempts,
        "at_s": _seconds(turn.at_s),
        "model_s": _seconds(turn.model_s),
        "tools_s": _seconds(turn.tools_s),
        "usage": usage_to_json(turn.usage),
        "finish_reason": None if turn.finish_reason is None else redact_text(turn.finish_reason),
        "calls": [_call_to_json(call) for call in turn.calls],
    }
    if turn.revoked:
        data["revoked"] = list(turn.revoked)
    return data


def _call_to_json(call: CallRecord) -> dict[str, Any]:
    data: dict[str, Any] = {
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
        "status": call.status,
        "error_code": call.error_code,
        "result_digest": call.result_digest,
        "result_chars": call.result_chars,
        "attempts": call.attempts,
        "latency_s": _seconds(call.latency_s),
    }
    if call.repairs:
        data["repairs"] = list(call.repairs)
    if call.whole_chars is not None:
        data["whole_chars"] = call.whole_chars
    if call.counted:
        data["counted"] = True
    if call.search is not None:
        data["search"] = redact(asdict(call.search))
    return data


def _identity_to_json(identity: Identity) -> dict[str, Any]:
    return {
        "user": identity.user,
        "roles": None if identity.roles is None else sorted(identity.roles),
        "channel": identity.channel,
        "group": identity.group,
    }


def _error_to_json(error: ErrorInfo | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {**error_to_json(error), "message": redact_text(error.message)}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _seconds(value: float) -> float:
    return round(value, 6)
