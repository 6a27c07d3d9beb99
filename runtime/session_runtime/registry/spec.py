"""What a tool is and what a source of tools must do; who may see one is decided in ``policy``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from session_runtime.handler import HandlerContext
from session_runtime.types import JsonObject

Origin = Literal["handler", "bundled", "mcp", "agent", "virtual"]


@dataclass(frozen=True, slots=True)
class Annotations:
    """What the operator or author says a tool does; ``destructive`` changes things for good."""

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
    ``parameters`` is a JSON Schema of type object. ``requires`` are roles, all of which an identity
    must hold; ``feature`` is a flag that must be on. ``digest`` covers everything that a caller
    could notice. Compared by identity: two specs are the same only if they are the same object.
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


class ToolSource(Protocol):
    """Where tools come from: the handlers of the configuration, an MCP server, a set of sub-agents.

    ``list_tools`` is called once per preparation and returns specs sorted by name. ``call`` runs
    one tool with checked arguments and returns whatever the tool returned; it raises TransientError
    or PermanentError (only classifying; retry lives elsewhere), or the tool's own exception, and
    lets CancelledError through. An import that fails is a PermanentError ``tool.import_failed`` and is
    tried again at the next call. ``aclose`` is called once, after the last ask that may call has
    ended.
    """

    @property
    def id(self) -> str:
        """Stable name of the source, shown in the catalogue."""

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        """All usable tools of this source, sorted by name."""

    def is_loaded(self, spec: ToolSpec) -> bool:
        """Whether the tool's code is there to be run; until then no call has reached it."""

    async def call(
        self, spec: ToolSpec, arguments: Mapping[str, Any], context: HandlerContext
    ) -> object:
        """Run one tool; ``arguments`` satisfy ``spec.parameters``."""

    async def aclose(self) -> None:
        """Release what the source holds."""
