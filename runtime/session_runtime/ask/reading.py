"""Reads what calls of a reply say, long ones in a thread; which may run is decided in ``turn`` (ASK-5)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from session_runtime.ask.arguments import ArgumentFault, Arguments, parse_arguments
from session_runtime.ask.guards import same_as
from session_runtime.registry.spec import ToolSpec
from session_runtime.threads import aside
from session_runtime.types import JsonObject, ToolCall

READ_AT_ONCE_CHARS: Final = 16_384
"""So many characters of arguments, of one call or several, are read before others have their turn."""

Check = Callable[[JsonObject], tuple[str, ...]]
"""Gives what is wrong with arguments."""


@dataclass(frozen=True, slots=True)
class ReadCall:
    """The arguments of a call; ``same_as`` is equal for calls of a tool with equal ones."""

    values: JsonObject
    same_as: str
    repairs: tuple[str, ...] = ()


class CallReader:
    """Reads the calls of one reply in their order; ``cut_off`` if the model had not finished it."""

    def __init__(self, *, cut_off: bool = False) -> None:
        self._cut_off = cut_off
        self._chars = 0

    async def read(
        self, call: ToolCall, spec: ToolSpec, check: Check | None
    ) -> ReadCall | ArgumentFault:
        """Read one call, and ``check`` what it says if there is no later check of that."""
        work = partial(_read, call, spec, check, cut_off=self._cut_off)
        self._chars += len(call.arguments)
        if self._chars <= READ_AT_ONCE_CHARS:
            return work()
        self._chars = 0
        return await aside("reading arguments", work)


async def read_again(arguments: str) -> ReadCall:
    """Read the arguments of a call that was admitted before."""

    def work() -> ReadCall:
        values = json.loads(arguments)
        return ReadCall(values, same_as(values))

    return await aside("reading arguments", work)


def _read(
    call: ToolCall, spec: ToolSpec, check: Check | None, *, cut_off: bool
) -> ReadCall | ArgumentFault:
    """Nothing at all may stand for no arguments, but not where they were still to come."""
    parsed = parse_arguments(call.arguments, spec.parameters)
    match parsed:
        case ArgumentFault(problem):
            return ArgumentFault(f"{problem}. Call it again with a JSON object.")
        case Arguments(values) if cut_off and not values:
            return ArgumentFault("your reply was cut off before its arguments. Call it again.")
        case Arguments(values, repairs):
            problems = () if check is None else check(values)
            if problems:
                return ArgumentFault(f"{'; '.join(problems)}.")
            return ReadCall(values, same_as(values), repairs)
