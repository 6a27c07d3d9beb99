"""Looks for tools whose code is no Python, aside and after the start, which compiles none (REG-2)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from session_runtime.generation import Generation
from session_runtime.local.tool import LocalTool, unimportable
from session_runtime.threads import in_thread

FIRST_S: Final = 5.0
PACE_S: Final = 0.05
AGAIN_S: Final = 2.0
"""So long after the start it begins, rests after each tool, and until it looks for new ones."""

_log: Final = logging.getLogger(__name__)

Pause = Callable[[float], Awaitable[object]]
_Key = tuple[str, str]


class CodeLook:
    """What was found of each tool in force; every code is compiled once, one after the other, in a thread.

    ``current`` gives the generation in force, ``pause`` waits.
    """

    def __init__(self, current: Callable[[], Generation], pause: Pause = asyncio.sleep) -> None:
        self._current = current
        self._pause = pause
        self._found: dict[_Key, tuple[str, ...]] = {}

    @property
    def warnings(self) -> list[str]:
        """Of each tool in force whose calls can only fail, why; as far as was looked by now.

        Code that was imported after all, as what it lacked was installed meanwhile, is told of no more.
        """
        if not any(self._found.values()):
            return []
        handlers = self._current().handlers.handlers.values()
        failing = (each.tool for each in handlers if not each.is_loaded)
        return [told for tool in failing for told in self._found.get(_key(tool), ())]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look at what is in force, and at what comes into force, until the block is left."""
        task = asyncio.create_task(self._follow(), name="look at the code of tools")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _follow(self) -> None:
        seen, wait_s = None, FIRST_S
        while True:
            await self._pause(wait_s)
            number = self._current().number
            if number != seen:
                await self._look()
                seen = number
            wait_s = AGAIN_S

    async def _look(self) -> None:
        tools = self._tools()
        known = {_key(tool) for tool in tools}
        self._found = {key: told for key, told in self._found.items() if key in known}
        for tool in tools:
            if _key(tool) in self._found:
                continue
            told = await in_thread("look at code", partial(_faults, tool))
            self._found[_key(tool)] = told
            for each in told:
                _log.warning("%s", each)
            await self._pause(PACE_S)

    def _tools(self) -> list[LocalTool]:
        return [each.tool for each in self._current().handlers.handlers.values()]


def _key(tool: LocalTool) -> _Key:
    return tool.spec.name, tool.spec.digest


def _faults(tool: LocalTool) -> tuple[str, ...]:
    return tuple(unimportable(tool))
