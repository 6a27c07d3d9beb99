"""What stays the same during one ask, handed to everything that runs a tool in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from session_runtime.ask.compaction import CHARS_PER_TOKEN
from session_runtime.ask.emitter import Events
from session_runtime.ask.guards import CallGuard
from session_runtime.ask.kept import KeptResults
from session_runtime.ask.notices import Mode
from session_runtime.generation import Generation
from session_runtime.handler import HandlerContext, ProgressSink
from session_runtime.registry.invoke.consent import Consent
from session_runtime.services import Services
from session_runtime.trace.record import AgentRecord, CallRecord
from session_runtime.trace.traceparent import AskTrace
from session_runtime.trace_context import TraceContext
from session_runtime.types import (
    LOCAL,
    Identity,
    JsonObject,
    PendingCall,
    Principal,
    ToolCall,
    ToolProgress,
    Usage,
    nothing,
)

_SHARE: Final = 75
"""How much of what a model can read the conversation may take, in percent; tools and answer need room."""


class Consents(Protocol):
    """What is known of people's consent to the calls of one loop."""

    def of(self, call: ToolCall) -> Consent:
        """The consent to one call."""

    def pending(self, call_id: str) -> PendingCall | None:
        """The call of that id if it waits."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """How long a loop may go on (ASK-7, ASK-8); 0 for ``max_total_tokens`` means any number.

    ``history_tokens`` is how much conversation it may send; 0: as much as the model can read.
    """

    max_steps: int
    max_tool_calls: int
    max_total_tokens: int = 0
    require_end: bool = False
    missing_tool_call_retries: int = 0
    history_tokens: int = 0

    def history_chars(self, context_window: int | None) -> int:
        """The most characters of conversation in a request; 0: any number, nothing is known."""
        room = (context_window or 0) * _SHARE // 100
        tokens = min(self.history_tokens or room, room or self.history_tokens)
        return tokens * CHARS_PER_TOKEN


@dataclass(slots=True)
class Totals:
    """What all of one ask adds to, so that it is known however the ask ends.

    The tokens that were spent, what sub-agents did, and the calls outside of turns: those before the first
    one, and the one that stands instead of a question.
    """

    usage: Usage = field(default_factory=Usage)
    agents: list[AgentRecord] = field(default_factory=list)
    prefetch: list[CallRecord] = field(default_factory=list)
    invoked: CallRecord | None = None


@dataclass(frozen=True, slots=True)
class AskScope:
    """What stays the same for all turns of one ask; ``deadline`` is event-loop time.

    ``identity`` is whom the ask is for, ``principal`` who asked, ``consent`` what a person agreed to.
    A sub-agent has a scope of its own: ``agents`` are the names on the way to it, ``call`` the id of the call
    that it answers (ASK-11). ``totals`` are those of the whole ask, which began at ``begun``
    and is part of ``trace``.
    """

    ask_id: str
    generation: Generation
    identity: Identity
    emitter: Events
    guard: CallGuard
    deadline: float
    consent: Consents
    limits: LoopLimits
    notices: Mode = "none"
    silent: bool = False
    keep_arguments: bool = False
    conversation: str | None = None
    metadata: JsonObject = field(default_factory=nothing)
    resources: Mapping[str, Any] = field(default_factory=nothing)
    services: Services = field(default_factory=Services)
    results: KeptResults = field(default_factory=KeptResults)
    principal: Principal = LOCAL
    totals: Totals = field(default_factory=Totals)
    agents: tuple[str, ...] = ()
    call: str = ""
    begun: float = 0.0
    trace: AskTrace | None = None

    def context(self, call_id: str, deadline: float | None = None) -> HandlerContext:
        """What the handler of one call gets to know."""
        return HandlerContext(
            identity=self.identity,
            ask_id=self.ask_id,
            call_id=self.call_id(call_id),
            idempotency_key=f"{self.ask_id}:{self.call_id(call_id)}",
            deadline=self.deadline if deadline is None else min(deadline, self.deadline),
            resources=self.resources,
            conversation=self.conversation,
            metadata=self.metadata,
            on_progress=self._progress_of(call_id),
            on_message=self.emitter.message,
            services=self.services,
            principal=self.principal.name,
            trace=self._trace_of(self.call_id(call_id)),
        )

    def call_id(self, call_id: str) -> str:
        """The id of a call that no other of the whole ask has."""
        return f"{self.call}/{call_id}" if self.call else call_id

    def _trace_of(self, call_id: str) -> TraceContext | None:
        return None if self.trace is None else self.trace.of_call(self.ask_id, call_id)

    def _progress_of(self, call_id: str) -> ProgressSink:
        def report(done: float, total: float | None, message: str | None) -> None:
            self.emitter.send(
                ToolProgress(call_id=call_id, done=done, total=total, message=message)
            )

        return report
