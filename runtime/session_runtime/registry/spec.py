"""What a tool is and what a source of tools must do; who may see one is decided in ``policy``."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from session_runtime.handler import HandlerContext
from session_runtime.types import Identity, JsonObject

Origin = Literal["handler", "bundled", "mcp", "agent", "virtual"]


@dataclass(frozen=True, slots=True)
class Annotations:
    """What the operator or author says a tool does; ``destructive`` changes things for good.

    That a tool is ``read_only`` or ``idempotent`` is never taken from a server alone: a call of one may be
    made again (RTE-8).
    """

    destructive: bool = False
    read_only: bool = False
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Deprecated:
    """The tool should no longer be used; ``replacement`` is a canonical name or None."""

    reason: str = ""
    replacement: str | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ToolSpec:
    """One tool as a source describes it; frozen and shared by every ask of a generation.

    ``name`` is canonical (``group.tool``), ``native_name`` what the source itself calls it, ``place`` where
    an operator finds it: a folder, a key of the configuration, a package.
    ``parameters`` is a JSON Schema of type object, ``output`` one that structured results satisfy, None if
    none is known. ``timeout_s`` limits a call whatever it tells, ``idle_timeout_s`` its silence. ``keyed``:
    the source recognises a call that it had before by the context's idempotency key. ``requires`` are
    roles, all of which an identity must hold; ``feature`` is a flag that must be on. ``digest`` covers
    everything that a caller could notice. Compared by identity: two specs are the same only if they are the
    same object. ``owner`` is the sub-agent that alone may call the tool, empty for a shared one; an
    ``inner`` one is a sub-agent that only others may call (ASK-11).
    """

    name: str
    description: str
    parameters: JsonObject
    origin: Origin
    source_id: str
    native_name: str
    digest: str
    annotations: Annotations = Annotations()
    requires: frozenset[str] = frozenset()
    feature: str | None = None
    aliases: tuple[str, ...] = ()
    search_hints: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    deprecated: Deprecated | None = None
    timeout_s: float | None = None
    max_result_chars: int | None = None
    place: str = ""
    output: JsonObject | None = None
    idle_timeout_s: float | None = None
    keyed: bool = False
    owner: str = ""
    inner: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether a call that may have run may be made again (RTE-8)."""
        return self.annotations.read_only or self.annotations.idempotent or self.keyed


@dataclass(frozen=True, slots=True)
class Limits:
    """What a route can take (RTE-6); 0 means any number.

    After ``failures`` of its calls in a row, none is let through for ``pause_s`` seconds, then one to try.
    """

    max_concurrency: int = 0
    rate_per_minute: int = 0
    failures: int = 0
    pause_s: float = 0.0


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Route:
    """One way to run a tool (RTE-2): what it is counted under, what that can take, and how it is run.

    ``id`` is the same for every generation. ``run`` gets arguments that satisfy the tool's parameters and
    returns what the tool returned. It raises TransientError or PermanentError, which only classify: whether
    to try again, or another route, is decided elsewhere; or the tool's own exception. It lets CancelledError
    through. ``obstacle`` says why it cannot be used just now, None if it can. ``reaches`` is equal for routes
    that lead to the same place in the same way: failures are counted by it, room and rate by ``id``. It is
    good in this process only, and for no eyes.
    """

    id: str
    run: Callable[[Mapping[str, Any], HandlerContext], Awaitable[object]]
    limits: Limits = UNLIMITED
    obstacle: Callable[[], str | None] = lambda: None
    reaches: str = ""


class Audience(Protocol):
    """Which tools of a source are offered to whom, where that differs (RTE-2)."""

    def kinds_of(self, identity: Identity) -> Sequence[str]:
        """The kinds of callers that an identity belongs to: it is offered what any of them is."""

    def offered(self) -> Mapping[str, frozenset[str]]:
        """Canonical names of the tools that each kind is offered; a kind that is not named: none."""


class ToolSource(Protocol):
    """Where tools come from: the handlers of the configuration, an MCP server, a set of sub-agents.

    ``list_tools`` is called once per preparation and returns specs sorted by name. An import that fails is
    a PermanentError ``tool.import_failed`` and is tried again at the next call. ``aclose`` is called once,
    after the last ask that may call has ended.
    """

    @property
    def id(self) -> str:
        """Stable name of the source, shown in the catalogue."""

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        """All usable tools of this source, sorted by name."""

    def is_loaded(self, spec: ToolSpec) -> bool:
        """Whether the tool's code is there to be run; until then no call has reached it."""

    def routes(self, spec: ToolSpec, identity: Identity) -> Sequence[Route]:
        """The ways to run a tool for an identity, best first; none if it is not offered to it."""

    @property
    def audience(self) -> Audience | None:
        """Who is offered what; None: everybody everything."""

    async def aclose(self) -> None:
        """Release what the source holds."""
