"""A peer that is reached over HTTP; what it refuses, and how, is said by the test."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.errors import SessionRuntimeError, TransientError
from session_runtime.mcp.connection import Edges
from session_runtime.testing.replies import Pace, RawReply
from session_runtime.testing.server import Connection as Wire
from session_runtime.testing.server import HttpRequest
from tests.mcp.peer import Json, Kept, Peer, started

EVENTS = {"content-type": "text/event-stream"}
PLAIN = {"content-type": "application/json"}


@dataclass
class Web:
    """Serves ``peer`` at ``url``; ``replies`` are given for a message's method instead of its answer.

    With a ``session``, requests must name it, as a server of the handshake wants; another one is made by
    ``initialize``. ``events`` are streams instead of plain answers. Requests of a session that it does not
    know get ``unknown``, and those whose path is not ``moved_to`` are sent there.
    """

    peer: Peer
    session: str | None = None
    events: bool = False
    replies: dict[str, RawReply] = field(default_factory=dict)
    requests: list[HttpRequest] = field(default_factory=list)
    unknown: RawReply | None = None
    moved_to: str = ""
    url: str = ""
    wires: set[Wire] = field(default_factory=set)
    _sessions: int = 0

    def verbs(self) -> list[str]:
        return [request.method for request in self.requests]

    def forget_sessions(self) -> None:
        """What a server does that is started anew."""
        self.session = "none"

    async def answer(self, request: HttpRequest) -> RawReply:
        self.requests.append(request)
        if self.moved_to and request.path != self.moved_to:
            return reply(307, {"moved": True}, {"location": self.moved_to})
        if request.method != "POST":
            return self.replies.get(request.method, reply(405 if request.method == "GET" else 200))
        message = json.loads(request.body)
        method = message.get("method", "")
        if method in self.replies:
            self.peer.hear(message)
            return self.replies[method]
        headers = {}
        if self.session is not None and method == "initialize":
            self._sessions += 1
            self.session = headers["mcp-session-id"] = f"session-{self._sessions}"
        elif self.session is not None and method != "server/discover":
            if request.headers.get("mcp-session-id") != self.session:
                return self.unknown or reply(
                    404, {"error": {"code": -32600, "message": "Session not found"}}
                )
        self.peer.hear(message)
        if "id" not in message:
            return reply(202)
        body = await self.peer.body(message)
        if body is None:
            return RawReply((b"",), pace=Pace(gate=asyncio.Event()))
        return reply(200, body, headers, events=self.events)


def reply(
    status: int,
    body: Json | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    events: bool = False,
) -> RawReply:
    """An answer of this status."""
    data = b"" if body is None else json.dumps(body).encode()
    if events:
        return RawReply(
            (b"event: message\ndata: " + data + b"\n\n",),
            status=status,
            headers={**EVENTS, **(headers or {})},
        )
    return RawReply((data,), status=status, headers={**PLAIN, **(headers or {})})


@asynccontextmanager
async def served(web: Web) -> AsyncIterator[Web]:
    """The peer, reachable at ``url``."""
    server = await asyncio.get_running_loop().create_server(
        lambda: Wire(web.answer, web.wires), "127.0.0.1", 0
    )
    web.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield web
    finally:
        server.close()
        for wire in list(web.wires):
            await wire.abort()
        await server.wait_closed()


@asynccontextmanager
async def reached(web: Web, **settings: Any) -> AsyncIterator[Kept]:
    """A connection to what is served."""
    async with served(web):
        server = McpServer(url=web.url, **settings)
        edges = Edges(jitter=lambda: 0.01)
        async with started(server, Path(), edges) as it:
            yield it


async def refused(it: Kept) -> SessionRuntimeError:
    with pytest.raises(SessionRuntimeError) as caught:
        await it.call("echo")
    return caught.value


def outcome(error: SessionRuntimeError) -> tuple[str, bool | None]:
    return error.code, error.may_have_run if isinstance(error, TransientError) else None
