"""The daemon's life: lock, bind, open, serve until told to stop, drain, close (REL-8)."""

import asyncio
import fcntl
import gc
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from session_runtime.app.control import control_socket
from session_runtime.app.keep import HistoryKeeper
from session_runtime.app.last_good import last_good as read_last_good
from session_runtime.app.logs import report_crashes, set_up_logging
from session_runtime.app.mqtt import open_mqtt
from session_runtime.app.notify import ServiceManager
from session_runtime.app.open_files import allow_open_files, expected_load, most_connections
from session_runtime.app.reader import ConfigReader
from session_runtime.app.runtime import Runtime, open_runtime
from session_runtime.app.signals import Signals, listening
from session_runtime.config.durable import make_folder
from session_runtime.config.history import FOLDER, History, Kept
from session_runtime.config.receipt import Receipt
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError, StartError
from session_runtime.state_files import open_state_file, way_out
from session_runtime.transports.http.door import HttpLimits
from session_runtime.transports.http.guard import ControlGate
from session_runtime.transports.http.protocol import ConnectionBounds
from session_runtime.transports.http.server import GRACE_S, build_app, run_http
from session_runtime.transports.mcp.endpoint import McpEndpoint
from session_runtime.types import NOTHING
from session_runtime.wire.control import LOCK

EXIT_STOPPED = 0
EXIT_FORCED = 1
LAST_GRACE_S = 1.0
COLLECT_AFTER = 10_000
_LOADING = ("runtime.max_concurrent_asks", "runtime.max_waiting_asks_in_all", "http.mcp")
_log = logging.getLogger(__name__)


def serve(
    path: str | os.PathLike[str] | None = None,
    explicit: Mapping[str, object] = NOTHING,
    env: Mapping[str, str] | None = None,
    env_file: str | os.PathLike[str] | None = None,
    *,
    last_good: bool = False,
) -> int:
    """Run the daemon until a signal stops it; returns the exit code.

    What the arguments mean is told at ``Runtime.open``; with ``last_good``, the newest configuration of
    the history takes the place of a file that cannot be used. Raises ConfigError for a configuration that
    cannot be used and StartError if the port or the state directory is taken; nothing is left behind
    then.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it can reload: it would end the process
    read = ConfigReader(path, env, explicit, env_file)
    try:
        return _run(read, read())
    except ConfigError as error:
        if not last_good:
            raise
        fault = error
    return _run(read, read_last_good(read, fault), fault)


def _run(read: ConfigReader, snapshot: ConfigSnapshot, fault: ConfigError | None = None) -> int:
    """Serve ``snapshot``; ``fault`` is why the file says something else, which cannot be used."""
    settings = snapshot.settings
    set_up_logging(settings.log)
    report_crashes()
    if fault is not None:
        _log.error(
            "started with the last good configuration, as the file cannot be used: %s", fault
        )
    allow_open_files(*expected_load(settings))
    with locked(settings.runtime.state_dir), _no_collection():
        return asyncio.run(_serve(read, snapshot, broken=fault is not None))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the collector off what the start makes, all of which is kept; ``_serve_until`` lets it on."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _let_collection_on() -> None:
    """Keep the collector off what is there by now: what a generation holds lives long.

    It looks again after so many new objects as a turn of a model makes, not several times in one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)
    gc.enable()


async def _serve(read: ConfigReader, snapshot: ConfigSnapshot, *, broken: bool) -> int:
    settings, manager = snapshot.settings, ServiceManager(os.environ)
    with listening() as signals:
        with (
            bound(settings.http.host, settings.http.port) as port,
            control_socket(settings.runtime.state_dir) as control,
        ):
            async with AsyncExitStack() as stack:
                with suppress(_StoppedError):
                    async with _unless(signals.stop):
                        opening = _opened(read, snapshot, manager)
                        runtime = await stack.enter_async_context(opening)
                        if broken:  # its receipt tells what is wrong, and what is in force
                            await runtime.live.reload("start")
                    await _serve_until(runtime, (port, control), signals, manager)
        code = EXIT_FORCED if signals.force.is_set() else EXIT_STOPPED
        _log.info("stopped%s", " by force" if signals.force.is_set() else "")
        await _leave_if_stuck(code)
    return code


class _StoppedError(Exception):
    """A signal to stop came before there was anything to be stopped."""


@asynccontextmanager
async def _unless(stop: asyncio.Event) -> AsyncIterator[None]:
    """Give the block up once ``stop`` is set, and raise _StoppedError then."""
    try:
        async with asyncio.timeout(None) as limit:
            giving_up = asyncio.create_task(_give_up(limit, stop), name="stop while starting")
            try:
                yield
            finally:
                giving_up.cancel()
    except TimeoutError as error:
        if limit.expired():
            raise _StoppedError from error
        raise


async def _give_up(limit: asyncio.Timeout, stop: asyncio.Event) -> None:
    await stop.wait()
    limit.reschedule(asyncio.get_running_loop().time())


@asynccontextmanager
async def _opened(
    read: ConfigReader, snapshot: ConfigSnapshot, manager: ServiceManager
) -> AsyncIterator[Runtime]:
    """A runtime whose good configurations are kept, and whose receipts the service manager is told."""
    keeper = HistoryKeeper(History(snapshot.settings.runtime.state_dir / FOLDER))

    def acted(snapshot: ConfigSnapshot, receipt: Receipt) -> asyncio.Future[Kept | None] | None:
        _act_now(snapshot, receipt)
        return keeper.keep(snapshot, receipt)

    def told(receipt: Receipt) -> None:
        manager.status(receipt.summary())

    try:
        async with open_runtime(read, snapshot, watch=True, acted=acted, told=told) as runtime:
            async with runtime.code_look.running():
                yield runtime
    finally:
        await keeper.aclose()


def _act_now(snapshot: ConfigSnapshot, receipt: Receipt) -> None:
    """Do what an edit changes at once (CFG-6), as far as this process is concerned."""
    set_up_logging(snapshot.settings.log)
    if any(change.key in _LOADING for change in receipt.changes):
        allow_open_files(*expected_load(snapshot.settings))


async def _leave_if_stuck(code: int) -> None:
    """End the process although a handler ignores that it was cancelled: the loop would wait for it."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if not others:
        return
    _, stuck = await asyncio.wait(others, timeout=LAST_GRACE_S)
    if stuck:
        _log.error("left without waiting for: %s", ", ".join(sorted(t.get_name() for t in stuck)))
        logging.shutdown()
        os._exit(code)


async def _serve_until(
    runtime: Runtime,
    sockets: tuple[socket.socket, socket.socket],
    signals: Signals,
    manager: ServiceManager,
) -> None:
    """Serve the port and the control socket until a signal stops it, or either of them fails."""
    port, control = sockets
    stop_serving = asyncio.Event()
    limits = HttpLimits(runtime.generation.settings.http.max_body_bytes)

    def most() -> int:
        return most_connections(*expected_load(runtime.generation.settings))

    bounds = ConnectionBounds(most)
    mcp, mqtt = McpEndpoint(runtime.callers), open_mqtt(runtime)
    doors = {
        "http": (build_app(runtime, limits, stop_serving, mcp=mcp), port),
        "control": (build_app(runtime, limits, stop_serving, ControlGate()), control),
    }
    async with asyncio.TaskGroup() as group:
        for name, (app, sock) in doors.items():
            serving = group.create_task(run_http(app, sock, stop_serving, bounds=bounds), name=name)
            serving.add_done_callback(lambda _: signals.stop.set())
        group.create_task(mcp.serve(stop_serving), name="mcp")
        group.create_task(mqtt.serve(stop_serving), name="mqtt")
        living = group.create_task(_give_signs_of_life(runtime, manager), name="signs of life")
        reloading = group.create_task(_reload_when_told(runtime, signals, manager), name="hangup")
        manager.ready(_announced(runtime, port))
        _let_collection_on()
        await signals.stop.wait()
        reloading.cancel()
        mqtt.drain()
        await _drain(runtime, signals.force, manager)
        stop_serving.set()
        living.cancel()


async def _reload_when_told(runtime: Runtime, signals: Signals, manager: ServiceManager) -> None:
    """Reload for each signal that asks for it; several during a reload lead to one more."""
    while True:
        await signals.reload.wait()
        signals.reload.clear()
        manager.reloading()
        try:
            told = (await runtime.live.reload("signal")).summary()
        except Exception:  # noqa: BLE001 - a fault of ours must not end what serves
            _log.exception("reloading failed")
            told = "reloading failed; the log has the reason"
        manager.ready(told)


async def _give_signs_of_life(runtime: Runtime, manager: ServiceManager) -> None:
    """Tell a watchdog that this loop turns and edits are noticed, in half the time it waits."""
    if manager.watchdog_s is None:
        return
    while True:
        if runtime.watched:
            manager.alive()
        await asyncio.sleep(manager.watchdog_s / 2)


async def _drain(runtime: Runtime, force: asyncio.Event, manager: ServiceManager) -> None:
    """Let running asks finish, unless a second signal cuts that short."""
    timeout_s = runtime.generation.settings.runtime.drain_timeout_s
    told = f"stopping: new asks are refused, {runtime.asks} still run"
    _log.info("%s", told)
    manager.stopping(timeout_s + 2 * GRACE_S + LAST_GRACE_S, told)
    draining = asyncio.create_task(runtime.drain(timeout_s), name="drain")
    forcing = asyncio.create_task(force.wait(), name="force signal")
    await asyncio.wait((draining, forcing), return_when=asyncio.FIRST_COMPLETED)
    draining.cancel()
    forcing.cancel()
    await asyncio.wait((draining, forcing))


def _announced(runtime: Runtime, port: socket.socket) -> str:
    """Log that it serves and where; gives the line."""
    host, number = port.getsockname()[:2]
    generation = runtime.generation
    told = (
        f"serving on http://{f'[{host}]' if ':' in host else host}:{number} with"
        f" {len(generation.catalog.specs)} tools, model {generation.default_profile},"
        f" generation {generation.number}"
    )
    _log.info("%s", told)
    if not runtime.keys():
        _log.info("no keys are set: only this machine may call, and every caller is admin")
    return told


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket; raises StartError naming the address and the way out."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(1024)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise StartError(
            f"cannot listen on {host}:{port}: {error.strerror}; stop what uses the port, or set "
            "http.port (--port) to another one",
            code="start.port",
        ) from error
    try:
        yield sock
    finally:
        sock.close()


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Own the state directory; raises StartError if another daemon does."""
    try:
        make_folder(state_dir)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        handle = os.fdopen(open_state_file(state_dir / LOCK, flags, state_dir), "a")
    except OSError as error:
        mend = way_out(error, state_dir / LOCK, "mend that")
        raise StartError(
            f"cannot use runtime.state_dir {state_dir}: {error.strerror}; {mend}, or set"
            " runtime.state_dir to another folder",
            code="start.state_dir",
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StartError(
                f"another daemon uses runtime.state_dir {state_dir}: stop it or set another folder",
                code="start.state_dir_locked",
            ) from error
        yield
