"""What the HTTP door needs from the runtime behind it, and the limits it keeps to itself."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from session_runtime.types import AskEvent, AskRequest, AskResult, Identity


class HttpDoor(Protocol):
    """The runtime as the HTTP door sees it; may be called at any time between open and close."""

    def ask(
        self, request: AskRequest, emit: Callable[[AskEvent], None]
    ) -> Coroutine[Any, Any, AskResult]:
        """Run one ask; raises nothing but CancelledError, and emits ``ask.finished`` last."""

    def tools(self, identity: Identity | None) -> Sequence[Mapping[str, Any]]:
        """List what the identity would see as JSON objects; None: every tool."""

    def status(self) -> Mapping[str, Any]:
        """Tell the state of the runtime as a JSON object without secrets."""

    def ready(self) -> tuple[bool, str]:
        """Tell whether asks are taken, and why not."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of every request (NET-5); times in seconds.

    ``ping_s`` is how long an event stream may be silent before a comment line is sent.
    """

    max_body_bytes: int
    body_timeout_s: float = 30.0
    ping_s: float = 15.0
