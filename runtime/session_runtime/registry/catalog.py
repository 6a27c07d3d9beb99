"""All tools of one generation and where they come from; who may see them is decided in ``policy``."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from session_runtime.errors import ConfigError, PermanentError, Problem
from session_runtime.registry.names import name_fault
from session_runtime.registry.schema import ArgumentCheck, compile_schema
from session_runtime.registry.spec import ToolSource, ToolSpec
from session_runtime.types import NOTHING, JsonObject

_CHECKS_PER_SLICE = 50


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A tool that is left out, alone (REG-4): its name, where it is registered, and the reason.

    ``stale``: an earlier form of it could be used and is used on (REL-7).
    """

    name: str
    place: str
    reason: str
    stale: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Catalog:
    """Every usable tool, sorted by name, and what is needed to call it (REG-5).

    ``sources`` and ``checks`` are keyed by source id and tool name.
    """

    specs: tuple[ToolSpec, ...]
    sources: Mapping[str, ToolSource]
    checks: Mapping[str, ArgumentCheck]
    quarantined: tuple[Quarantined, ...]
    positions: Mapping[str, int]

    def lookup(self, name: str) -> ToolSpec:
        """Give the tool of a canonical name; KeyError if there is none."""
        return self.specs[self.positions[name]]

    def position(self, name: str) -> int:
        """Give the bit that stands for a tool in a permission mask; KeyError if there is none."""
        return self.positions[name]

    def destructive(self, name: str) -> bool:
        """Whether a tool changes things for good; KeyError if there is none."""
        return self.lookup(name).annotations.destructive

    def servers(self) -> tuple[str, ...]:
        """List the ids of all sources, in the order in which they were given."""
        return tuple(self.sources)

    def tools(self, server: str) -> tuple[ToolSpec, ...]:
        """List the tools of one source, sorted by name."""
        return tuple(spec for spec in self.specs if spec.source_id == server)

    def status(self, server: str) -> JsonObject:
        """Describe one source for operators: its id and how many tools it offers."""
        return {"id": server, "tools": len(self.tools(server))}


async def build_catalog(
    sources: Sequence[ToolSource],
    quarantined: Iterable[Quarantined] = (),
    compiled: Mapping[str, ArgumentCheck] = NOTHING,
) -> Catalog:
    """List all sources and make one catalogue of them.

    A tool whose name or schema is unusable is quarantined beside those already ``quarantined`` by
    its source. ``compiled`` are checks that exist already, by the digest of their tool. Raises
    ConfigError when two sources offer a tool of the same name, naming both.
    """
    listed = await asyncio.gather(*(source.list_tools() for source in sources))
    specs = sorted((spec for specs in listed for spec in specs), key=lambda spec: spec.name)
    _refuse_duplicates(specs)
    checks: dict[str, ArgumentCheck] = {}
    refused = list(quarantined)
    for number, spec in enumerate(specs):
        if number % _CHECKS_PER_SLICE == 0:
            await asyncio.sleep(0)
        try:
            checks[spec.name] = compiled.get(spec.digest) or _check(spec)
        except PermanentError as error:
            refused.append(Quarantined(spec.name, spec.source_id, str(error)))
    usable = tuple(spec for spec in specs if spec.name in checks)
    return Catalog(
        usable,
        MappingProxyType({source.id: source for source in sources}),
        MappingProxyType(checks),
        tuple(refused),
        MappingProxyType({spec.name: position for position, spec in enumerate(usable)}),
    )


def _check(spec: ToolSpec) -> ArgumentCheck:
    fault = name_fault(spec.name)
    if fault is not None:
        raise PermanentError(f"its name cannot be used: {fault}", code="tool.name_invalid")
    return compile_schema(spec.parameters)


def _refuse_duplicates(specs: Sequence[ToolSpec]) -> None:
    """Compare neighbours: ``specs`` are sorted by name."""
    problems = [
        Problem(
            f"tool {spec.name!r} of {spec.source_id!r} also exists in {other.source_id!r}: "
            "rename one of them or list it under [handlers] disabled"
        )
        for spec, other in pairwise(specs)
        if spec.name == other.name
    ]
    if problems:
        raise ConfigError(problems)
