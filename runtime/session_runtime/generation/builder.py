"""Prepares the next generation whole, or leaves nothing open (REL-1)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from session_runtime.audit.log import AuditLog
from session_runtime.config.attempt import Touched
from session_runtime.config.live import News, Purpose
from session_runtime.config.load import ConfigSnapshot
from session_runtime.config.models import ModelProfile
from session_runtime.config.settings import Settings, default_profile, profiles
from session_runtime.errors import ConfigError, Problem
from session_runtime.generation.agents import agent_faults, agent_warnings, agents_of
from session_runtime.generation.derive import Derived, derive
from session_runtime.generation.live import Generations, UsagePool
from session_runtime.generation.news import news
from session_runtime.generation.state import (
    NOT_IN_FORCE,
    Generation,
    Loader,
    PermittedLists,
    Profile,
)
from session_runtime.generation.warnings import taken_for_the_loader
from session_runtime.local.scan import Scan, scan, set_aside
from session_runtime.local.source import LocalSource
from session_runtime.local.tool import SOURCE_ID
from session_runtime.mcp.pool import NOTHING_LISTED, Held, Known, ServerPool
from session_runtime.mcp.servers import Servers, lists_of, open_servers
from session_runtime.mcp.session import OpenLink
from session_runtime.models.base import Model
from session_runtime.models.factory import in_dialect, open_model, profile_digest
from session_runtime.models.limited import LimitedModel
from session_runtime.registry.approvals import Approvals
from session_runtime.registry.catalog import Catalog, build_catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.invoke.results import Renderer
from session_runtime.registry.keyring import open_keyring
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.schema import ArgumentCheck, compile_schema
from session_runtime.threads import in_thread
from session_runtime.toolbox.box import Toolbox, open_toolbox, toolbox_key
from session_runtime.types import NOTHING

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedGeneration:
    """A whole next generation, not in force yet; ``found`` are the tools it was made of."""

    generation: Generation
    found: Scan
    news: News
    publish: Callable[["PreparedGeneration"], int]
    let_go: Callable[[Generation], Awaitable[None]]

    def commit(self) -> int:
        """Put it into force and give its number."""
        return self.publish(self)

    async def abort(self) -> None:
        """Release what preparation opened."""
        await self.let_go(self.generation)


class GenerationBuilder:
    """Prepares generations; what did not change is shared with the ones before (REL-1).

    What ``revocations`` take away is taken from all of them, at once (REL-9). ``open_link`` stands in for
    connections to servers. Calls are told to ``audit`` (RTE-13);
    ``approvals`` knows in which form tools of servers may be used (RTE-4). ``lists`` are those of servers
    that are not asked, as in a trial.
    """

    def __init__(
        self,
        registry: Registry,
        bundled: Path,
        revocations: Revocations | None = None,
        open_link: OpenLink | None = None,
        audit: AuditLog | None = None,
        approvals: Approvals | None = None,
        lists: Known = NOTHING_LISTED,
    ) -> None:
        self._registry = registry
        self._bundled = bundled
        self._revocations = revocations or Revocations()
        self._renderer = Renderer()
        self._sources: UsagePool[LocalSource] = UsagePool()
        self._models: UsagePool[Model] = UsagePool()
        self._toolboxes: UsagePool[Toolbox] = UsagePool()
        self._servers = ServerPool(open_link)
        self._audit = audit
        self._approvals = approvals or Approvals()
        self._lists = lists
        self._leaving: set[asyncio.Task[None]] = set()
        self._in_force: PreparedGeneration | None = None
        self._deriving = asyncio.Lock()
        self.generations = Generations(self.let_go)

    @property
    def lists_changed(self) -> asyncio.Event:
        """Set whenever a server lists other tools than before; who heeds that clears it."""
        return self._servers.changed

    async def prepare(
        self,
        snapshot: ConfigSnapshot,
        touched: Touched = None,
        purpose: Purpose = "reload",
        hurry: asyncio.Event | None = None,
    ) -> PreparedGeneration:
        """Open and check everything; raises ConfigError and leaves nothing open when it does.

        It waits for servers that are new, until ``hurry`` is set.
        """
        before = self._in_force
        async with AsyncExitStack() as undo:
            try:
                generation, found = await self._build(
                    snapshot, before, touched, purpose, hurry or asyncio.Event(), undo
                )
            except ConfigError as error:
                raise ConfigError(snapshot.located(error.problems)) from error
            undo.pop_all()
        told = news(generation, None if before is None else before.generation)
        return PreparedGeneration(generation, found, told, self._publish, self.let_go)

    async def let_go(self, generation: Generation) -> None:
        """Release all shared resources that a generation held, to the end even if that is cancelled.

        One that fails to close is logged.
        """
        leaving = asyncio.create_task(self._release(generation), name="let a generation go")
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        await asyncio.shield(leaving)

    async def _release(self, generation: Generation) -> None:
        releases = [
            *map(self._models.release, generation.held_models),
            *map(self._sources.release, generation.held_sources),
            self._toolboxes.release(generation.held_toolbox),
            self._servers.release(generation.servers.held),
        ]
        for outcome in await asyncio.gather(*releases, return_exceptions=True):
            if isinstance(outcome, BaseException):
                _log.error("a resource of a generation failed to close", exc_info=outcome)

    async def _build(
        self,
        snapshot: ConfigSnapshot,
        before: PreparedGeneration | None,
        touched: Touched,
        purpose: Purpose,
        hurry: asyncio.Event,
        undo: AsyncExitStack,
    ) -> tuple[Generation, Scan]:
        settings, running = snapshot.settings, before.generation if before else None
        held = await self._hold_servers(snapshot, running, purpose, undo)
        box_key = toolbox_key(snapshot, self._bundled)
        open_box = partial(_open_toolbox, snapshot, self._bundled)
        toolbox = await self._toolboxes.acquire(box_key, open_box)
        undo.push_async_callback(self._toolboxes.release, box_key)
        known = before.found if before else None
        found = await _found(snapshot, self._bundled, toolbox.idle, known, touched, purpose)
        usable = set_aside(found, agent_faults(found.tools, settings))
        source_key = f"handlers:{usable.digest}"
        open_handlers = partial(_open_handlers, usable, running.handlers if running else None)
        source = await self._sources.acquire(source_key, open_handlers)
        undo.push_async_callback(self._sources.release, source_key)
        await _settled(held, settings.mcp.wait_s, hurry)
        if settings.mcp.servers:
            await self._approvals.look()
        servers = await _servers(snapshot, held, self._lists, running, usable, self._approvals)
        catalog = await _catalog(usable, source, servers, running)
        agents = agents_of(usable.tools, catalog)
        derived = await self._derive(snapshot, catalog, before)
        opened, model_keys = await self._open_profiles(snapshot, derived, undo)
        generation = Generation(
            number=NOT_IN_FORCE,
            digests=derived.digests,
            snapshot=snapshot,
            catalog=catalog,
            policy=derived.policy,
            keys=open_keyring(settings.http.keys),
            index=derived.index,
            profiles=MappingProxyType(opened),
            default_profile=default_profile(settings),
            loader=Loader(derived.loader, compile_schema(derived.loader.parameters)),
            schema_tokens=derived.tokens,
            permitted=PermittedLists(catalog, derived.tokens),
            invoker=self._invoker(settings),
            handlers=source,
            servers=servers,
            toolbox=toolbox,
            agents=agents,
            held_models=model_keys,
            held_sources=(source_key,),
            held_toolbox=box_key,
            warnings=(
                *found.warnings,
                *servers.warnings,
                *agent_warnings(agents, catalog),
                *derived.warnings,
                *taken_for_the_loader(opened),
            ),
        )
        return generation, found

    def _invoker(self, settings: Settings) -> Invoker:
        return Invoker(
            self._registry,
            settings.handlers.timeout_s,
            settings.ask.max_result_chars,
            settings.access.destructive,
            renderer=self._renderer,
            revocations=self._revocations,
            audit=self._audit,
        )

    async def _hold_servers(
        self,
        snapshot: ConfigSnapshot,
        running: Generation | None,
        purpose: Purpose,
        undo: AsyncExitStack,
    ) -> Held:
        """Begin to connect to what is new among the servers; nobody waits for it yet."""
        known = running.servers.now() if running else {}
        held = await self._servers.hold(snapshot, known, trial=purpose == "trial")
        undo.push_async_callback(self._servers.release, held.keys)
        return held

    async def _derive(
        self, snapshot: ConfigSnapshot, catalog: Catalog, before: PreparedGeneration | None
    ) -> Derived:
        """One at a time: the words of all indexes are learned into the same lexicon."""
        async with self._deriving:
            known = before.generation if before else None
            work = partial(derive, snapshot, catalog, self._revocations, known)
            return await in_thread("prepare a generation", work)

    def _publish(self, prepared: PreparedGeneration) -> int:
        generation, told = prepared.generation, _told_of(self._in_force)
        number = self.generations.publish(generation)
        self._in_force = prepared
        self._registry.retain(generation.catalog)
        self._approvals.saw(generation.servers.seen())
        if (
            generation.servers.outdated
        ):  # a list came while it was prepared, when nobody looked at it
            self._servers.changed.set()
        _tell(generation, told)
        return number

    async def _open_profiles(
        self, snapshot: ConfigSnapshot, derived: Derived, undo: AsyncExitStack
    ) -> tuple[dict[str, Profile], tuple[str, ...]]:
        opened: dict[str, Profile] = {}
        keys: list[str] = []
        problems: list[Problem] = []
        for name, profile in profiles(snapshot.settings).items():
            key = f"{name}:{profile_digest(profile)}"
            try:
                model = await self._models.acquire(key, partial(_open_model, name, profile))
            except ConfigError as error:
                problems += error.problems
                continue
            undo.push_async_callback(self._models.release, key)
            keys.append(key)
            separator = profile.name_separator
            names, clashes = derived.names[separator], derived.clashes[separator]
            opened[name] = Profile(name, profile, model, names, clashes)
        if problems:
            raise ConfigError(problems)
        return opened, tuple(keys)


def _told_of(before: PreparedGeneration | None) -> frozenset[object]:
    """The warnings and left out tools that are in the log since the generation ``before``."""
    if before is None:
        return frozenset()
    generation = before.generation
    warnings = map(str, (*generation.snapshot.warnings, *generation.warnings))
    return frozenset((*warnings, *generation.catalog.quarantined))


def _tell(generation: Generation, told: frozenset[object]) -> None:
    """Log what an operator should know and does not know yet."""
    for warning in map(str, (*generation.snapshot.warnings, *generation.warnings)):
        if warning not in told:
            _log.warning("%s", warning)
    for bad in generation.catalog.quarantined:
        if bad not in told:
            fate = "keeps its last good form" if bad.stale else "is left out"
            _log.error("tool %s %s: %s: %s", bad.name, fate, bad.place, bad.reason)


async def _settled(held: Held, wait_s: float, hurry: asyncio.Event) -> None:
    """Wait for servers that are new, but not for long, and not while somebody waits for this (RTE-1)."""
    if not held.new:
        return
    waits = [
        asyncio.create_task(held.settled(wait_s), name="wait for servers"),
        asyncio.create_task(hurry.wait(), name="wait for who waits"),
    ]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _servers(
    snapshot: ConfigSnapshot,
    held: Held,
    lists: Known,
    running: Generation | None,
    found: Scan,
    approvals: Approvals,
) -> Servers:
    """Name the tools of all servers, as far as they are listed now (RTE-3)."""
    own = (*(tool.spec.name for tool in found.tools), *(bad.name for bad in found.quarantined))
    taken = dict.fromkeys(own, SOURCE_ID)
    before = running.servers if running else Servers()
    now = {**lists, **lists_of(held.sessions)}
    work = partial(open_servers, snapshot.settings.mcp, held, now, before, taken, approvals)
    return await in_thread("name the tools of servers", work)


async def _catalog(
    found: Scan, handlers: LocalSource, servers: Servers, running: Generation | None
) -> Catalog:
    """All tools; the checks of those that are the same as before exist already."""
    return await build_catalog(
        [handlers, *servers.sources],
        (*found.quarantined, *servers.refused),
        {**_checks_of_servers(running), **found.checks},
    )


def _checks_of_servers(running: Generation | None) -> Mapping[str, ArgumentCheck]:
    """By digest of the tool; those of handlers are known to their scan."""
    if running is None:
        return NOTHING
    catalog = running.catalog
    return {
        spec.digest: catalog.checks[spec.name] for spec in catalog.specs if spec.origin == "mcp"
    }


async def _found(
    snapshot: ConfigSnapshot,
    bundled: Path,
    idle: Sequence[str],
    before: Scan | None,
    touched: Touched,
    purpose: Purpose,
) -> Scan:
    """Look for tools, in a thread, as there may be thousands of folders; a refresh is not about them."""
    if before is not None and purpose == "refresh":
        return before
    handlers = snapshot.settings.handlers
    return await in_thread("find tools", partial(scan, handlers, bundled, idle, before, touched))


async def _open_toolbox(snapshot: ConfigSnapshot, bundled: Path) -> Toolbox:
    return await in_thread("open the toolbox", partial(open_toolbox, snapshot, bundled))


async def _open_handlers(found: Scan, previous: LocalSource | None) -> LocalSource:
    return LocalSource(found, previous)


async def _open_model(name: str, profile: ModelProfile) -> Model:
    adapter = await in_thread(
        f"open model {name}", partial(open_model, name, profile)
    )  # https reads certificates: slow
    model = in_dialect(adapter, profile)
    return LimitedModel(model, profile.max_concurrency) if profile.max_concurrency else model
