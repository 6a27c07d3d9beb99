"""What tests of remote tools share: servers that play faults and count what they executed."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from session_runtime.audit.log import AuditLog
from session_runtime.errors import PermanentError, ToolError, TransientError
from session_runtime.handler import HandlerContext
from session_runtime.registry.catalog import build_catalog
from session_runtime.registry.invoke.consent import NOBODY, Consent
from session_runtime.registry.invoke.pipeline import Invoker, Pauses
from session_runtime.registry.invoke.results import Renderer
from session_runtime.registry.registry import Registry
from session_runtime.registry.revocations import Revocations
from session_runtime.registry.spec import UNLIMITED, Limits, Route, ToolSpec
from session_runtime.types import LOCAL, Identity, ToolResult
from tests.registry.tools import spec

SOURCE = "mcp:far"
CONTEXT = HandlerContext(call_id="c1", idempotency_key="ask1:c1")


@dataclass(frozen=True)
class Fault:
    """What happens to one attempt: whether the tool is executed, and what is raised; None: it hangs."""

    name: str
    executes: bool
    error: Callable[[], BaseException] | None

    def __repr__(self) -> str:
        return self.name


LOST_BEFORE = Fault("lost before", False, lambda: TransientError("lost", code="mcp.lost"))
LOST_AFTER = Fault(
    "lost after", True, lambda: TransientError("lost", code="mcp.lost", may_have_run=True)
)
DOWN = Fault("down", False, lambda: TransientError("not ready", code="mcp.down"))
EXPIRED = Fault("expired", False, lambda: TransientError("forgot", code="mcp.expired"))
RATE_LIMITED = Fault(
    "rate limited",
    False,
    lambda: TransientError("slow down", code="mcp.rate_limited", retry_after_s=7),
)
NOT_FOUND = Fault(
    "not found", False, lambda: PermanentError("no such tool", code="mcp.tool_not_found")
)
BAD_ARGUMENTS = Fault(
    "bad arguments", False, lambda: PermanentError("no", code="mcp.invalid_arguments")
)
INTERNAL = Fault("internal error", True, lambda: PermanentError("oops", code="mcp.internal"))
TOOL_ERROR = Fault("tool error", True, lambda: ToolError("no such city"))
CRASH = Fault("crash", True, lambda: RuntimeError("bug"))
HANGS = Fault("hangs", True, None)
FAULTS = (
    LOST_BEFORE,
    LOST_AFTER,
    DOWN,
    EXPIRED,
    RATE_LIMITED,
    NOT_FOUND,
    BAD_ARGUMENTS,
    INTERNAL,
    TOOL_ERROR,
    CRASH,
    HANGS,
)


class Server:
    """One way to run the tool: plays its faults one after the other, then works."""

    def __init__(
        self,
        name: str,
        faults: Sequence[Fault] = (),
        limits: Limits = UNLIMITED,
        obstacle: str | None = None,
        work: Callable[[HandlerContext], Awaitable[object]] | None = None,
        reaches: str = "",
    ) -> None:
        self.name = name
        self.reaches = reaches
        self.limits = limits
        self.obstacle = obstacle
        self.attempts = 0
        self.executions = 0
        self.cancelled = 0
        self.keys: list[str] = []
        self._faults = list(faults)
        self._work = work

    @property
    def route(self) -> Route:
        return Route(
            f"mcp:{self.name}", self._run, self.limits, lambda: self.obstacle, self.reaches
        )

    async def _run(self, arguments: Mapping[str, Any], context: HandlerContext) -> object:
        self.attempts += 1
        self.keys.append(context.idempotency_key)
        fault = self._faults.pop(0) if self._faults else None
        if fault is not None:
            self.executions += fault.executes
            await self._play(fault)
        self.executions += 1
        return f"from {self.name}" if self._work is None else await self._work(context)

    async def _play(self, fault: Fault) -> None:
        if fault.error is not None:
            raise fault.error()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class RemoteSource:
    """Equal servers that offer one tool."""

    def __init__(self, tool: ToolSpec, servers: Sequence[Server]) -> None:
        self._tool = tool
        self._servers = servers

    @property
    def id(self) -> str:
        return SOURCE

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        return (self._tool,)

    def is_loaded(self, spec: ToolSpec) -> bool:
        return True

    @property
    def audience(self) -> None:
        return None

    def routes(self, spec: ToolSpec, identity: Identity) -> Sequence[Route]:
        return [server.route for server in self._servers]

    async def aclose(self) -> None:
        pass


async def call(
    *servers: Server,
    registry: Registry | None = None,
    context: HandlerContext = CONTEXT,
    hard_s: float = 600,
    jitter: float = 1.0,
    max_result_chars: int = 10_000,
    renderer: Renderer | None = None,
    consent: Consent = NOBODY,
    revocations: Revocations | None = None,
    audit: AuditLog | None = None,
    **changes: Any,
) -> ToolResult:
    """Call the tool ``far.t`` of these servers, best first; ``changes`` are those of its spec."""
    plain = spec("far.t", origin="mcp", source_id=SOURCE, timeout_s=hard_s, idle_timeout_s=60.0)
    catalog = await build_catalog([RemoteSource(replace(plain, **changes), servers)])
    pauses = Pauses(asyncio.sleep, lambda: jitter)
    invoker = Invoker(
        registry or Registry(),
        60,
        max_result_chars,
        renderer=renderer,
        revocations=revocations,
        pauses=pauses,
        audit=audit,
    )
    tool = catalog.lookup("far.t")
    return await invoker.invoke(catalog, tool, {}, context, principal=LOCAL, consent=consent)


def masked(result: ToolResult) -> tuple[str, str | None, str]:
    """What ``told`` gives, with TOKEN for the word that nobody can foresee."""
    found = re.search(r"^\[([0-9a-f]{12}) data from ", result.content, re.MULTILINE)
    assert found is not None
    assert result.content.count(found[1]) == 2
    return result.status, result.error_code, result.content.replace(found[1], "TOKEN")
