"""Tools that earlier turns of a conversation called: which they are, and loading them from the start."""

from collections.abc import Sequence
from itertools import islice

from session_runtime.search import ToolSearchSession
from session_runtime.types import Message


def called_in(history: Sequence[Message], turns: int) -> tuple[tuple[str, ...], ...]:
    """The names that each of the last ``turns`` turns with calls called, the oldest turn first."""
    calling = (message for message in reversed(history) if message.tool_calls)
    names = [tuple(call.name for call in each.tool_calls) for each in islice(calling, turns)]
    return tuple(reversed(names))


def load_again(session: ToolSearchSession, called: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Load what was called, as if it had been searched for; gives what that made callable anew.

    Where not all of it has a place, what was called last goes first; places for searches stay free.
    """
    newest_first = dict.fromkeys(name for turn in reversed(called) for name in turn)
    chosen = frozenset(islice(filter(session.would_load, newest_first), _places(session)))
    names = dict.fromkeys(name for turn in called for name in turn)
    return tuple(name for name in names if name in chosen and session.load(name))


def _places(session: ToolSearchSession) -> int | None:
    """All but those for one search and for results.read, or but half of them if there are few."""
    if session.room is None:
        return None
    kept_free = min(session.cap(None) + 1, (session.room + 1) // 2)
    return session.room - kept_free
