"""A server in memory: what it answers is said by the test, and time is the event loop's alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from session_runtime.config.mcp import McpServer
from session_runtime.mcp.base import Listing
from session_runtime.mcp.connection import Connection, Edges
from session_runtime.mcp.tap import StreamPair
from session_runtime.mcp.transport import Line, Place
from session_runtime.testing.mcp_servers.raw import raw_server
from session_runtime.testing.mcp_servers.script import Script
from tests.system.leftovers import nothing_left

Json = dict[str, Any]
Answer = Callable[[Json], Awaitable[Json]]
META = "io.modelcontextprotocol/"


@dataclass
class Refusal(Exception):
    """The peer answers with this error."""

    code: int
    message: str = "refused"
    data: object = None


def tool(name: str, **more: Any) -> Json:
    """A tool as a server lists it."""
    return {
        "name": name,
        "description": f"Does {name}.",
        "inputSchema": {"type": "object"},
        **more,
    }


@dataclass
class Peer:
    """Answers as ``answers`` say for a method, else as a good server does; None: never.

    ``received`` are the messages it got, ``opened`` counts connections. While ``refusing``, none is opened.
    """

    tools: list[Any] = field(default_factory=lambda: [tool("echo")])
    stateless: bool = False
    answers: dict[str, Answer | None] = field(default_factory=dict)
    received: list[Json] = field(default_factory=list)
    ttl_ms: int = 0
    opened: int = 0
    refusing: BaseException | None = None
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _put: MemoryObjectSendStream[SessionMessage | Exception] | None = None
    _get: MemoryObjectReceiveStream[SessionMessage] | None = None

    def methods(self) -> list[str]:
        """What it got, by method, in order."""
        return [message["method"] for message in self.received if "method" in message]

    async def got(self, method: str, times: int = 1) -> Json:
        """Wait until it got a message for the ``times``-th time, and give that."""
        while self.methods().count(method) < times:
            self._heard.clear()
            await self._heard.wait()
        return [each for each in self.received if each.get("method") == method][times - 1]

    async def say(self, message: Json) -> None:
        """Say something unasked."""
        assert self._put is not None
        parsed = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message})
        await self._put.send(SessionMessage(parsed))

    async def say_that_the_list_changed(self) -> None:
        await self.say({"method": "notifications/tools/list_changed"})

    def hang_up(self) -> None:
        """End the connection, as a process does by ending."""
        assert self._put is not None
        self._put.close()

    def stop_listening(self) -> None:
        """Read nothing more, although the connection is still there."""
        assert self._get is not None
        self._get.close()

    def line(self, *_: object) -> Line:
        """A way to it."""
        return Line(self._streams())

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[StreamPair]:
        self.opened += 1
        if self.refusing is not None:
            raise self.refusing
        put, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, get = anyio.create_memory_object_stream[SessionMessage](0)
        self._put, self._get = put, get
        tasks: set[asyncio.Task[None]] = set()
        serving = asyncio.create_task(self._serve(get, put, tasks))
        try:
            yield read, write
        finally:
            ending = {serving, *tasks}
            for task in ending:
                task.cancel()
            try:
                await asyncio.wait(ending)
            finally:
                for stream in (put, read, write, get):
                    stream.close()

    async def _serve(
        self,
        get: MemoryObjectReceiveStream[SessionMessage],
        put: MemoryObjectSendStream[SessionMessage | Exception],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        async for item in get:
            message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            self.hear(message)
            if "id" in message and "method" in message:
                tasks.add(asyncio.create_task(self._reply(message, put)))

    async def _reply(
        self, message: Json, put: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        body = await self.body(message)
        if body is None:
            return
        try:
            await put.send(SessionMessage(jsonrpc_message_adapter.validate_python(body)))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass

    def hear(self, message: Json) -> None:
        """Take note of a message."""
        self.received.append(message)
        self._heard.set()

    async def body(self, message: Json) -> Json | None:
        """The answer to a request, None for none."""
        answer = self.answers.get(message["method"], self._well_behaved)
        if answer is None:
            return None
        head = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            return {**head, "result": await answer(message)}
        except Refusal as refusal:
            error = {"code": refusal.code, "message": refusal.message}
            return {
                **head,
                "error": error if refusal.data is None else {**error, "data": refusal.data},
            }

    async def _well_behaved(self, message: Json) -> Json:
        capabilities = {"tools": {"listChanged": True}}
        match message["method"]:
            case "initialize" if not self.stateless:
                return {
                    "protocolVersion": "2025-11-25",
                    "capabilities": capabilities,
                    "serverInfo": {"name": "peer", "version": "7"},
                }
            case "server/discover" if self.stateless:
                return {
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities,
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": {f"{META}serverInfo": {"name": "peer", "version": "7"}},
                }
            case "ping" if not self.stateless:
                return {}
            case "tools/list":
                return {"tools": self.tools, "ttlMs": self.ttl_ms, "cacheScope": "private"}
            case "tools/call":
                return {"content": [{"type": "text", "text": "done"}]}
            case _:
                raise Refusal(-32601, "Method not found")


def command(script: Script, **settings: Any) -> McpServer:
    """A raw server that plays a script."""
    program, args = raw_server(script)
    return McpServer(command=program, args=args, **settings)


async def never(_: Json) -> Json:
    """Do not answer as long as anybody waits."""
    await asyncio.Event().wait()
    raise AssertionError


class Seen:
    """Counts what a connection tells, and waits for it to come into a state."""

    def __init__(self) -> None:
        self.times = 0
        self._told = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        self._told.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds; looked at whenever the connection tells that something changed."""
        while not holds():
            self._told.clear()
            await self._told.wait()


def never_random() -> float:
    return 1.0


@dataclass
class Kept:
    """A connection and what it told."""

    connection: Connection
    seen: Seen

    def names(self) -> list[str]:
        """The tools it lists."""
        return [each.name for each in self.listing.tools]

    @property
    def listing(self) -> Listing:
        listing = self.connection.listing
        assert listing is not None
        return listing

    async def call(self, name: str, **arguments: Any) -> object:
        return await self.connection.call(name, arguments, "key", lambda *_: None)

    async def is_in(self, state: str) -> None:
        """Wait for a state; a connection that is down is so once nothing is left of it."""
        await self.seen.until(lambda: self._is_in(state))

    def _is_in(self, state: str) -> bool:
        health = self.connection.health
        return health.state == state and (state != "down" or health.retry_in_s is not None)


@asynccontextmanager
async def kept(peer: Peer, **settings: Any) -> AsyncIterator[Kept]:
    """A connection to a peer whose first attempt is over; nothing may be left of it."""
    edges = Edges(open_line=peer.line, wall=lambda: 1_000.0, jitter=never_random)
    async with started(McpServer(command="x", **settings), Path(), edges) as it:
        yield it


@asynccontextmanager
async def started(
    server: McpServer, folder: Path, edges: Edges, *, wait: bool = True
) -> AsyncIterator[Kept]:
    """A connection that was started and, unless told otherwise, has settled."""
    with nothing_left():
        seen = Seen()
        connection = Connection(Place("srv", folder, folder), server, seen, edges)
        connection.start()
        try:
            if wait:
                await connection.settled()
            yield Kept(connection, seen)
        finally:
            await connection.aclose()
            assert connection.health.state == "stopped"


async def turns(count: int = 30) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)
