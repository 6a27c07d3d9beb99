"""A daemon in a thread, reached through the control socket of its state directory."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from session_runtime import Runtime
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import ControlGate
from session_runtime.transports.http.server import build_app, run_http
from session_runtime.types import NOTHING
from session_runtime.wire.control import SOCKET
from tests.support import write_config

T = TypeVar("T")
WAIT_S = 60.0  # a test that waits for what never comes fails instead of hanging


@dataclass(frozen=True, slots=True)
class Daemon:
    """Its runtime, and how to do something in its event loop."""

    runtime: Runtime
    loop: asyncio.AbstractEventLoop

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_S)


@contextmanager
def control_daemon(folder: Path, text: str, env: Mapping[str, str] = NOTHING) -> Iterator[Daemon]:
    """Serve a runtime with this configuration, written to ``folder/config.toml``, and environment."""
    config = write_config(folder, text)
    started: list[Daemon] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        try:
            async with Runtime.open(config, env=env) as runtime:
                state_dir = runtime.generation.settings.runtime.state_dir
                async with serving_socket(runtime, state_dir, stop):
                    started.append(Daemon(runtime, asyncio.get_running_loop()))
                    ready.set()
                    await stop.wait()
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="daemon")
    thread.start()
    try:
        ready.wait(WAIT_S)
        [daemon] = started
        yield daemon
    finally:
        for each in started:
            each.loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT_S)


@asynccontextmanager
async def serving_socket(
    door: HttpDoor, state_dir: Path, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Serve ``door`` on the control socket of ``state_dir`` until ``stop`` is set, or this is left."""
    await asyncio.to_thread(state_dir.mkdir, exist_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(str(state_dir / SOCKET))
    sock.listen()
    app = build_app(door, HttpLimits(10_000), stop, ControlGate())
    serving = asyncio.create_task(run_http(app, sock, stop))
    try:
        yield
    finally:
        stop.set()
        await serving
