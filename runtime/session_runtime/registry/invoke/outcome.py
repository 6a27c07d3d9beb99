"""What may become of one attempt to run a tool; what follows from that is decided in ``retry``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from session_runtime.errors import PermanentError, ToolError, TransientError
from session_runtime.registry.invoke.guard import Refused, Verdict

TimeLimit = Literal["idle", "hard", "ask"]

INTERNAL: Final = "mcp.internal"
NOT_FOUND: Final = "mcp.tool_not_found"
RATE_LIMITED: Final = "mcp.rate_limited"
EXPIRED: Final = "mcp.expired"
DOWN: Final = "mcp.down"
LOST: Final = "mcp.lost"


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool returned this."""

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The tool, or the way to it, raised this."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The tool was stopped after ``seconds``: those of its silence, of its own limit, or of the request."""

    limit: TimeLimit
    seconds: float
    may_have_run: bool


Ended = Returned | Raised | TimedOut
Outcome = Ended | Refused


def did_not_run(outcome: Ended) -> bool:
    """Whether a remote tool was certainly not run by this attempt."""
    match outcome:
        case TimedOut(may_have_run=may_have_run) | Raised(
            TransientError(may_have_run=may_have_run)
        ):
            return not may_have_run
        case Raised(PermanentError(code=code)):
            return code == NOT_FOUND
    return False


_TRANSIENT: Final[Mapping[str, Verdict]] = {
    EXPIRED: "unknown",
    DOWN: "unknown",
    LOST: "lost",
    RATE_LIMITED: "answered",
}


def verdict(outcome: Ended) -> Verdict:
    """What an attempt says about its route: whether somebody answered there (RTE-6).

    A tool that refuses in its own words did answer. That a request had little time left is not the fault
    of a route; else whoever asks in a hurry could close it to all others. That a connection is down the
    connection says itself, as long as it is.
    """
    match outcome:
        case Returned() | Raised(ToolError()):
            return "answered"
        case TimedOut(limit, _, may_have_run):
            return "failed" if may_have_run and limit != "ask" else "unknown"
        case Raised(PermanentError(code=code)):
            return "failed" if code == INTERNAL else "answered"
        case Raised(TransientError(code=code)):
            return _TRANSIENT.get(code, "failed")
        case Raised():
            return "failed"
