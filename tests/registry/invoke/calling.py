"""What tests of one call share: a tool that does what a function does, called through the pipeline."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from session_runtime.config.tools import Destructive
from session_runtime.handler import HandlerContext
from session_runtime.registry.catalog import build_catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.invoke.results import Place, Renderer
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import Revocations
from session_runtime.types import JsonObject, ToolResult
from tests.registry.tools import ANYTHING, Function, FunctionSource, spec

SOON_S = 0.01
CONTEXT = HandlerContext(call_id="c1")


async def invoke(
    run: Function,
    arguments: Mapping[str, Any] = MappingProxyType({}),
    context: HandlerContext = CONTEXT,
    *,
    parameters: JsonObject = ANYTHING,
    registry: Registry | None = None,
    timeout_s: float = 60,
    loaded: bool = True,
    destructive: Destructive = "confirm",
    place: Place | None = None,
    note: str = "",
    renderer: Renderer | None = None,
    revocations: Revocations | None = None,
    **changes: Any,
) -> ToolResult:
    """Call one tool ``t`` that does ``run``."""
    tool = spec("t", parameters, **changes)
    source = FunctionSource("here", {tool: run}, loaded)
    catalog = await build_catalog([source])
    invoker = Invoker(
        registry or Registry(),
        timeout_s,
        100,
        destructive,
        grace_s=SOON_S,
        renderer=renderer,
        revocations=revocations,
    )
    return await invoker.invoke(catalog, catalog.lookup("t"), arguments, context, place, note)


def returning(value: object) -> Function:
    async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        return value

    return run


class Shelf:
    """Keeps results, as an ask would; ``full`` says that there is no room."""

    def __init__(self, *, full: bool = False) -> None:
        self.kept: list[str] = []
        self._full = full

    def place(self) -> Place:
        return Place(f"result_{len(self.kept) + 1}", self._keep)

    def _keep(self, text: str) -> bool:
        if not self._full:
            self.kept.append(text)
        return not self._full


def told(result: ToolResult) -> tuple[str, str | None, str]:
    return result.status, result.error_code, result.content
