"""What the tests of the registry share: specs in one line, and a source whose tools are functions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from session_runtime.handler import HandlerContext
from session_runtime.registry.spec import Route, ToolSpec
from session_runtime.types import Identity, JsonObject

ANYTHING: JsonObject = {"type": "object"}

Function = Callable[[Mapping[str, Any], HandlerContext], Awaitable[object]]


def spec(name: str, parameters: JsonObject = ANYTHING, **changes: Any) -> ToolSpec:
    """A tool of the source ``here``."""
    plain = ToolSpec(
        name, f"Does {name}.", parameters, "handler", "here", name, f"digest of {name}"
    )
    return replace(plain, **changes)


async def nothing(arguments: Mapping[str, Any], context: HandlerContext) -> None:
    """A tool that does nothing."""
    del arguments, context


class FunctionSource:
    """A tool source that runs the given functions; ``loaded`` is what it says of each."""

    def __init__(
        self, source_id: str, tools: Mapping[ToolSpec, Function], loaded: bool = True
    ) -> None:
        self._id = source_id
        self._loaded = loaded
        self._tools = {replace(each, source_id=source_id): run for each, run in tools.items()}
        self._by_name = {each.name: run for each, run in self._tools.items()}

    @property
    def id(self) -> str:
        return self._id

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        return tuple(sorted(self._tools, key=lambda each: each.name))

    def is_loaded(self, spec: ToolSpec) -> bool:
        return self._loaded

    @property
    def audience(self) -> None:
        return None

    def routes(self, spec: ToolSpec, identity: Identity) -> Sequence[Route]:
        return (Route(self._id, self._by_name[spec.name]),)

    async def aclose(self) -> None:
        pass
