"""What stays the same during one ask, handed to everything that runs a tool in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from session_runtime.ask.emitter import Emitter
from session_runtime.ask.guards import CallGuard
from session_runtime.ask.kept import KeptResults
from session_runtime.ask.notices import Mode
from session_runtime.generation import Generation
from session_runtime.handler import HandlerContext, ProgressSink
from session_runtime.registry.invoke.consent import AskConsent
from session_runtime.services import Services
from session_runtime.types import (
    LOCAL,
    Identity,
    JsonObject,
    Principal,
    ToolProgress,
    nothing,
)


@dataclass(frozen=True, slots=True)
class AskScope:
    """What stays the same for all turns of one ask; ``deadline`` is event-loop time.

    ``identity`` is whom the ask is for, ``principal`` who asked, ``consent`` what a person agreed to.
    """

    ask_id: str
    generation: Generation
    identity: Identity
    emitter: Emitter
    guard: CallGuard
    deadline: float
    consent: AskConsent
    notices: Mode = "none"
    silent: bool = False
    keep_arguments: bool = False
    conversation: str | None = None
    metadata: JsonObject = field(default_factory=nothing)
    resources: Mapping[str, Any] = field(default_factory=nothing)
    services: Services = field(default_factory=Services)
    results: KeptResults = field(default_factory=KeptResults)
    principal: Principal = LOCAL

    def context(self, call_id: str, deadline: float | None = None) -> HandlerContext:
        """What the handler of one call gets to know."""
        return HandlerContext(
            identity=self.identity,
            ask_id=self.ask_id,
            call_id=call_id,
            idempotency_key=f"{self.ask_id}:{call_id}",
            deadline=self.deadline if deadline is None else min(deadline, self.deadline),
            resources=self.resources,
            conversation=self.conversation,
            metadata=self.metadata,
            on_progress=self._progress_of(call_id),
            on_message=self.emitter.message,
            services=self.services,
            principal=self.principal.name,
        )

    def _progress_of(self, call_id: str) -> ProgressSink:
        def report(done: float, total: float | None, message: str | None) -> None:
            self.emitter.send(
                ToolProgress(call_id=call_id, done=done, total=total, message=message)
            )

        return report
