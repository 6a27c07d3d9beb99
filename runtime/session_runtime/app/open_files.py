"""How many files and sockets the process may have open, which decides how many asks it can serve."""

import logging
import resource
from typing import Final

PER_ASK: Final = 4
"""The caller, the model, and what a tool of the ask may open."""
OF_ITS_OWN: Final = 256
SPARE: Final = 128
"""Connections beside those of asks: for status, metrics, and clients that keep theirs a while."""

_log = logging.getLogger(__name__)


def allow_open_files(asks: int) -> None:
    """Raise the soft limit of open files as far as ``asks`` at once need it and the hard limit allows.

    Unless it was raised, the 1,024 that many systems give allow 500 asks at most: each has a socket to
    the caller and one to the model. A hard limit that is too low is told with figures.
    """
    wanted = OF_ITS_OWN + PER_ASK * asks
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _covers(soft, wanted):
        return
    allowed = wanted if _covers(hard, wanted) else hard
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):
        allowed = soft
    if allowed < wanted:
        _log.warning(
            "%d asks at once (runtime.max_concurrent_asks) may need %d open files and sockets, and the"
            " system allows this process %d: raise its hard limit (ulimit -Hn, LimitNOFILE of a"
            " service), or set runtime.max_concurrent_asks to %d",
            asks,
            wanted,
            allowed,
            max(1, (allowed - OF_ITS_OWN) // PER_ASK),
        )


def most_connections(asks: int) -> int:
    """How many connections of callers there may be, so that asks, tools and files are left enough."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return asks + SPARE if soft == resource.RLIM_INFINITY else min(asks + SPARE, soft // 2)


def _covers(limit: int, wanted: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= wanted
