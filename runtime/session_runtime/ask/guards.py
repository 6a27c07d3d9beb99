"""Counts calls and turns of one ask against its limits (ASK-8); tokens and time are watched by the loop."""

import hashlib
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


def same_as(arguments: JsonObject) -> str:
    """What arguments have in common with equal ones and with no others; long ones take a while."""
    written = json.dumps(arguments, sort_keys=True)
    return hashlib.blake2b(written.encode(), digest_size=16).hexdigest()


class Budget:
    """How many of something there may be, and those inside of it among them (ASK-11).

    Each counts for ``around`` too, the budget of whoever called, of which ``kept`` are not for this one.
    """

    def __init__(self, limit: int, around: "Budget | None" = None, kept: int = 0) -> None:
        self._limit = limit
        self._around = around
        self._kept = kept
        self._used = 0

    @property
    def left(self) -> int:
        """How many more there may be."""
        own = self._limit - self._used
        return own if self._around is None else min(own, self._around.left - self._kept)

    @property
    def most(self) -> int:
        """The limit that is reached first: its own, or that of whoever called."""
        own, around = self._limit - self._used, self._around
        if around is None or own <= around.left - self._kept:
            return self._limit
        return around.most

    def within(self, limit: int, kept: int = 0) -> "Budget":
        """A budget for what is called, which leaves ``kept`` of this one."""
        return Budget(limit, self, kept)

    def take(self) -> bool:
        """Count one, unless there may be no more."""
        if self.left <= 0:
            return False
        self.count()
        return True

    def count(self) -> None:
        """Count one that there is, here or inside."""
        self._used += 1
        if self._around is not None:
            self._around.count()


class CallGuard:
    """Admits calls in order: at most ``max_calls``, and the same call with the same arguments thrice.

    What it admits counts for ``around`` too, the budget of whoever called (ASK-11). Only the event loop may
    ask it: a look at what is left and the count that follows must not be parted.
    """

    def __init__(self, max_calls: int, around: Budget | None = None) -> None:
        self._calls = Budget(max_calls, around)
        self._seen: dict[str, int] = {}
        self._uncallable: dict[str, int] = {}
        self._warned: set[str] = set()

    @property
    def exhausted(self) -> bool:
        """Whether no further call will be admitted."""
        return self._calls.left <= 0

    @property
    def most(self) -> int:
        """The limit that is reached first: its own, or that of whoever called."""
        return self._calls.most

    def within(self, max_calls: int) -> "CallGuard":
        """A guard of its own for what a call of this ask does."""
        return CallGuard(max_calls, self._calls)

    def warns_now(self, name: str) -> bool:
        """Whether an ask is to be warned of a tool: at its first call, and not again."""
        first = name not in self._warned
        self._warned.add(name)
        return first

    def refuse_again(self, name: str, why: str) -> Refused | None:
        """Count a call of what cannot be called; in other words once it keeps coming back.

        ``why`` says what is wrong, and the way out.
        """
        count = self._uncallable[name] = self._uncallable.get(name, 0) + 1
        if count < REFUSE_AT:
            return None
        return Refused("tool.repeated", f"{name[:80]!r} was called {count} times, and {why}")

    def admit(self, name: str, same_as: str) -> Admitted | Refused:
        """Decide about one call; what it is the ``same_as`` is told by the function of that name."""
        if self.exhausted:
            return Refused(
                "limit.calls",
                f"the limit of {self.most} tool calls for this request is reached: "
                "answer now with what you have",
            )
        key = f"{name} {same_as}"
        count = self._seen.get(key, 0) + 1
        if count >= REFUSE_AT:
            return Refused(
                "tool.repeated",
                f"{name} was called {count - 1} times with exactly these arguments: "
                "use the earlier results, change the arguments, or answer",
            )
        self._seen[key] = count
        self.count()
        if count >= WARN_AT:
            return Admitted(
                f"Note: this is call {count} of {name} with the same arguments; "
                "another identical one will be refused."
            )
        return Admitted()

    def count(self) -> None:
        """Count a call that was admitted here or inside."""
        self._calls.count()
