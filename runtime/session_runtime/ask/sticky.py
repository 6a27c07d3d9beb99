"""Tools that earlier turns of a conversation called: which they are, and loading them from the start."""

from collections.abc import Iterable, Sequence
from itertools import islice

from session_runtime.search import ToolSearchSession
from session_runtime.types import Message


def called_in(history: Sequence[Message], turns: int) -> tuple[tuple[str, ...], ...]:
    """The names that each of the last ``turns`` turns with calls called, the oldest turn first."""
    calling = (message for message in reversed(history) if message.tool_calls)
    names = [tuple(call.name for call in each.tool_calls) for each in islice(calling, turns)]
    return tuple(reversed(names))


def load_again(session: ToolSearchSession, called: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Load what was called, as if it had been searched for; gives what that made callable anew."""
    names = dict.fromkeys(name for turn in called for name in turn)
    return tuple(name for name in names if session.load(name))
