"""Opens or checks what a command needs, in its process; only warnings of its log are shown."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from session_runtime.app.logs import set_up_logging
from session_runtime.app.runtime import Runtime, bundled_handlers
from session_runtime.ask import service
from session_runtime.cli.options import Files
from session_runtime.config.runtime import LogSettings
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.local.tool import unimportable
from session_runtime.mcp.pool import NOTHING_LISTED, Known
from session_runtime.registry.registry import Registry

_QUIET = LogSettings(level="warning")


@asynccontextmanager
async def opened(files: Files, *, watch: bool = False) -> AsyncIterator[Runtime]:
    """Open the runtime of a configuration, whose edits act if it is to ``watch``; raises ConfigError."""
    # how an ask ends is told by its report; an error of ours is told nowhere else
    set_up_logging(_QUIET, errors_only=(service.__name__,))
    async with Runtime.open(files.config, env_file=files.env_file, watch=watch) as runtime:
        yield runtime


@dataclass(frozen=True, slots=True)
class Checked:
    """A generation that was prepared and let go, and what a start does not look at.

    ``unimportable`` tells of tools that are there, though a call of theirs can only fail.
    """

    generation: Generation
    unimportable: tuple[str, ...]


async def checked(snapshot: ConfigSnapshot, lists: Known = NOTHING_LISTED) -> Checked:
    """Prepare all that a configuration asks for, and let it go again; raises ConfigError.

    No server of tools is started or connected to; ``lists`` stand in for what servers would list.
    """
    set_up_logging(_QUIET)
    builder = GenerationBuilder(Registry(), bundled_handlers(), lists=lists)
    prepared = await builder.prepare(snapshot, purpose="trial")
    try:
        return Checked(prepared.generation, tuple(_unimportable(prepared.generation)))
    finally:
        await prepared.abort()


def _unimportable(generation: Generation) -> Iterator[str]:
    for handler in generation.handlers.handlers.values():
        yield from unimportable(handler.tool)
