"""Calls of tools that an operator takes away: refused before, stopped while they run."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from session_runtime.handler import HandlerContext
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import Revocations
from session_runtime.types import ToolResult
from tests.registry.invoke.calling import Shelf, invoke, returning, told

NEEDS_X = {"type": "object", "required": ["x"]}
AWAY = "Trying again will not help: go on without it, or say what you cannot do."
STOPPED = f"t was stopped, as an operator has taken it away. It may have taken effect. {AWAY}"


class Hanging:
    """A tool that runs until it is cancelled, and then takes its time if it is ``stubborn``."""

    def __init__(self, stubborn: bool = False) -> None:
        self.started = asyncio.Event()
        self.cancelled = False
        self._stubborn = stubborn

    async def __call__(self, arguments: Mapping[str, Any], context: HandlerContext) -> str:
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            if not self._stubborn:
                raise
            await asyncio.Event().wait()
        return "done"


async def cut_off(tool: Hanging, revocations: Revocations, **more: Any) -> ToolResult:
    """Call a tool and revoke it once it runs."""
    calling = asyncio.create_task(invoke(tool, revocations=revocations, **more))
    await tool.started.wait()
    await revocations.revoke("?", "it leaks the secrets of ann")
    return await calling


@pytest.mark.requirement("REL-9")
async def test_a_revoked_tool_is_not_run_and_the_model_is_not_told_why() -> None:
    revocations, ran = Revocations(), Hanging()
    await revocations.revoke("t", "it leaks the secrets of ann")
    result = await invoke(ran, {"any": 1}, parameters=NEEDS_X, revocations=revocations)
    words = f"t was not run: an operator has taken it away. {AWAY}"
    assert told(result) == ("refused", "tool.revoked", words)
    assert not ran.started.is_set()


@pytest.mark.requirement("REL-9")
async def test_a_lifted_tool_runs_again() -> None:
    revocations = Revocations()
    await revocations.revoke("t")
    await revocations.lift("t")
    assert told(await invoke(returning("hi"), revocations=revocations)) == ("ok", None, "hi")


@pytest.mark.requirement("REL-9")
@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_call_that_runs_is_cancelled_with_the_refusal_as_its_result(stubborn: bool) -> None:
    tool, registry = Hanging(stubborn), Registry()
    result = await cut_off(tool, Revocations(), registry=registry)
    assert told(result) == ("refused", "tool.revoked", STOPPED)
    assert tool.cancelled


async def test_a_tool_that_is_revoked_twice_while_it_stops_is_stopped_once() -> None:
    tool, revocations = Hanging(stubborn=True), Revocations()
    calling = asyncio.create_task(invoke(tool, revocations=revocations))
    await tool.started.wait()
    for pattern in ("t", "*", "?"):
        await revocations.revoke(pattern)
        await asyncio.sleep(0)
    assert told(await calling) == ("refused", "tool.revoked", STOPPED)


async def test_the_caller_who_cancels_first_is_cancelled() -> None:
    tool, revocations = Hanging(stubborn=True), Revocations()
    calling = asyncio.create_task(invoke(tool, revocations=revocations))
    await tool.started.wait()
    calling.cancel()
    await asyncio.sleep(0)
    await revocations.revoke("t")
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_other_tools_run_on() -> None:
    revocations, may_end = Revocations(), asyncio.Event()

    async def waits(arguments: Mapping[str, Any], context: HandlerContext) -> str:
        await revocations.revoke("u*")
        may_end.set()
        await asyncio.sleep(0)
        return "done"

    assert told(await invoke(waits, revocations=revocations)) == ("ok", None, "done")
    assert may_end.is_set()


async def test_nothing_is_kept_of_a_tool_that_is_revoked_while_it_answers() -> None:
    revocations, shelf = Revocations(), Shelf()

    async def answers(arguments: Mapping[str, Any], context: HandlerContext) -> str:
        await revocations.revoke("t")
        return "x" * 1_000

    result = await invoke(answers, revocations=revocations, place=shelf.place())
    assert result.error_code == "tool.revoked"
    assert shelf.kept == []
