"""All that is looked at, in the order in which an operator would mend it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from session_runtime.app.doctor.finding import Finding
from session_runtime.app.doctor.machine import machine
from session_runtime.app.doctor.services import connected, reachable
from session_runtime.app.reader import ConfigReader
from session_runtime.app.runtime import bundled_handlers, open_runtime
from session_runtime.client.control import ControlClient
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError, SessionRuntimeError
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.local.code import code_faults
from session_runtime.registry.registry import Registry

NOT_RUNNING: Final = "daemon.not_running"


async def examine(reader: ConfigReader, *, connect: bool) -> AsyncIterator[Finding]:
    """Look at everything; servers are connected to and models asked only if ``connect``.

    Nothing is changed but what a start writes into the state directory, with ``connect`` alone. Whatever is
    wrong is a finding; raises nothing that a machine could cause.
    """
    status, told = _daemon(reader)
    yield told
    for finding in _in_force(status or {}):
        yield finding
    running = status is not None or told.verdict != "ok"
    try:
        snapshot = reader(absent="warning" if running else "fault here")
    except ConfigError as error:
        for problem in error.problems:
            yield Finding("configuration", "fail", str(problem), "mend it as it says")
        return
    yield Finding("configuration", "ok", f"{snapshot.path or 'defaults and variables alone'}")
    for problem in snapshot.warnings:
        yield Finding("configuration", "warn", str(problem), "see session-runtime config explain")
    async for finding in _of_settings(reader, snapshot, running=running, connect=connect):
        yield finding


async def _of_settings(
    reader: ConfigReader, snapshot: ConfigSnapshot, *, running: bool, connect: bool
) -> AsyncIterator[Finding]:
    settings = snapshot.settings
    yield _keys(len(settings.http.keys))
    async for finding in _tools(snapshot):
        yield finding
    try:
        for finding in machine(settings, reader.path, running=running):
            yield finding
    except OSError as error:
        yield Finding("machine", "fail", f"it cannot be looked at: {error}", "see the message")
    unreached = set()
    async for finding in reachable(settings):
        if finding.verdict == "fail":
            unreached.add(finding.check)
        yield finding
    if not connect:
        if settings.mcp.servers:
            names = ", ".join(settings.mcp.servers)
            yield Finding("servers", "ok", f"not connected to: {names}; --connect does")
        return
    try:
        async with open_runtime(reader, snapshot, watch=False) as runtime:
            async for finding in connected(runtime, unreached):
                yield finding
    except (SessionRuntimeError, OSError) as error:
        yield Finding("start", "fail", f"it cannot start: {error}", "mend it as it says")


def _daemon(reader: ConfigReader) -> tuple[dict[str, Any] | None, Finding]:
    """The status of the daemon that runs, if one does; whether that is as it should be."""
    try:
        folder = reader.state_dir()
        status = ControlClient(folder, timeout_s=5.0).request("GET", "/v1/status")
    except ConfigError as error:
        return None, Finding("daemon", "ok", f"which one is meant is not known: {error}")
    except SessionRuntimeError as error:
        if error.code == NOT_RUNNING:
            return None, Finding("daemon", "ok", f"none runs with {folder}")
        return None, Finding("daemon", "fail", str(error), "look at its log, or restart it")
    told = f"one runs with {folder}: {status.get('state')}, {status.get('asks')} asks are running"
    return status, Finding("daemon", "ok", told)


def _in_force(status: dict[str, Any]) -> Iterator[Finding]:
    """What a daemon that runs says of its configuration."""
    config = status.get("config", {})
    if config.get("in_force") is False:
        yield Finding(
            "daemon",
            "fail",
            "it runs on an older configuration, as the file cannot be used",
            "session-runtime config check says why",
        )
    if waiting := config.get("restart_needed"):
        told = f"edited keys wait for a restart: {', '.join(waiting)}"
        yield Finding("daemon", "warn", told, "restart it")


def _keys(count: int) -> Finding:
    if count:
        return Finding("keys", "ok", f"{count} keys let callers in")
    return Finding("keys", "ok", "none: this machine alone may call, and every caller is admin")


async def _tools(snapshot: ConfigSnapshot) -> AsyncIterator[Finding]:
    """Prepare everything as a start would, and let it go: which tools there are, and which are broken."""
    builder = GenerationBuilder(Registry(), bundled_handlers())
    try:
        prepared = await builder.prepare(snapshot, purpose="trial")
    except ConfigError as error:
        for problem in error.problems:
            yield Finding("tools", "fail", str(problem), "mend it as it says")
        return
    try:
        for finding in _of_generation(prepared.generation):
            yield finding
    finally:
        await prepared.abort()


def _of_generation(generation: Generation) -> Iterator[Finding]:
    yield Finding("tools", "ok", f"{len(generation.catalog.specs)} without those of servers")
    for bad in generation.catalog.quarantined:
        told = f"{bad.name} cannot be used: {bad.reason}"
        yield Finding("tools", "warn", told, f"mend {bad.place}")
    for name, handler in generation.handlers.handlers.items():
        if handler.tool.form is not None:
            continue  # a sub-agent is text
        for fault in code_faults(handler.tool.code):
            told = f"{name} cannot be imported: {fault}"
            yield Finding("tools", "fail", told, f"mend {handler.tool.spec.native_name}")
    for warning in generation.warnings:
        yield Finding("configuration", "warn", str(warning), "see the message")
