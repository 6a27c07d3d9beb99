"""Puts the routes together and runs them on a bound socket; signals and draining are ``app``'s."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Generator
from functools import partial
from typing import Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp

from session_runtime.errors import RequestError, SessionRuntimeError
from session_runtime.transports.http.answers import (
    on_error,
    on_fault,
    on_request_error,
)
from session_runtime.transports.http.approvals import approval_routes
from session_runtime.transports.http.asks import ask_routes
from session_runtime.transports.http.brake import brake_routes
from session_runtime.transports.http.completions import completion_routes
from session_runtime.transports.http.completions_errors import styled
from session_runtime.transports.http.config import config_routes
from session_runtime.transports.http.console import console_routes
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate, Guard, NetworkGate
from session_runtime.transports.http.insight import insight_routes
from session_runtime.transports.http.invoke import invoke_routes
from session_runtime.transports.http.live import live_routes
from session_runtime.transports.http.mcp import mcp_routes
from session_runtime.transports.http.openai_paths import on_lost
from session_runtime.transports.http.pages import Pages, metrics_routes
from session_runtime.transports.http.protocol import BoundedHttp, ConnectionBounds
from session_runtime.transports.http.servers import server_routes

GRACE_S: Final = 3.0
MOST_AT_ONCE: Final = 512
"""So many connections are taken in one go before their number is looked at."""
UNTOLD_BOUNDS: Final = ConnectionBounds()


def build_app(
    door: HttpDoor,
    limits: HttpLimits,
    stop: asyncio.Event,
    gate: Gate | None = None,
    mcp: ASGIApp | None = None,
) -> Starlette:
    """Build the ASGI application of one way in (NET-1, NET-2, NET-4); unless told, the network.

    ``stop`` is the event given to ``run_http``: when it is set, asks that still run are cancelled
    and their streams end. ``mcp`` answers the requests to /mcp.
    """
    gate = gate or NetworkGate(door.keys)
    pages = Pages(door, gate)
    app = Starlette(
        routes=[
            *ask_routes(door, gate, limits, stop),
            *completion_routes(door, gate, limits, stop),
            Route("/v1/tools", pages.tools, methods=["GET"]),
            *invoke_routes(door, gate, limits, stop),
            Route("/v1/status", pages.status, methods=["GET"]),
            *brake_routes(door, gate, limits),
            *approval_routes(door, gate, limits),
            *config_routes(door, gate, limits),
            *server_routes(door, gate),
            *insight_routes(door, gate),
            *live_routes(door, gate, limits, stop),
            *console_routes(door, gate),
            Route("/healthz", pages.health, methods=["GET"]),
            Route("/readyz", pages.ready, methods=["GET"]),
            *metrics_routes(door, pages),
            Route("/openapi.json", pages.openapi, methods=["GET"]),
            *mcp_routes(mcp, door, gate, limits),
        ],
        middleware=[Middleware(Guard, gate)],
        exception_handlers={
            RequestError: styled(on_request_error),
            SessionRuntimeError: styled(on_error),
            HTTPException: styled(on_lost),
            Exception: styled(on_fault),
        },
    )
    app.router.redirect_slashes = False
    return app


async def run_http(
    app: Starlette,
    sock: socket.socket,
    stop: asyncio.Event,
    *,
    grace_s: float = GRACE_S,
    bounds: ConnectionBounds = UNTOLD_BOUNDS,
) -> None:
    """Serve ``app`` on the bound socket until ``stop`` is set, and close the socket.

    Answers under way are given ``grace_s`` seconds to be read by their clients; then the remaining
    connections are cut.
    """
    if sock.family != socket.AF_UNIX:
        # asyncio sets this only for sockets made with IPPROTO_TCP; without it the body of an answer
        # waits for the client to acknowledge the head, 40 ms or more; accepted connections inherit it
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = _EmbeddedServer(
        uvicorn.Config(
            app,
            http=cast(type[asyncio.Protocol], partial(BoundedHttp, bounds=bounds)),
            backlog=min(MOST_AT_ONCE, max(16, bounds.most() // 2)),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=math.ceil(grace_s) + 5,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[sock]), name="http server")
    stopping = asyncio.create_task(stop.wait(), name="http stop")
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.should_exit = True
        await asyncio.wait([serving], timeout=grace_s)
        server.cut_connections()
        await serving


class _EmbeddedServer(uvicorn.Server):
    """uvicorn without its signal handlers: the process belongs to somebody else."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    def cut_connections(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
