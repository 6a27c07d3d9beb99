"""Bundled handlers as an ask reaches them: found, checked, imported, run."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from session_runtime.handler import HandlerContext
from session_runtime.local.scan import Scan
from session_runtime.local.source import LocalSource
from session_runtime.registry.catalog import build_catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.registry import Registry
from session_runtime.types import ToolResult
from tests.support import scan_of

HANDLERS = Path(__file__).parents[2] / "handlers"

Run = Callable[..., Awaitable[ToolResult]]


@pytest.fixture(scope="session")
def bundled() -> Scan:
    """Everything that ships in ``handlers/``."""
    return scan_of(bundled=HANDLERS)


@pytest.fixture
async def run(bundled: Scan) -> Run:
    """Call a bundled tool by its canonical name."""
    catalog = await build_catalog([LocalSource(bundled)])
    invoker = Invoker(Registry(), 10, 20_000, "allow")

    async def run(
        name: str, context: HandlerContext | None = None, /, **arguments: object
    ) -> ToolResult:
        return await invoker.invoke(
            catalog, catalog.lookup(name), arguments, context or HandlerContext()
        )

    return run
