"""What the parts of ``mcp`` tell each other: a server's list of tools, its health, and how it is called.

How a connection is kept is decided in ``connection``, which of them a call takes in ``source``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from session_runtime.registry.catalog import Quarantined
from session_runtime.trace_context import TraceContext
from session_runtime.types import JsonObject

State = Literal["connecting", "ready", "down", "stopped"]
OnProgress = Callable[[float, float | None, str | None], None]


@dataclass(frozen=True, slots=True)
class Definition:
    """One usable tool as a server lists it, under the server's name for it.

    ``parameters`` is a JSON Schema of type object, ready to be sent to a model. ``destructive`` is what the
    server's annotations say (RTE-9). ``digest`` covers all of it, ``schema_digest`` only what a call depends
    on: the schemas.
    """

    name: str
    description: str
    parameters: JsonObject
    output: JsonObject | None
    destructive: bool
    digest: str
    schema_digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """All tools of a server, whole or not at all; ``refused`` are left out alone (RTE-5).

    ``at`` is when they were listed, in seconds of the event loop's clock. ``stale``: a later attempt to
    list them failed.
    """

    tools: tuple[Definition, ...]
    refused: tuple[Quarantined, ...]
    at: float
    stale: bool = False

    @property
    def content(self) -> object:
        """Equal for lists of the same, whenever they were made."""
        return frozenset((tool.name, tool.digest) for tool in self.tools), self.refused

    @property
    def undescribed(self) -> tuple[str, ...]:
        """Names of tools that the server says nothing about; they are kept (RTE-5)."""
        return tuple(tool.name for tool in self.tools if not tool.description)


@dataclass(frozen=True, slots=True)
class Health:
    """How a connection is, for operators; texts from the server are bounded and hold no secret.

    ``since`` is when it came into this state, in seconds since 1970. ``error`` says why it is not ready,
    or was not the last time. ``calls`` are under way now; ``skipped_lines`` were no messages, or none of use.
    """

    state: State
    since: float
    error: str = ""
    protocol: str = ""
    server: str = ""
    version: str = ""
    failures: int = 0
    restarts: int = 0
    calls: int = 0
    skipped_lines: int = 0
    retry_in_s: float | None = None
    pid: int | None = None


class Link(Protocol):
    """One connection to one server with one credential; all of it is used on the event loop.

    Its owner calls ``start`` once at most, and ``aclose`` once. Nothing but ``call`` raises.
    """

    @property
    def listing(self) -> Listing | None:
        """The last good list of tools; None before the first."""

    @property
    def health(self) -> Health:
        """How it is now."""

    def start(self) -> None:
        """Begin to connect, and from then on to keep the connection."""

    async def settled(self) -> None:
        """Wait until the first attempt is over: the tools are listed, or it failed."""

    async def refresh(self) -> None:
        """List the tools again, at once; callers meanwhile share one listing."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        on_progress: OnProgress,
        trace: TraceContext | None = None,
    ) -> object:
        """Call a tool by the server's name for it and give what a handler could return.

        ``key`` tells this call from others; the same call made again has the same. ``trace`` is passed on.
        Cancelling reaches the server, once. Raises ToolError for what the tool itself says is an error;
        TransientError ``mcp.down`` (not ready; was not sent), ``mcp.expired`` (the server no longer knew the
        session, and did nothing), ``mcp.lost`` (the connection ended), ``mcp.rate_limited``, with
        ``may_have_run`` where that is so; PermanentError ``mcp.tool_not_found``, ``mcp.invalid_arguments``,
        ``mcp.internal``, ``mcp.bad_result``.
        """

    async def aclose(self) -> None:
        """End the connection and the process behind it; returns when nothing of it is left."""
