"""What a tool returned, beside what is made of it for a model: for callers that take data too."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from session_runtime.handler import HandlerContext
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.spec import Audience, Route, ToolSource, ToolSpec
from session_runtime.threads import aside
from session_runtime.types import Identity, JsonObject, ToolResult

_READ_AT_ONCE_CHARS: Final = 16_384


class ReturnedValue:
    """Keeps the ``value`` that a tool returned last; None before."""

    def __init__(self) -> None:
        self.value: object = None

    def within(self, catalog: Catalog, spec: ToolSpec) -> Catalog:
        """The same catalogue, in which calls of this tool leave here what they return."""
        source = _Watched(catalog.sources[spec.source_id], self._keep)
        return replace(catalog, sources={**catalog.sources, spec.source_id: source})

    async def structured(self, result: ToolResult) -> JsonObject | None:
        """The object that the tool returned, as far as ``result`` shows it and nothing else."""
        if not isinstance(self.value, Mapping) or result.status != "ok":
            return None
        return None if result.whole_chars is not None else await _read(result.content)

    def _keep(self, value: object) -> None:
        self.value = value


async def _read(shown: str) -> JsonObject | None:
    """The object that a shown result is; None if more than the object is shown."""
    if len(shown) <= _READ_AT_ONCE_CHARS:
        return _object(shown)
    return await aside("reading a result", lambda: _object(shown))


def _object(text: str) -> JsonObject | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class _Watched:
    """A source as it is, but for ``keep`` being told what its tools return."""

    source: ToolSource
    keep: Callable[[object], None]

    @property
    def id(self) -> str:
        return self.source.id

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        return await self.source.list_tools()

    def is_loaded(self, spec: ToolSpec) -> bool:
        return self.source.is_loaded(spec)

    def routes(self, spec: ToolSpec, identity: Identity) -> Sequence[Route]:
        return [self._watched(route) for route in self.source.routes(spec, identity)]

    @property
    def audience(self) -> Audience | None:
        return self.source.audience

    async def aclose(self) -> None:
        await self.source.aclose()

    def _watched(self, route: Route) -> Route:
        async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
            value = await route.run(arguments, context)
            self.keep(value)
            return value

        return replace(route, run=run)
