"""Prepares the next generation whole, or leaves nothing open (REL-1)."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from session_runtime.config.load import ConfigSnapshot
from session_runtime.config.models import ModelProfile
from session_runtime.config.settings import Settings, default_profile, profiles
from session_runtime.errors import ConfigError
from session_runtime.generation.live import Generations, UsagePool
from session_runtime.generation.state import (
    NOT_IN_FORCE,
    Generation,
    Loader,
    PermittedLists,
    Profile,
)
from session_runtime.generation.warnings import crowded_profiles, unreachable_names
from session_runtime.local.scan import Scan, scan
from session_runtime.local.source import LocalSource
from session_runtime.models.base import Model
from session_runtime.models.factory import open_model, profile_digest
from session_runtime.models.limited import LimitedModel
from session_runtime.registry.catalog import Catalog, build_catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.names import build_wire_names, meets_tool_search
from session_runtime.registry.policy import compile_policy
from session_runtime.registry.registry import Registry
from session_runtime.registry.schema import compile_schema
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import FieldWeights, build_index, tool_search_spec
from session_runtime.toolbox.box import Toolbox, open_toolbox, toolbox_key

TOOL_FRAME_CHARS = 60

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedGeneration:
    """A whole next generation, not in force yet."""

    generation: Generation
    publish: Callable[[Generation], None]
    let_go: Callable[[Generation], Awaitable[None]]

    def commit(self) -> None:
        """Put it into force."""
        self.publish(self.generation)

    async def abort(self) -> None:
        """Release what preparation opened."""
        await self.let_go(self.generation)


class GenerationBuilder:
    """Prepares generations; what did not change is shared with the ones before (REL-1)."""

    def __init__(self, registry: Registry, bundled: Path) -> None:
        self._registry = registry
        self._bundled = bundled
        self._sources: UsagePool[LocalSource] = UsagePool()
        self._in_force: LocalSource | None = None
        self._models: UsagePool[Model] = UsagePool()
        self._toolboxes: UsagePool[Toolbox] = UsagePool()
        self.generations = Generations(self.let_go)

    async def prepare(self, snapshot: ConfigSnapshot) -> PreparedGeneration:
        """Open and check everything; raises ConfigError and leaves nothing open when it does."""
        async with AsyncExitStack() as undo:
            generation = await self._build(snapshot, undo)
            undo.pop_all()
        return PreparedGeneration(generation, self._publish, self.let_go)

    async def let_go(self, generation: Generation) -> None:
        """Release all shared resources that a generation held; one that fails to close is logged."""
        releases = [
            *map(self._models.release, generation.held_models),
            *map(self._sources.release, generation.held_sources),
            self._toolboxes.release(generation.held_toolbox),
        ]
        for outcome in await asyncio.gather(*releases, return_exceptions=True):
            if isinstance(outcome, BaseException):
                _log.error("a resource of a generation failed to close", exc_info=outcome)

    async def _build(self, snapshot: ConfigSnapshot, undo: AsyncExitStack) -> Generation:
        settings = snapshot.settings
        box_key = toolbox_key(snapshot, self._bundled)
        open_box = partial(_open_toolbox, snapshot, self._bundled)
        toolbox = await self._toolboxes.acquire(box_key, open_box)
        undo.push_async_callback(self._toolboxes.release, box_key)
        found = await asyncio.to_thread(_scan, snapshot, self._bundled, toolbox.idle)
        source_key = f"handlers:{found.digest}"
        source = await self._sources.acquire(
            source_key, partial(_open_handlers, found, self._in_force)
        )
        undo.push_async_callback(self._sources.release, source_key)
        catalog = await build_catalog([source], found.quarantined, found.checks)
        opened, model_keys = await self._open_profiles(settings, catalog, undo)
        main = opened[default_profile(settings)]
        index = build_index(catalog.specs, main.names, _weights(settings))
        loader = tool_search_spec(settings.skills.tool_search_max_results)
        tokens = {spec.name: _schema_tokens(spec) for spec in (*catalog.specs, loader)}
        return Generation(
            number=NOT_IN_FORCE,
            digest=_digest(snapshot, catalog),
            snapshot=snapshot,
            catalog=catalog,
            policy=compile_policy(settings.access, settings.features, catalog.specs),
            index=index,
            profiles=MappingProxyType(opened),
            default_profile=main.name,
            loader=Loader(loader, compile_schema(loader.parameters)),
            schema_tokens=MappingProxyType(tokens),
            permitted=PermittedLists(catalog, tokens),
            invoker=Invoker(
                self._registry,
                settings.handlers.timeout_s,
                settings.ask.max_result_chars,
                settings.access.destructive,
            ),
            handlers=source,
            toolbox=toolbox,
            held_models=model_keys,
            held_sources=(source_key,),
            held_toolbox=box_key,
            warnings=(
                *found.warnings,
                *unreachable_names(settings, index),
                *crowded_profiles(settings, index),
            ),
        )

    def _publish(self, generation: Generation) -> None:
        self.generations.publish(generation)
        self._in_force = generation.handlers
        self._registry.retain(generation.catalog)
        for warning in (*generation.snapshot.warnings, *generation.warnings):
            _log.warning("%s", warning)
        for bad in generation.catalog.quarantined:
            _log.error("tool %s is left out: %s: %s", bad.name, bad.place, bad.reason)

    async def _open_profiles(
        self, settings: Settings, catalog: Catalog, undo: AsyncExitStack
    ) -> tuple[dict[str, Profile], tuple[str, ...]]:
        tools = [spec.name for spec in catalog.specs]
        configured = profiles(settings)
        names = {
            separator: build_wire_names(tools, separator)
            for separator in {profile.name_separator for profile in configured.values()}
        }
        opened: dict[str, Profile] = {}
        keys: list[str] = []
        for name, profile in configured.items():
            key = f"{name}:{profile_digest(profile)}"
            model = await self._models.acquire(key, partial(_open_model, name, profile))
            undo.push_async_callback(self._models.release, key)
            keys.append(key)
            separator = profile.name_separator
            clashes = tuple(tool for tool in tools if meets_tool_search(tool, separator))
            opened[name] = Profile(name, profile, model, names[separator], clashes)
        return opened, tuple(keys)


def _scan(snapshot: ConfigSnapshot, bundled: Path, idle: Sequence[str]) -> Scan:
    handlers = snapshot.settings.handlers
    try:
        return scan(handlers, bundled if handlers.bundled else None, idle)
    except ConfigError as error:
        raise ConfigError(snapshot.located(error.problems)) from None


async def _open_toolbox(snapshot: ConfigSnapshot, bundled: Path) -> Toolbox:
    return await asyncio.to_thread(open_toolbox, snapshot, bundled)


async def _open_handlers(found: Scan, previous: LocalSource | None) -> LocalSource:
    return LocalSource(found, previous)


async def _open_model(name: str, profile: ModelProfile) -> Model:
    model = await asyncio.to_thread(open_model, name, profile)  # https reads certificates: slow
    return LimitedModel(model, profile.max_concurrency) if profile.max_concurrency else model


def _weights(settings: Settings) -> FieldWeights:
    weights = settings.search
    return FieldWeights(
        name=weights.name,
        namespace=weights.namespace,
        aliases=weights.aliases,
        hints=weights.hints,
        description=weights.description,
        parameters=weights.parameters,
        parameter_descriptions=weights.parameter_descriptions,
        enums=weights.enums,
    )


def _schema_tokens(spec: ToolSpec) -> int:
    """Characters over four of what a request carries for a tool."""
    parameters = json.dumps(spec.parameters, ensure_ascii=False, separators=(",", ":"))
    return (len(spec.name) + len(spec.description) + len(parameters) + TOOL_FRAME_CHARS) // 4


def _digest(snapshot: ConfigSnapshot, catalog: Catalog) -> str:
    """Covers the configuration without its secrets and every tool (REL-1)."""
    hasher = hashlib.blake2b(snapshot.digest.encode(), digest_size=16)
    for spec in catalog.specs:
        hasher.update(f"\0{spec.name}\0{spec.digest}".encode())
    return hasher.hexdigest()
