"""Calls the tools of a scan; the pipeline in ``registry`` decides about arguments, time and results."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Final, ParamSpec

from session_runtime.errors import ToolError
from session_runtime.handler import HandlerContext
from session_runtime.local.forks import in_one_process
from session_runtime.local.loader import Handler
from session_runtime.local.scan import Scan
from session_runtime.local.threads import Threads
from session_runtime.local.tool import SOURCE_ID, LocalTool
from session_runtime.registry.spec import Route, ToolSpec
from session_runtime.types import Identity

MAX_THREADS: Final = 64

P = ParamSpec("P")


class LocalSource:
    """The tools of a scan as a ``ToolSource``.

    Tools that are the same in ``previous`` keep their imported code and its state (REL-7).
    """

    def __init__(self, found: Scan, previous: "LocalSource | None" = None) -> None:
        known = previous.handlers if previous is not None else {}
        self.handlers: dict[str, Handler] = {
            tool.spec.name: _handler(tool, known) for tool in found.tools
        }
        self._threads = Threads(MAX_THREADS)

    @property
    def id(self) -> str:
        """The same for every scan."""
        return SOURCE_ID

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        """List the tools, sorted by name."""
        return tuple(handler.tool.spec for handler in self.handlers.values())

    def is_loaded(self, spec: ToolSpec) -> bool:
        """Whether the tool's code is imported; a sub-agent has none."""
        handler = self.handlers[spec.name]
        return handler.tool.form is not None or handler.is_loaded

    @property
    def audience(self) -> None:
        """Everybody is offered every handler."""

    def routes(self, spec: ToolSpec, identity: Identity) -> Sequence[Route]:
        """The one way there is: a sub-agent is run by the ask that calls it."""
        del identity
        run = _delegated if self.handlers[spec.name].tool.form is not None else self.call
        return (Route(SOURCE_ID, partial(run, spec)),)

    async def call(
        self, spec: ToolSpec, arguments: Mapping[str, Any], context: HandlerContext
    ) -> object:
        """Import the tool if this is its first call, and run it: a plain function in a thread.

        Only plain functions share the threads: however many of them hang, others can be imported.
        """
        execute = await self.handlers[spec.name].load()
        values, safe_context = deepcopy(dict(arguments)), _for_any_thread(context)
        if inspect.iscoroutinefunction(execute):
            return await in_one_process(spec.name, execute(values, safe_context))
        result = await self._threads.run(
            f"tool {spec.name}", partial(execute, values, safe_context), context.deadline
        )
        if inspect.isawaitable(result):
            return await in_one_process(spec.name, _awaited(result))
        return result

    async def aclose(self) -> None:
        """Let go of the imported code; threads that still run are not waited for."""
        self.handlers = {}
        self._threads.close()


async def _delegated(
    spec: ToolSpec, arguments: Mapping[str, Any], context: HandlerContext
) -> object:
    agents = context.services.agents
    if agents is None:
        raise ToolError(f"{spec.name} is a sub-agent: it runs inside of an ask only")
    return await agents.run(spec.name, arguments, context.call_id, context.deadline)


async def _awaited(result: Awaitable[object]) -> object:
    return await result


def _handler(tool: LocalTool, known: Mapping[str, Handler]) -> Handler:
    old = known.get(tool.spec.name)
    return old if old is not None and _kept(old.tool) == _kept(tool) else Handler(tool)


def _kept(tool: LocalTool) -> tuple[str, str, str]:
    """What must be equal for a tool to keep its code and its spec."""
    return tool.spec.digest, tool.spec.place, tool.spec.origin


def _for_any_thread(context: HandlerContext) -> HandlerContext:
    return replace(
        context,
        on_progress=_on_this_loop(context.on_progress),
        on_message=_on_this_loop(context.on_message),
    )


def _on_this_loop(function: Callable[P, None]) -> Callable[P, None]:
    """Wrap ``function`` so that it always runs in the thread of the running loop."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        if threading.get_ident() == home:
            function(*args, **kwargs)
        else:
            loop.call_soon_threadsafe(partial(function, *args, **kwargs))

    return call
