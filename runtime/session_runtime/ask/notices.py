"""Which calls of the model are announced in the chat, and how the line reads (ASK-10)."""

from collections.abc import Iterable
from typing import Literal

from session_runtime.registry.spec import ToolSpec

Mode = Literal["none", "agent", "tools", "clean", "all"]
_QUIET_WHEN_CLEAN = frozenset({"send_message", "end"})


def call_notices(
    mode: Mode, silent: bool, called: Iterable[ToolSpec], *, in_agent: bool = False
) -> tuple[str, ...]:
    """Lines for the accepted calls of one turn; calls of the same tool share a line with a count.

    ``in_agent``: a sub-agent makes the calls.
    """
    counts: dict[str, int] = {}
    for spec in called:
        if _announced(mode, silent, spec, in_agent):
            counts[spec.name] = counts.get(spec.name, 0) + 1
    return tuple(
        f"calling {name}" if count == 1 else f"calling {name} ×{count}"
        for name, count in counts.items()
    )


def prefetch_notices(mode: Mode, names: Iterable[str]) -> tuple[str, ...]:
    """Lines for tools that ran before the first turn."""
    return tuple(f"calling {name}" for name in names) if mode in ("tools", "all") else ()


def _announced(mode: Mode, silent: bool, spec: ToolSpec, in_agent: bool) -> bool:
    match mode:
        case "none":
            return False
        case "agent":
            return spec.origin == "agent"
        case "clean":
            return not silent and spec.name not in _QUIET_WHEN_CLEAN
        case "tools":
            return not (in_agent and spec.origin == "agent")
        case "all":
            return True
