"""Opens a runtime in the process of a command; only warnings of its log are shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from session_runtime.app.logs import set_up_logging
from session_runtime.app.runtime import Runtime
from session_runtime.config.runtime import LogSettings


@asynccontextmanager
async def opened(config: str | None) -> AsyncIterator[Runtime]:
    """Open the runtime of a configuration; raises ConfigError."""
    set_up_logging(LogSettings(level="warning"))
    async with Runtime.open(config) as runtime:
        yield runtime
