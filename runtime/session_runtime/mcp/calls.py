"""One call of a remote tool: sent, told of its progress, and its outcome given a class (RTE-7, RTE-8).

Time limits and trying again are decided in ``registry.invoke``.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from session_runtime.errors import ToolError
from session_runtime.mcp.base import OnProgress
from session_runtime.mcp.content import value_of
from session_runtime.mcp.faults import (
    MAX_CHARS,
    Fault,
    bad_result,
    error_of_call,
    says_not_there,
    tool_not_found,
)
from session_runtime.mcp.stderr_log import Shown
from session_runtime.trace_context import TraceContext
from session_runtime.types import JsonObject

MAX_ROUNDS: Final = 10
_FIRST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 0.25


class Caller(Protocol):
    """Sends calls to a server."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        on_progress: OnProgress,
        state: str | None,
        trace: TraceContext | None,
    ) -> JsonObject:
        """Send one request and give its result unread; raises Fault. Cancelling tells the server, once."""


async def call_tool(
    caller: Caller,
    server: str,
    tool: str,
    arguments: Mapping[str, Any],
    key: str,
    on_progress: OnProgress,
    shown: Shown,
    secrets: Sequence[str] = (),
    trace: TraceContext | None = None,
) -> object:
    """Call a tool and give what a handler could return, ``secrets`` masked; raises as ``Link.call`` does."""

    def forward(done: float, total: float | None, message: str | None) -> None:
        if math.isfinite(done):
            known = total if total is not None and math.isfinite(total) else None
            said = None if message is None else shown(message, MAX_CHARS)
            on_progress(done, known, said)

    try:
        result, rounds = await _completed(caller, tool, arguments, key, forward, trace)
        return await value_of(result, secrets)
    except Fault as fault:
        raise error_of_call(fault, server, tool, shown) from fault
    except ToolError as error:
        if rounds == 1 and says_not_there(str(error), tool):  # as servers of the SDK say it
            raise tool_not_found(server, tool, shown(str(error), MAX_CHARS)) from error
        raise
    except ValueError as error:
        raise bad_result(server, tool, shown(str(error), MAX_CHARS)) from error


async def _completed(
    caller: Caller,
    tool: str,
    arguments: Mapping[str, Any],
    key: str,
    on_progress: OnProgress,
    trace: TraceContext | None,
) -> tuple[JsonObject, int]:
    """Send a call until its result is complete, and count how often that was.

    A server may ask to be asked again with its state: then it has begun with the call.
    """
    state, wait_s = None, _FIRST_WAIT_S
    for rounds in range(1, MAX_ROUNDS + 1):
        try:
            result = await caller.call(tool, arguments, key, on_progress, state, trace)
        except Fault as fault:
            raise fault.after_beginning() if rounds > 1 else fault from fault.__cause__
        match result.get("resultType"):
            case None | "complete":
                return result, rounds
            case "input_required" if not result.get("inputRequests") and isinstance(
                result.get("requestState"), str
            ):
                state = result["requestState"]
            case "input_required":
                raise ValueError("it asks for input, and nobody here can give it any")
            case kind:
                raise ValueError(f"its type is {str(kind)[:40]!r}")
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
    raise ValueError(f"it was not complete after {MAX_ROUNDS} rounds")
