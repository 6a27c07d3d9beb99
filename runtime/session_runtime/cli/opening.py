"""Opens or checks what a command needs, in its process; only warnings of its log are shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from session_runtime.app.logs import set_up_logging
from session_runtime.app.runtime import Runtime, bundled_handlers, read_config
from session_runtime.ask import service
from session_runtime.cli.options import Files
from session_runtime.config.live import check
from session_runtime.config.runtime import LogSettings
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.registry.registry import Registry

_QUIET = LogSettings(level="warning")


@asynccontextmanager
async def opened(files: Files) -> AsyncIterator[Runtime]:
    """Open the runtime of a configuration; raises ConfigError."""
    set_up_logging(_QUIET, silent=(service.__name__,))  # how an ask ends is told by its report
    async with Runtime.open(files.config, env_file=files.env_file) as runtime:
        yield runtime


async def checked(files: Files) -> Generation:
    """Prepare all that a configuration asks for, and let it go again; raises ConfigError."""
    set_up_logging(_QUIET)
    builder = GenerationBuilder(Registry(), bundled_handlers())
    prepared = await check(read_config(files.config, env_file=files.env_file), builder)
    return prepared.generation
