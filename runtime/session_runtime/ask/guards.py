"""Counts the calls of one ask against its limits (ASK-8); tokens and time are watched by the loop."""

import json
from dataclasses import dataclass

from session_runtime.types import JsonObject

WARN_AT = 3
REFUSE_AT = 4


@dataclass(frozen=True, slots=True)
class Admitted:
    """The call may run; ``warning``, if there is any, is for the model to read below its result."""

    warning: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The call may not run; costs no budget."""

    code: str
    reason: str


class CallGuard:
    """Admits calls in order: at most ``max_calls``, and the same call with the same arguments thrice."""

    def __init__(self, max_calls: int) -> None:
        self._max_calls = max_calls
        self._admitted = 0
        self._seen: dict[str, int] = {}
        self._warned: set[str] = set()

    @property
    def exhausted(self) -> bool:
        """Whether no further call will be admitted."""
        return self._admitted >= self._max_calls

    def warns_now(self, name: str) -> bool:
        """Whether an ask is to be warned of a tool: at its first call, and not again."""
        first = name not in self._warned
        self._warned.add(name)
        return first

    def admit(self, name: str, arguments: JsonObject) -> Admitted | Refused:
        """Decide about one call."""
        if self.exhausted:
            return Refused(
                "limit.calls",
                f"the limit of {self._max_calls} tool calls for this request is reached: "
                "answer now with what you have",
            )
        key = f"{name} {json.dumps(arguments, sort_keys=True)}"
        count = self._seen.get(key, 0) + 1
        if count >= REFUSE_AT:
            return Refused(
                "tool.repeated",
                f"{name} was called {count - 1} times with exactly these arguments: "
                "use the earlier results, change the arguments, or answer",
            )
        self._seen[key] = count
        self._admitted += 1
        if count >= WARN_AT:
            return Admitted(
                f"Note: this is call {count} of {name} with the same arguments; "
                "another identical one will be refused."
            )
        return Admitted()
