"""A runtime whose asks are one function of the test, served on a real loopback socket."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from session_runtime.ask.kept_asks import KeptAsks
from session_runtime.config.http import HttpKey
from session_runtime.config.settings import Settings
from session_runtime.errors import RequestError
from session_runtime.registry.keyring import Keyring, hash_of, open_keyring
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.revoked import Matching
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate
from session_runtime.transports.http.protocol import ConnectionBounds
from session_runtime.transports.http.server import UNTOLD_BOUNDS, build_app, run_http
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    ErrorInfo,
    Identity,
    Principal,
    RunningAsk,
)

Emit = Callable[[AskEvent], None]
Header = tuple[bytes, bytes]
AskFunction = Callable[[AskRequest, Emit], Awaitable[AskResult]]

TEXT = {"text": "hi"}
EVENTS = {"accept": "text/event-stream"}
HANGS_S = 60.0  # a test that waits for what never comes fails instead of hanging
LIMITS = HttpLimits(max_body_bytes=10_000)


async def answer(request: AskRequest, emit: Emit) -> AskResult:
    return finish(AskResult("a1", "answered", f"you said {request.text}"), emit)


def finish(result: AskResult, emit: Emit) -> AskResult:
    emit(AskFinished(ask_id=result.ask_id, seq=1, result=result))
    return result


def refused(error: ErrorInfo) -> AskResult:
    """An ask that did not begin."""
    return AskResult("a1", "failed", error=error, refused=True)


def keyring_of(**keys: Mapping[str, Any]) -> Keyring:
    """A keyring in which the key of ``bot`` is ``key_of("bot")``."""
    return open_keyring(
        {name: HttpKey(hash=hash_of(key_of(name)), **more) for name, more in keys.items()}
    )


def key_of(name: str) -> str:
    return f"sr_{name:x<43}"


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key_of(name)}"}


class StubDoor:
    """``keyring`` may be changed while it is served, as an edit would."""

    def __init__(self, ask: AskFunction = answer, keyring: Keyring | None = None) -> None:
        self._ask = ask
        self.keyring = keyring or Keyring()
        self.identities: list[Identity | None] = []
        self.principals: list[Principal] = []
        self.chars: list[int] = []
        self.readiness = (True, "ready")
        self.running = NothingRuns()
        self.kept = KeptAsks(lambda request, emit, ask_id, chars: self.ask(request, emit, chars))
        self.brake = FreeBrake()
        self.servers = StubServers()
        self.approval = StubApproval()
        self.absent: tuple[str, ...] = ()
        self.live = StubLive()
        self.insight = StubInsight()

    async def ask(self, request: AskRequest, emit: Emit, chars: int) -> AskResult:
        self.principals.append(request.principal)
        self.chars.append(chars)
        return await self._ask(request, emit)

    def keys(self) -> Keyring:
        return self.keyring

    def tools(
        self, identity: Identity | None, principal: Principal, **page: Any
    ) -> Sequence[Mapping[str, Any]]:
        self.identities.append(identity)
        self.principals.append(principal)
        return [{"name": "a.b"}]

    def models(self) -> Sequence[str]:
        return ("main", "a", "org/b")

    def status(self) -> Mapping[str, Any]:
        return {"state": "ready"}

    def metrics(self) -> str:
        return "up 1\n"

    def ready(self) -> tuple[bool, str]:
        return self.readiness

    def missing(self) -> Sequence[str]:
        return self.absent


class StubLive:
    """A configuration of defaults, in force without a file."""

    def __init__(self, **sections: Mapping[str, Any]) -> None:
        self.settings = Settings.model_validate(sections)

    @property
    def snapshot(self) -> "StubLive":
        return self


class StubServers:
    """One server, ``a``, which notes what is done with it."""

    def __init__(self) -> None:
        self.done: list[tuple[object, ...]] = []

    async def log(self, name: str, lines: int) -> Sequence[Mapping[str, Any]]:
        self._note("log", name, lines)
        return [{"credential": None, "lines": ["12:00 hello"]}]

    async def refresh(self, name: str) -> Mapping[str, Any]:
        return self._note("refresh", name)

    async def restart(self, name: str) -> Mapping[str, Any]:
        return self._note("restart", name)

    def _note(self, *what: object) -> Mapping[str, Any]:
        if what[1] != "a":
            raise RequestError(f"there is no server {what[1]!r}", code="request.unknown_server")
        self.done.append(what)
        return {"servers": [], "receipt": {}}


class StubInsight:
    """Says what it was asked, and notes it."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    async def search(
        self, query: str, identity: Identity, most: int, principal: str | None
    ) -> Mapping[str, Any]:
        self.asked.append((query, identity, most, principal))
        return {"query": query}

    def access(self, tool: str, identity: Identity, principal: str | None) -> Mapping[str, Any]:
        self.asked.append((tool, identity, principal))
        return {"tool": tool}

    def permitted(self, identity: Identity, principal: str | None) -> Mapping[str, Any]:
        self.asked.append((identity, principal))
        return {"tools": []}

    def principals(self) -> Mapping[str, Any]:
        return {"principals": []}

    def totals(self) -> Mapping[str, Any]:
        return {"asks": 1}

    def ended(self, most: int) -> Sequence[Mapping[str, Any]]:
        self.asked.append((most,))
        return [{"ask_id": "a1"}]

    def record(self, ask_id: str) -> Mapping[str, Any]:
        return {"ask_id": ask_id}


class StubApproval:
    """One tool, ``a.b`` of the server ``a``, waits in the form ``f0``; notes who approved what."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []

    def show(self, name: str) -> Mapping[str, Any]:
        self._check(name, "a.b")
        return {"name": name, "forms": []}

    async def approve(self, name: str, digest: str, by: str) -> Mapping[str, Any]:
        self._check(name, "a.b")
        if digest != "f0":
            raise RequestError("it waits in another form", code="request.other_form")
        return self._note(name, digest, by)

    async def approve_all(self, server: str, by: str) -> Mapping[str, Any]:
        self._check(server, "a")
        return self._note(server, by)

    def _check(self, name: str, there: str) -> None:
        if name != there:
            raise RequestError("nothing waits", code="request.nothing_to_approve")

    def _note(self, *what: str) -> Mapping[str, Any]:
        self.done.append(what)
        return {"approved": ["a.b"], "receipt": {}}


class NothingRuns:
    def list(self) -> tuple[RunningAsk, ...]:
        return ()

    def cancel(self, ask_id: str, reason: str, code: str = "") -> int:
        return 0


class FreeBrake(Revocations):
    """Revocations that are kept nowhere, in a daemon without tools."""

    async def matching(self, pattern: str) -> Matching:
        return Matching(())


class BlockedAsk:
    """An ask that emits what it is given and then waits until it is cancelled."""

    def __init__(self, *events: AskEvent) -> None:
        self._events = events
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, request: AskRequest, emit: Emit) -> AskResult:
        for event in self._events:
            emit(event)
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            finish(AskResult("a1", "cancelled"), emit)
            self.cancelled.set()
            raise
        raise AssertionError


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its socket and port, a client for it, and how to stop it."""

    sock: socket.socket
    port: int
    client: httpx2.AsyncClient
    stop: asyncio.Event
    running: asyncio.Task[None]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A bare connection, for requests that no client library would send."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**27)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def serving(
    door: HttpDoor | None = None,
    limits: HttpLimits = LIMITS,
    grace_s: float = 3.0,
    bounds: ConnectionBounds = UNTOLD_BOUNDS,
) -> AsyncIterator[Served]:
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    stop = asyncio.Event()
    app = build_app(door or StubDoor(), limits, stop)
    running = asyncio.create_task(run_http(app, sock, stop, grace_s=grace_s, bounds=bounds))
    try:
        async with (
            asyncio.timeout(HANGS_S),
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        ):
            yield Served(sock, port, client, stop, running)
    finally:
        stop.set()
        await running


@asynccontextmanager
async def calling(
    door: HttpDoor | None = None,
    limits: HttpLimits = LIMITS,
    base_url: str = "http://localhost",
    gate: Gate | None = None,
) -> AsyncIterator[httpx2.AsyncClient]:
    """The same application without a socket, where the socket is not the point."""
    app = build_app(door or StubDoor(), limits, asyncio.Event(), gate)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=base_url) as client:
        yield client


def scope_of(
    *headers: Header,
    server: object = ("127.0.0.1", 8040),
    path: str = "/v1/ask",
    query: bytes = b"",
) -> dict[str, Any]:
    """What the guard looks at of a request."""
    return {
        "type": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": list(headers),
        "server": server,
    }


def head(port: int, *lines: str, target: str = "POST /v1/ask") -> bytes:
    """The head of a request as bytes."""
    fixed = (f"{target} HTTP/1.1", f"host: 127.0.0.1:{port}")
    return "\r\n".join([*fixed, *lines, "", ""]).encode()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """Read one answer with a content-length: its status and JSON."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines[1:] if line)
    body = await reader.readexactly(int(fields["content-length"]))
    return int(lines[0].split()[1]), json.loads(body)


def frames(text: str) -> list[tuple[str, Any]]:
    """The events of a stream as (event, data); comments are left out."""
    parsed = []
    for frame in text.split("\n\n"):
        if frame and not frame.startswith(":"):
            *number, event, data = frame.split("\n")
            told = json.loads(data.removeprefix("data: "))
            assert number in ([], [f"id: {told['seq']}"])
            parsed.append((event.removeprefix("event: "), told))
    return parsed
