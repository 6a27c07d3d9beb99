"""The exit codes of every command; what they say about an ask is decided here too."""

from typing import Final, assert_never

from session_runtime.errors import ConfigError, RequestError, SessionRuntimeError
from session_runtime.types import AskResult

OK: Final = 0
FAILED: Final = 1
LIMIT: Final = 2
NEEDS_CONFIRMATION: Final = 3
USAGE: Final = 64
UNAVAILABLE: Final = 69
CONFIG: Final = 78
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

TABLE: Final = """\b
Exit codes:
  0    done; of ask: answered or ended
  1    failed; of doctor and audit verify: something is wrong;
       of status --fleet --check: there is something to warn of
  2    ask: a limit ended it
  3    ask: a person has to confirm a call
  64   the command or the request is wrong
  69   no daemon runs that could be asked, or a server of tools is not there
  78   the configuration is wrong
  130  interrupted, or the ask was cancelled
  141  the reader of the output went away"""


def of_result(result: AskResult) -> int:
    """Return the code that tells a script how an ask ended."""
    match result.outcome:
        case "answered" | "ended":
            return OK
        case "limit":
            return LIMIT
        case "needs_confirmation":
            return NEEDS_CONFIRMATION
        case "cancelled":
            return INTERRUPTED
        case "failed":
            family = "" if result.error is None else result.error.code.partition(".")[0]
            return USAGE if result.refused and family in ("request", "confirmation") else FAILED
        case _:
            assert_never(result.outcome)


def of_error(error: SessionRuntimeError) -> int:
    """Return the code of a command that an error ended."""
    match error:
        case ConfigError():
            return CONFIG
        case RequestError():
            return USAGE
        case SessionRuntimeError(code="daemon.not_running" | "mcp.down" | "fleet.broker"):
            return UNAVAILABLE
        case _:
            return FAILED
