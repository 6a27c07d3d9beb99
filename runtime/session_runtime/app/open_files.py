"""How many files and sockets the process may have open, which decides how many asks it can serve."""

import logging
import resource
from typing import Final

from session_runtime.config.settings import Settings
from session_runtime.transports.mcp.endpoint import LIMITS

PER_ASK: Final = 4
"""The caller, the model, and what a tool of the ask may open."""
OF_ITS_OWN: Final = 256
PER_WAITING: Final = 2
"""The caller whose ask waits for its turn, and as much again: connections get half of all files."""
PER_SESSION: Final = 2
"""The stream on which an MCP client listens, and as much again: connections get half of all files."""
SPARE: Final = 128
"""Connections beside those of asks: for status, metrics, and clients that keep theirs a while."""

_log = logging.getLogger(__name__)


def expected_load(settings: Settings) -> tuple[int, int, int]:
    """How many asks, sessions of MCP clients, and asks that wait for their turn there may be at once."""
    bounds = settings.runtime
    sessions = LIMITS.most if settings.http.mcp else 0
    return bounds.max_concurrent_asks, sessions, bounds.max_waiting_asks_in_all


def wanted_files(asks: int, sessions: int, waiting: int = 0) -> int:
    """How many files and sockets all of these may need at once."""
    return OF_ITS_OWN + PER_ASK * asks + PER_SESSION * sessions + PER_WAITING * waiting


def allow_open_files(asks: int, sessions: int = 0, waiting: int = 0) -> None:
    """Raise the soft limit of open files as far as all this needs it and the hard limit allows.

    Unless it was raised, the 1,024 that many systems give allow 500 asks at most: each has a socket to
    the caller and one to the model. A hard limit that is too low for what runs is told with figures; where
    it is for what waits alone, fewer connections are taken.
    """
    wanted, needed = wanted_files(asks, sessions, waiting), wanted_files(asks, sessions)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _covers(soft, wanted):
        return
    allowed = wanted if _covers(hard, wanted) else hard
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):
        allowed = soft
    if allowed < needed:
        also = f" and {sessions} sessions of MCP clients (http.mcp)" if sessions else ""
        _log.warning(
            "%d asks at once (runtime.max_concurrent_asks)%s may need %d open files and sockets, and the"
            " system allows this process %d: raise its hard limit (ulimit -Hn, LimitNOFILE of a"
            " service), or set runtime.max_concurrent_asks to %d",
            asks,
            also,
            needed,
            allowed,
            max(1, (allowed - wanted_files(0, sessions)) // PER_ASK),
        )


def most_connections(asks: int, sessions: int = 0, waiting: int = 0) -> int:
    """How many connections of callers there may be, so that asks, tools and files are left enough."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = asks + sessions + waiting + SPARE
    return most if soft == resource.RLIM_INFINITY else min(most, soft // 2)


def _covers(limit: int, wanted: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= wanted
