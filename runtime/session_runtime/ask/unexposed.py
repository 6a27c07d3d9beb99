"""What becomes of the call of a tool that is not exposed in its turn: why it is refused, what it loads."""

from dataclasses import dataclass
from typing import Final

from session_runtime.ask.exposure import Exposure, Turn
from session_runtime.ask.guards import CallGuard
from session_runtime.spelling import nearest

NAMES_IN_REFUSAL: Final = 12
MAX_COMPARED: Final = 200
UNKNOWN: Final = "tool.unknown"
NOT_LOADED: Final = "tool.not_loaded"
_GO_ON: Final = "Go on with the tools you have now, or say what you cannot do without it"


@dataclass(frozen=True, slots=True)
class Unexposed:
    """The refusal of such a call; ``loaded`` says that the call loaded its tool for the next turn."""

    code: str
    reason: str
    loaded: bool = False


def refuse_unexposed(exposure: Exposure, turn: Turn, guard: CallGuard, name: str) -> Unexposed:
    """Refuse a call; its tool is loaded where that is wanted (TS-6), how often it came is counted."""
    loaded = exposure.autoload(name)
    if exposure.autoloads and name in exposure.loaded and name not in exposure.revoked:
        return Unexposed(
            NOT_LOADED,
            f"{name} was not run, because it was not loaded in this turn. It is loaded now: call "
            f"{name} again in the next turn, with arguments that fit its parameters",
            loaded,
        )
    code, reason = why_not_exposed(exposure, turn, name)
    again = guard.refuse_again(name, _instead(exposure, code, name))
    return Unexposed(code, reason) if again is None else Unexposed(again.code, again.reason)


def why_not_exposed(exposure: Exposure, turn: Turn, name: str) -> tuple[str, str]:
    """A refusal that names only what this identity may know and call now (TS-13, RTE-11).

    A forbidden name and one that does not exist take the same path to the same words. One that was
    revoked before it was loaded does not exist any more (REL-9). It names no way that is none.
    """
    waiting = exposure.session.deferred if exposure.session is not None else ()
    if name in waiting and name not in exposure.revoked:
        if ended := exposure.loads_no_more:
            return (
                NOT_LOADED,
                f"{name} is not loaded and cannot be loaded any more. {ended}. {_GO_ON}",
            )
        return (
            NOT_LOADED,
            f"{name} is not loaded in this turn. Call tool_search with the query "
            f"'select:{name}', then call {name} in the next turn",
        )
    usable = [other for other in turn.by_name if other not in exposure.revoked]
    near = nearest(name, usable, 3) if len(usable) <= MAX_COMPARED else []
    now = near or usable[:NAMES_IN_REFUSAL]
    label = "Similar tools that can be called now" if near else "Tools that can be called now"
    return UNKNOWN, f"there is no tool named {name[:80]!r} here. {label}: {', '.join(now)}"


def _instead(exposure: Exposure, code: str, name: str) -> str:
    """What is wrong with a name that keeps being called, and what to do."""
    if code == UNKNOWN:
        return "there is no such tool here: call another one, or answer with what you have"
    if exposure.loads_no_more:
        return "it cannot be loaded any more: call another one, or answer with what you have"
    return (
        f"it is not loaded: first call tool_search with the query 'select:{name}', or answer with "
        "what you have"
    )
