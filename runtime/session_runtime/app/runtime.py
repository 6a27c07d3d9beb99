"""A runtime in this process: what a backend opens to ask, and what the daemon serves."""

import asyncio
import importlib
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from session_runtime import __version__
from session_runtime.app.approvals import ToolApproval
from session_runtime.app.brake import ToolBrake
from session_runtime.app.code_look import CodeLook
from session_runtime.app.deferred import DeferredPreview
from session_runtime.app.editor import ConfigEditor
from session_runtime.app.insight import Insight
from session_runtime.app.metrics import metrics, of_waiting
from session_runtime.app.presence import presence_of
from session_runtime.app.reader import ConfigReader
from session_runtime.app.recent import RecentAsks
from session_runtime.app.recorded import of_audit
from session_runtime.app.records import AskRecords, open_records
from session_runtime.app.servers import ListWatch, ServerControl
from session_runtime.app.shared import SharedState
from session_runtime.app.shown import config_status_to_json, deprecation_to_json, tool_to_json
from session_runtime.ask.emitter import Emit, discard
from session_runtime.ask.kept_asks import KeptAsks
from session_runtime.ask.service import ALL, AskService
from session_runtime.audit.log import AuditLog, open_audit
from session_runtime.callbacks.box import Callbacks
from session_runtime.callbacks.sending import Post
from session_runtime.config.history import FOLDER as HISTORY
from session_runtime.config.history import History
from session_runtime.config.live import Acted, LiveConfig
from session_runtime.config.receipt import Receipt
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.config.watch import Watcher
from session_runtime.errors import ConfigError, Problem
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.registry.approvals import open_approvals
from session_runtime.registry.keyring import Keyring
from session_runtime.registry.policy import acting_for
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import open_revocations
from session_runtime.threads import in_thread
from session_runtime.trace.metrics import exposition
from session_runtime.transports.mcp.callers import Callers
from session_runtime.transports.mqtt.state import MqttState
from session_runtime.types import LOCAL, NOTHING, AskRequest, AskResult, Identity, Principal


class Runtime:
    """Answers asks from one configuration (INT-6); made by ``Runtime.open``."""

    def __init__(
        self,
        builder: GenerationBuilder,
        registry: Registry,
        service: AskService,
        records: AskRecords,
        live: LiveConfig,
        watcher: Watcher,
        brake: ToolBrake,
        editor: ConfigEditor,
        servers: ServerControl,
        callers: Callers,
        audit: AuditLog | None,
        approval: ToolApproval,
        kept: KeptAsks,
        callbacks: Callbacks,
        insight: Insight,
        preview: DeferredPreview,
    ) -> None:
        self._builder = builder
        self._registry = registry
        self._service = service
        self._records = records
        self._audit = audit
        self.approval = approval
        self._watcher = watcher
        self.live = live
        self.brake = brake
        self.editor = editor
        self.servers = servers
        self.callers = callers
        self.kept = kept
        self.callbacks = callbacks
        self.insight = insight
        self.preview = preview
        self.code_look = CodeLook(lambda: self.generation)
        self.mqtt = MqttState()
        self._since = time.time()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        explicit: Mapping[str, object] = NOTHING,
        env_file: str | os.PathLike[str] | None = None,
        resources: Mapping[str, Any] = NOTHING,
        watch: bool = True,
    ) -> AsyncIterator["Runtime"]:
        """Open a runtime; raises ConfigError with every problem found.

        ``path`` names the configuration file; without it SESSION_RUNTIME_CONFIG does, else
        ``config.toml`` if there is one, else defaults hold. ``env`` stands in for the process's
        environment, ``explicit`` maps dotted keys to values that win over every source, ``env_file``
        names a ``.env`` file to read, as SESSION_RUNTIME_ENV_FILE does, ``resources`` are handed to
        handlers. Edits act on new asks, unless ``watch`` is off. On leaving, running asks are cancelled
        and everything is closed.
        """
        read = ConfigReader(path, env, explicit, env_file)
        snapshot = await in_thread("read configuration", read)
        async with open_runtime(read, snapshot, resources, watch=watch) as runtime:
            yield runtime

    @property
    def generation(self) -> Generation:
        """The generation in force."""
        return self._builder.generations.current

    @property
    def asks(self) -> int:
        """How many asks are running."""
        return self._service.running

    @property
    def running(self) -> AskService:
        """The asks that run, to look at and to cancel (REL-9)."""
        return self._service

    async def ask(
        self,
        request: AskRequest,
        emit: Emit = discard,
        ask_id: str | None = None,
        chars: int | None = None,
    ) -> AskResult:
        """Answer one request; see ``AskService.ask`` (ASK-1)."""
        return await self._service.ask(request, emit, ask_id, chars)

    def tools(
        self,
        identity: Identity | None = None,
        principal: Principal = LOCAL,
        *,
        after: str = "",
        limit: int | None = None,
        schemas: bool = True,
    ) -> list[dict[str, Any]]:
        """What ``principal`` may use for ``identity``, or every tool (None) (REG-5, NET-2).

        By name, at most ``limit`` of those beyond ``after``; their parameters only with ``schemas``. Where a
        tool stands, if it is revoked and how its calls went is told to admins only. Raises RequestError if
        the principal may not act for the identity.
        """
        generation = self.generation
        specs = generation.catalog.specs
        if identity is not None:
            acting = acting_for(principal, identity)
            specs = generation.permitted.get(generation.policy.permitted(principal, acting)).tools
        page = tuple(itertools.islice((spec for spec in specs if spec.name > after), limit))
        usable = {spec.name for spec in specs}
        shown = [
            {**tool_to_json(spec, schemas=schemas), **deprecation_to_json(spec, usable)}
            for spec in page
        ]
        if not principal.admin:
            return shown
        revoked, states = generation.policy.revoked.names, generation.servers.states()
        return [
            {
                **told,
                "revoked": spec.name in revoked,
                "place": spec.place,
                "state": states.get(spec.source_id, "ready"),
                "statistics": self._registry.statistics(spec).to_json(),
            }
            for told, spec in zip(shown, page, strict=True)
        ]

    def models(self) -> tuple[str, ...]:
        """The model profiles by name, the default one first."""
        generation = self.generation
        others = sorted(name for name in generation.profiles if name != generation.default_profile)
        return generation.default_profile, *others

    def keys(self) -> Keyring:
        """The keys that let callers in; without one, this machine alone may call (NET-2)."""
        return self.generation.keys

    def status(self) -> dict[str, Any]:
        """The state of the runtime, for operators."""
        generation = self.generation
        catalog = generation.catalog
        warned = (*self.live.snapshot.warnings, *generation.warnings, *self.code_look.warnings)
        return {
            "name": generation.settings.runtime.name,
            "version": __version__,
            "state": "draining" if self._service.draining else "ready",
            "since": self._since,
            "asks": self.asks,
            "presence": self.presence(),
            "generations": self._builder.generations.report(),
            "config": config_status_to_json(self.live),
            "watcher": self._watcher.status(),
            "revocations": [revocation.to_json() for revocation in self.brake.list()],
            "trace_dropped": self._records.dropped,
            "approvals": self.approval.status(),
            "audit": None if self._audit is None else self._audit.status(),
            "mqtt": self.mqtt.status(),
            "callbacks": self.callbacks.status(),
            "tools": len(catalog.specs),
            "servers": [
                *(catalog.status(each) for each in catalog.servers() if not _is_remote(each)),
                *generation.servers.status(),
            ],
            "routes": self.insight.routes(),
            "quarantined": [
                {"name": bad.name, "place": bad.place, "reason": bad.reason, "stale": bad.stale}
                for bad in catalog.quarantined
            ],
            "warnings": list(map(str, warned)),
        }

    def presence(self) -> dict[str, Any]:
        """What a fleet is told of this replica (NET-6)."""
        return presence_of(self.generation, self.live, self.asks, self._service.waiting)

    def metrics(self) -> str:
        """Numbers for a monitoring system, in the text format of Prometheus (REL-3)."""
        ready, _ = self.ready()
        families = metrics(
            self._builder.generations, self.live, self.asks, ready, self._registry.lookups.counts()
        )
        recorded, approvals = of_audit(self._audit), self.approval.metrics()
        ended = self._records.metrics()
        doors = (
            of_waiting(self._service),
            self.callers.metrics(),
            self.mqtt.metrics(),
            self.callbacks.metrics(),
        )
        return exposition(itertools.chain(families, ended, recorded, approvals, *doors))

    @property
    def watched(self) -> bool:
        """Whether edits are noticed, or nobody asked for that; false should never be seen."""
        return self._watcher.alive

    def ready(self) -> tuple[bool, str]:
        """Whether new asks are taken, and why not.

        Not before every door was open once: a broker that goes away later makes nothing unready.
        """
        if self._service.draining:
            return False, "draining"
        if self.mqtt.starting:
            return False, "there was no connection to the MQTT broker yet: the status says why"
        return True, "ready"

    def missing(self) -> tuple[str, ...]:
        """The servers that cannot be called just now; asks are taken without their tools (RTE-1)."""
        return self.generation.servers.missing

    async def drain(self, timeout_s: float) -> None:
        """Refuse new asks, let running ones finish, cancel what is left after ``timeout_s`` (REL-8).

        The same goes for calls of MCP clients. Within that time results are sent to callbacks too.
        """
        self._since = time.time()
        self._service.drain()
        self.callers.drain()
        try:
            async with asyncio.timeout(timeout_s):
                await self._service.idle()
                await self.callers.idle()
                await self.callbacks.idle()
        except TimeoutError:
            self._service.cancel(ALL, "the daemon is stopping")
            self.callers.cancel()
            await self._service.idle()
            await self.callers.idle()


def _is_remote(source_id: str) -> bool:
    """Whether a source is made of servers, which are told of one by one."""
    return source_id.startswith("mcp:")


@asynccontextmanager
async def open_runtime(
    read: ConfigReader,
    snapshot: ConfigSnapshot,
    resources: Mapping[str, Any] = NOTHING,
    *,
    watch: bool,
    acted: Acted = lambda *_: None,
    told: Callable[[Receipt], None] = lambda _: None,
) -> AsyncIterator[Runtime]:
    """Open all parts for ``snapshot``, which ``read`` gave, and close them in reverse order.

    ``acted`` and ``told`` are told at ``LiveConfig``.
    """
    registry = Registry()
    state_dir = snapshot.settings.runtime.state_dir
    revocations = await in_thread("read revocations", partial(open_revocations, state_dir))
    find_audit = partial(open_audit, snapshot.settings.audit, state_dir)
    audit = await in_thread("find the audit log", find_audit)
    approvals = await in_thread("read approvals", partial(open_approvals, state_dir))
    builder = GenerationBuilder(
        registry, bundled_handlers(), revocations, audit=audit, approvals=approvals
    )
    brake = ToolBrake(revocations, builder.generations)
    live = LiveConfig(read, builder, acted, told)
    await live.start(snapshot)
    watcher = _watcher(live, read, watch)
    current = partial(_in_force, builder)
    shared = SharedState(revocations, approvals, current, live)
    lists = ListWatch(builder.lists_changed, current, live)
    approval = ToolApproval(approvals, current, live)
    editor = ConfigEditor(read, live, History(state_dir / HISTORY))
    try:
        recent = RecentAsks()
        trace = snapshot.settings.trace
        async with open_records(trace, lambda: current().settings, recent, state_dir) as records:
            service = AskService(builder.generations, records.keep, resources)
            kept = KeptAsks(service.ask)
            callbacks = Callbacks(lambda: current().settings.callbacks, _open_post)
            callers = Callers(builder.generations, resources, service.count_call)
            try:
                async with watcher.running(), lists.running(), shared.running():
                    yield Runtime(
                        *(builder, registry, service, records, live, watcher, brake, editor),
                        *(ServerControl(current, live), callers, audit, approval, kept),
                        callbacks,
                        Insight(current, registry, recent, records.totals, lambda: service.refused),
                        DeferredPreview(live, editor, builder.generations),
                    )
            finally:
                await _stop(service, callers, kept)
                await callbacks.aclose()
                if audit is not None:
                    await audit.aclose()
    finally:
        await live.aclose()
        await approvals.aclose()
        await builder.generations.aclose()


async def _stop(service: AskService, callers: Callers, kept: KeptAsks) -> None:
    """End all asks and calls of MCP clients, and forget what is kept of them."""
    service.drain()
    service.cancel(ALL, "the runtime is closing")
    callers.drain()
    callers.cancel()
    await service.idle()
    await callers.idle()
    await kept.aclose()


def _open_post() -> Post:
    """A way to send to callbacks; its HTTP client takes long to import, and most daemons need none."""
    post: Post = importlib.import_module("session_runtime.callbacks.post").open_post()
    return post


def _in_force(builder: GenerationBuilder) -> Generation:
    return builder.generations.current


def _watcher(live: LiveConfig, read: ConfigReader, watch: bool) -> Watcher:
    settings = live.snapshot.settings.runtime
    return Watcher(live, read.path, settings.watch if watch else "off", settings.recheck_s)


def bundled_handlers() -> Path:
    """The folder of the tools that ship: inside the wheel, or ``handlers/`` of a source tree."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "bundled", package.parent.parent / "handlers"):
        if (folder / "get_current_time" / "config.json").is_file():
            return folder
    raise ConfigError(
        [Problem(f"the bundled tools are missing from {package}: install session-runtime again")]
    )
