"""The section [audit]: the record of every tool call, whose lines are chained by keyed hashes (RTE-13).

How it is written and verified is decided in ``audit``.
"""

from pathlib import Path
from typing import Final, Literal

from session_runtime.config.section import Count, Section, Whole, key

OnError = Literal["go_on", "refuse_destructive", "refuse"]

_MIB: Final = 1024 * 1024


class AuditSettings(Section):
    """The record of who had which tool do what, one JSON object per line."""

    enabled: bool = key(True, "Whether tool calls are recorded.", acts="restart")
    path: Path | None = key(
        None, "The folder of the records; unset: audit in runtime.state_dir.", acts="restart"
    )
    max_bytes: Count = key(
        64 * _MIB, "The size at which a new file is begun, in bytes.", acts="restart"
    )
    keep: Whole = key(
        30, "How many full files are kept, the oldest go first; 0 means all.", acts="restart"
    )
    on_error: OnError = key(
        "refuse_destructive",
        "What happens while nothing can be recorded, as on a full disk: calls are made all the same"
        " (go_on), all but those of destructive tools (refuse_destructive), or none at all (refuse). A"
        " call that would be refused is recorded before it is made too.",
        acts="restart",
    )
