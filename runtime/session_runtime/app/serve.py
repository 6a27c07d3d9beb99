"""The daemon's life: lock, bind, open, serve until told to stop, drain, close (REL-8)."""

import asyncio
import fcntl
import gc
import logging
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from session_runtime.app.logs import set_up_logging
from session_runtime.app.runtime import Runtime, open_runtime, read_config
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import StartError
from session_runtime.transports.http.door import HttpLimits
from session_runtime.transports.http.server import build_app, run_http
from session_runtime.types import NOTHING

EXIT_STOPPED = 0
EXIT_FORCED = 1
LAST_GRACE_S = 1.0
_log = logging.getLogger(__name__)


def serve(
    path: str | os.PathLike[str] | None = None,
    explicit: Mapping[str, object] = NOTHING,
    env: Mapping[str, str] | None = None,
    env_file: str | os.PathLike[str] | None = None,
) -> int:
    """Run the daemon until a signal stops it; returns the exit code.

    What the arguments mean is told at ``Runtime.open``. Raises ConfigError for a configuration that
    cannot be used and StartError if the port or the state directory is taken; nothing is left behind
    then.
    """
    snapshot = read_config(path, env, explicit, env_file)
    set_up_logging(snapshot.settings.log)
    with locked(snapshot.settings.runtime.state_dir):
        return asyncio.run(_serve(snapshot))


async def _serve(snapshot: ConfigSnapshot) -> int:
    http = snapshot.settings.http
    with told_to_stop() as (stop, force):
        with bound(http.host, http.port) as sock:
            async with open_runtime(snapshot) as runtime:
                gc.collect()
                gc.freeze()  # what a generation holds lives long: keep the collector off it
                await _serve_until(runtime, sock, stop, force)
        code = EXIT_FORCED if force.is_set() else EXIT_STOPPED
        _log.info("stopped%s", " by force" if force.is_set() else "")
        await _leave_if_stuck(code)
    return code


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
    runtime: Runtime, sock: socket.socket, stop: asyncio.Event, force: asyncio.Event
) -> None:
    settings = runtime.generation.settings
    stop_serving = asyncio.Event()
    app = build_app(runtime, HttpLimits(settings.http.max_body_bytes), stop_serving)
    serving = asyncio.create_task(run_http(app, sock, stop_serving), name="http")
    _announce(runtime, sock)
    await _until(stop, serving)
    if stop.is_set():
        await _drain(runtime, force)
    stop_serving.set()
    await serving


async def _until(event: asyncio.Event, serving: asyncio.Task[None]) -> None:
    """Wait for the event, or for the server to end by a fault of its own."""
    waiting = asyncio.create_task(event.wait(), name="stop signal")
    await asyncio.wait((waiting, serving), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


async def _drain(runtime: Runtime, force: asyncio.Event) -> None:
    """Let running asks finish, unless a second signal cuts that short."""
    _log.info("stopping: new asks are refused, %d still run", runtime.asks)
    timeout_s = runtime.generation.settings.runtime.drain_timeout_s
    draining = asyncio.create_task(runtime.drain(timeout_s), name="drain")
    forcing = asyncio.create_task(force.wait(), name="force signal")
    await asyncio.wait((draining, forcing), return_when=asyncio.FIRST_COMPLETED)
    draining.cancel()
    forcing.cancel()
    await asyncio.wait((draining, forcing))


def _announce(runtime: Runtime, sock: socket.socket) -> None:
    host, port = sock.getsockname()[:2]
    generation = runtime.generation
    _log.info(
        "serving on http://%s:%d with %d tools, model %s, generation %d",
        f"[{host}]" if ":" in host else host,
        port,
        len(generation.catalog.specs),
        generation.default_profile,
        generation.number,
    )
    _log.info("no keys are set: only this machine may call, and every caller is admin")


@contextmanager
def told_to_stop() -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Events for the first and the second SIGTERM or SIGINT."""
    stop, force = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        (force if stop.is_set() else stop).set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield stop, force
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


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
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = (state_dir / "lock").open("a")
    except OSError as error:
        raise StartError(
            f"cannot use runtime.state_dir {state_dir}: {error.strerror}", code="start.state_dir"
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
