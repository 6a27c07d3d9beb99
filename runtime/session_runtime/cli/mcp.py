"""``mcp``: this process as an MCP server for the client that started it, over standard input and output."""

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import cast

import click

from session_runtime.app.runtime import Runtime
from session_runtime.app.signals import listening
from session_runtime.cli import exits
from session_runtime.cli.opening import opened
from session_runtime.cli.options import Files, file_options, identity_of, identity_options
from session_runtime.transports.mcp.callers import Caller
from session_runtime.transports.mcp.extra import require_extra
from session_runtime.types import Identity

Serve = Callable[[Runtime], Awaitable[None]]


@click.command(name="mcp", epilog=exits.TABLE)
@file_options
@identity_options
def command(
    files: Files,
    user: str | None,
    roles: tuple[str, ...],
    channel: str | None,
    group: str | None,
) -> int:
    """Speak MCP over standard input and output until the client closes them; no daemon is needed.

    The client gets the tools of whom the options name. Logs go to standard error.
    """
    require_extra()
    caller = Caller(stated=identity_of(user, roles, channel, group) or Identity())
    stdio = importlib.import_module("session_runtime.transports.mcp.stdio")  # a second: only here
    ends = stdio.claim_standard_streams()

    def serve(runtime: Runtime) -> Awaitable[None]:
        return cast(Awaitable[None], stdio.serve_pipe(runtime.callers, caller, ends))

    asyncio.run(_run(files, serve))
    return exits.OK


async def _run(files: Files, serve: Serve) -> None:
    """Serve until the client goes, or a signal ends that."""
    with listening() as signals:
        async with opened(files, watch=True) as runtime:
            serving = asyncio.ensure_future(serve(runtime))
            stopping = asyncio.create_task(signals.stop.wait(), name="stop")
            await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            serving.cancel()
            await asyncio.wait((serving,))
            if not serving.cancelled():
                serving.result()
