"""How a prepared generation differs from the one in force, for receipts (REL-3)."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from session_runtime.config.live import News
from session_runtime.errors import Problem
from session_runtime.generation.state import Generation
from session_runtime.registry.catalog import Catalog


def news(generation: Generation, before: Generation | None) -> News:
    """Compare; without one ``before`` everything is new, and no tool is listed."""
    warnings = tuple(map(Problem, generation.warnings))
    if before is None:
        return News(generation.digest, warnings=warnings)
    tools = {
        kind: names for kind, names in _tools(before.catalog, generation.catalog).items() if names
    }
    return News(
        generation.digest,
        _essence(generation) == _essence(before),
        MappingProxyType(tools),
        warnings,
    )


def _essence(generation: Generation) -> tuple[object, ...]:
    """All that an ask or an operator could notice; settings hold the secrets, which no digest does."""
    return (
        generation.digest,
        generation.settings,
        generation.snapshot.system_prompt,
        generation.held_models,
        generation.held_sources,
        generation.held_toolbox,
        generation.servers.held,
        generation.servers.ways,
        generation.servers.waiting,
        generation.catalog.quarantined,
        generation.warnings,
    )


def _tools(old: Catalog, new: Catalog) -> Mapping[str, tuple[str, ...]]:
    before, after = _digests(old), _digests(new)
    known = set(_broken(old))
    return {
        "added": tuple(name for name in after if name not in before),
        "changed": tuple(name for name in after if name in before and after[name] != before[name]),
        "removed": tuple(name for name in before if name not in after),
        "broken": tuple(dict.fromkeys(bad[0] for bad in _broken(new) if bad not in known)),
    }


def _digests(catalog: Catalog) -> Mapping[str, tuple[str, str]]:
    return {spec.name: (spec.digest, spec.place) for spec in catalog.specs}


def _broken(catalog: Catalog) -> Iterator[tuple[str, str]]:
    return ((bad.name, bad.reason) for bad in catalog.quarantined)
