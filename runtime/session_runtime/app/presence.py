"""What a fleet is told of this replica (NET-6); how it is told is decided by the doors."""

from typing import Any

from session_runtime import __version__
from session_runtime.config.live import LiveConfig
from session_runtime.generation import Generation


def presence_of(
    generation: Generation, live: LiveConfig, asks: int, waiting: int
) -> dict[str, Any]:
    """A JSON object in the form that ``wire.presence`` reads, without secrets; cheap to make.

    ``asks`` run and ``waiting`` ones wait for their turn.
    """
    last = live.receipts.last
    receipt = None
    if last is not None:
        receipt = {"id": last.id, "verdict": last.verdict, "at": round(last.at, 3)}
    return {
        "name": generation.settings.runtime.name,
        "version": __version__,
        "digest": generation.digest,
        "config_digest": generation.digests.shared,
        "tools_digest": generation.digests.tools,
        "generation": generation.number,
        "asks": asks,
        "most_asks": generation.settings.runtime.max_concurrent_asks,
        "waiting": waiting,
        "receipt": receipt,
        "rejected_since": live.rejected_since,
        "restart_needed": len(live.waiting),
    }
