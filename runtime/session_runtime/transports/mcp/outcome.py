"""What a call comes to for a client of the MCP door: text as a model reads it, data and pictures beside it.

How a result is shown, shortened and refused is decided in ``registry.invoke``; this only adds the forms that
an MCP client can take and a model of ours is not given.
"""

import threading
from dataclasses import dataclass, replace
from typing import Final

from session_runtime.handler import Image
from session_runtime.registry.invoke.returned import ReturnedValue
from session_runtime.types import JsonObject, ToolResult, ToolStatus

MOST_IMAGE_BYTES: Final = 2 * 1024 * 1024
MOST_MESSAGES: Final = 50
MOST_MESSAGE_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client is told of one call; ``messages`` are what the tool said to the person meanwhile.

    ``structured`` is the whole result where it is an object of data and not too long to be shown; ``image``
    stands in for ``text`` where the result is a picture of at most MOST_IMAGE_BYTES. ``loaded`` are tools
    that can be called from now on and could not before.
    """

    status: ToolStatus
    text: str
    structured: JsonObject | None = None
    image: Image | None = None
    messages: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()


def refusal(text: str) -> Outcome:
    """The outcome of a call that was not allowed to run."""
    return Outcome("refused", text)


async def outcome_of(
    returned: ReturnedValue, result: ToolResult, messages: tuple[str, ...]
) -> Outcome:
    """What the client is told; a result that is not shown whole, or not at all, adds nothing."""
    plain = Outcome(result.status, result.content, messages=messages)
    match returned.value:
        case Image(bytes() as data) as image if len(data) <= MOST_IMAGE_BYTES:
            return replace(plain, image=image) if result.status == "ok" else plain
        case _:
            return replace(plain, structured=await returned.structured(result))


class Said:
    """Gathers what a tool says to the person, from any thread; what is too much is left out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: list[str] = []
        self._chars = 0

    def add(self, text: str) -> None:
        """Keep one message, if there is room for it."""
        with self._lock:
            fits = self._chars + len(text) <= MOST_MESSAGE_CHARS
            if fits and len(self._messages) < MOST_MESSAGES:
                self._messages.append(text)
                self._chars += len(text)

    def all(self) -> tuple[str, ...]:
        """What was said so far."""
        with self._lock:
            return tuple(self._messages)
