"""The runtime as an MCP server for the program that started this process; imported late."""

import asyncio
from functools import partial

from mcp.server.subscriptions import ListenHandler

from session_runtime.transports.mcp.callers import Caller, Callers
from session_runtime.transports.mcp.pipe import (
    Ends,
    Read,
    Write,
    claim_standard_streams,
    run_pipe,
)
from session_runtime.transports.mcp.server import OneClient, ToolServer, options
from session_runtime.transports.mcp.session import CallerSession
from session_runtime.transports.mcp.watching import tell_of_changes

__all__ = ["claim_standard_streams", "serve_pipe"]


async def serve_pipe(callers: Callers, caller: Caller, ends: Ends) -> None:
    """Serve one client, in whichever era it begins, until it closes its end of the pipe."""
    with callers.client() as client_id:
        session = CallerSession(callers, client_id, remembers=True)
        client = OneClient(session, lambda _: caller, lambda _: caller)
        telling = asyncio.create_task(
            tell_of_changes(callers, session, client, lambda: caller), name="tell of changes"
        )
        try:
            await run_pipe(ends, partial(_serve, callers, session, client, caller))
        finally:
            telling.cancel()
            await asyncio.wait([telling])
            session.close()


async def _serve(
    callers: Callers,
    session: CallerSession,
    client: OneClient,
    caller: Caller,
    requests: Read,
    answers: Write,
) -> None:
    name = callers.generation.settings.runtime.name
    await session.prepare(caller)
    server = ToolServer(client, client.bus).build(
        name, session.directory(caller), ListenHandler(client.bus, max_subscriptions=4)
    )
    client.attach(server)
    await server.run(requests, answers, options(server))
