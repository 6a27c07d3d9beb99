"""A runtime in this process: what a backend opens to ask, and what the daemon serves."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from session_runtime import __version__
from session_runtime.ask.emitter import Emit, discard
from session_runtime.ask.service import AskService
from session_runtime.config.live import put_in_force
from session_runtime.config.load import load
from session_runtime.config.runtime import TraceSettings
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError, Problem
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.registry.registry import Registry
from session_runtime.trace.record import AskRecord
from session_runtime.trace.sink import TraceSink
from session_runtime.types import NOTHING, AskRequest, AskResult, Identity

DEFAULT_CONFIG = Path("config.toml")
CONFIG_VARIABLE = "SESSION_RUNTIME_CONFIG"
ENV_FILE_VARIABLE = "SESSION_RUNTIME_ENV_FILE"


class Runtime:
    """Answers asks from one configuration (INT-6); made by ``Runtime.open``."""

    def __init__(
        self,
        builder: GenerationBuilder,
        registry: Registry,
        service: AskService,
        sink: TraceSink | None,
    ) -> None:
        self._builder = builder
        self._registry = registry
        self._service = service
        self._sink = sink

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
    ) -> AsyncIterator["Runtime"]:
        """Open a runtime; raises ConfigError with every problem found.

        ``path`` names the configuration file; without it SESSION_RUNTIME_CONFIG does, else
        ``config.toml`` if there is one, else defaults hold. ``env`` stands in for the process's
        environment, ``explicit`` maps dotted keys to values that win over every source, ``env_file``
        names a ``.env`` file to read, as SESSION_RUNTIME_ENV_FILE does, ``resources`` are handed to
        handlers. On leaving, running asks are cancelled and everything is closed.
        """
        snapshot = await asyncio.to_thread(read_config, path, env, explicit, env_file)
        async with open_runtime(snapshot, resources) as runtime:
            yield runtime

    @property
    def generation(self) -> Generation:
        """The generation in force."""
        return self._builder.generations.current

    @property
    def asks(self) -> int:
        """How many asks are running."""
        return self._service.running

    async def ask(self, request: AskRequest, emit: Emit = discard) -> AskResult:
        """Answer one request; see ``AskService.ask`` (ASK-1)."""
        return await self._service.ask(request, emit)

    def tools(self, identity: Identity | None = None) -> list[dict[str, Any]]:
        """What ``identity`` may use, or every tool (None), with statistics (REG-5)."""
        generation = self.generation
        specs = generation.catalog.specs
        if identity is not None:
            specs = generation.permitted.get(generation.policy.mask(identity)).tools
        return [
            {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
                "source": spec.source_id,
                "origin": spec.origin,
                "place": spec.place,
                "aliases": list(spec.aliases),
                "requires": sorted(spec.requires),
                "feature": spec.feature,
                "destructive": spec.annotations.destructive,
                "read_only": spec.annotations.read_only,
                "idempotent": spec.annotations.idempotent,
                "deprecated": spec.deprecated is not None,
                "statistics": self._registry.statistics(spec).to_json(),
            }
            for spec in specs
        ]

    def status(self) -> dict[str, Any]:
        """The state of the runtime, for operators."""
        generation = self.generation
        catalog = generation.catalog
        return {
            "name": generation.settings.runtime.name,
            "version": __version__,
            "state": "draining" if self._service.draining else "ready",
            "asks": self.asks,
            "generations": self._builder.generations.report(),
            "trace_dropped": self._sink.dropped if self._sink is not None else 0,
            "tools": len(catalog.specs),
            "servers": [catalog.status(server) for server in catalog.servers()],
            "quarantined": [
                {"name": bad.name, "place": bad.place, "reason": bad.reason}
                for bad in catalog.quarantined
            ],
            "warnings": [str(w) for w in (*generation.snapshot.warnings, *generation.warnings)],
        }

    def ready(self) -> tuple[bool, str]:
        """Whether new asks are taken, and why not."""
        return (False, "draining") if self._service.draining else (True, "ready")

    async def drain(self, timeout_s: float) -> None:
        """Refuse new asks, let running ones finish, cancel what is left after ``timeout_s`` (REL-8)."""
        self._service.drain()
        try:
            async with asyncio.timeout(timeout_s):
                await self._service.idle()
        except TimeoutError:
            self._service.cancel_all("the daemon is stopping")
            await self._service.idle()


def config_path(path: str | os.PathLike[str] | None, env: Mapping[str, str]) -> tuple[Path, bool]:
    """Which file to read, and whether somebody named it: then it has to exist (CFG-6)."""
    named = path or env.get(CONFIG_VARIABLE)
    return (Path(named), True) if named else (DEFAULT_CONFIG, False)


def read_config(
    path: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None = None,
    explicit: Mapping[str, object] = NOTHING,
    env_file: str | os.PathLike[str] | None = None,
) -> ConfigSnapshot:
    """Read and validate a configuration without opening anything; raises ConfigError."""
    variables = os.environ if env is None else env
    file, named = config_path(path, variables)
    dotenv = env_file or variables.get(ENV_FILE_VARIABLE)
    return load(
        file,
        named=named,
        env=variables,
        explicit=explicit,
        dotenv=Path(dotenv) if dotenv else None,
    )


@asynccontextmanager
async def open_runtime(
    snapshot: ConfigSnapshot, resources: Mapping[str, Any] = NOTHING
) -> AsyncIterator[Runtime]:
    """Open all parts for ``snapshot`` and close them in reverse order."""
    registry = Registry()
    builder = GenerationBuilder(registry, bundled_handlers())
    await put_in_force(snapshot, builder)
    async with _trace(snapshot.settings.trace) as sink:
        keep_record = sink.write if sink is not None else _keep_nothing
        service = AskService(builder.generations, keep_record, resources)
        try:
            yield Runtime(builder, registry, service, sink)
        finally:
            service.drain()
            service.cancel_all("the runtime is closing")
            await service.idle()
            await builder.generations.aclose()


@asynccontextmanager
async def _trace(settings: TraceSettings) -> AsyncIterator[TraceSink | None]:
    if not settings.enabled:
        yield None
        return
    sink = TraceSink(settings.path, settings.max_bytes, settings.keep)
    try:
        yield sink
    finally:
        await sink.aclose()


def _keep_nothing(record: AskRecord) -> None:
    del record


def bundled_handlers() -> Path:
    """The folder of the tools that ship: inside the wheel, or ``handlers/`` of a source tree."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "bundled", package.parent.parent / "handlers"):
        if (folder / "get_current_time" / "config.json").is_file():
            return folder
    raise ConfigError(
        [Problem(f"the bundled tools are missing from {package}: install session-runtime again")]
    )
