"""What a generation consists of; all of it is shared by the asks that pin it and read-only."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from session_runtime.config.load import ConfigSnapshot
from session_runtime.config.models import ModelProfile
from session_runtime.config.settings import Settings
from session_runtime.generation.agents import Agent
from session_runtime.local.source import LocalSource
from session_runtime.lru import Lru
from session_runtime.mcp.servers import Servers
from session_runtime.models.base import Model
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.invoke.pipeline import Invoker
from session_runtime.registry.keyring import Keyring
from session_runtime.registry.names import WireNames
from session_runtime.registry.policy import Policy
from session_runtime.registry.schema import ArgumentCheck
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import SearchIndex
from session_runtime.toolbox.box import Toolbox

MASKS_KEPT = 64
NOT_IN_FORCE = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """A model profile ready for use; ``names`` is fixed by its separator (ASK-12).

    ``clashes`` are tools that would be taken for the loader under that separator (TS-10).
    """

    name: str
    settings: ModelProfile
    model: Model
    names: WireNames
    clashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loader:
    """The virtual ``tool_search`` tool and the check of its arguments."""

    spec: ToolSpec
    check: ArgumentCheck


@dataclass(frozen=True, slots=True)
class Permitted:
    """What one permission mask leaves of the catalogue, in its order.

    ``tokens`` estimates what sending all their schemas costs.
    """

    tools: tuple[ToolSpec, ...]
    names: frozenset[str]
    tokens: int


class PermittedLists:
    """Permitted tools by mask, computed once each; the least recently used of many is forgotten.

    Threads may share it.
    """

    def __init__(self, catalog: Catalog, schema_tokens: Mapping[str, int]) -> None:
        self._catalog = catalog
        self._schema_tokens = schema_tokens
        self._by_mask: Lru[int, Permitted] = Lru(MASKS_KEPT)

    def get(self, mask: int) -> Permitted:
        """The permitted tools of a mask."""
        return self._by_mask.get_or_make(mask, self._compute)

    def _compute(self, mask: int) -> Permitted:
        specs = self._catalog.specs
        tools = tuple(spec for position, spec in enumerate(specs) if mask >> position & 1)
        return Permitted(
            tools,
            frozenset(spec.name for spec in tools),
            sum(self._schema_tokens[spec.name] for spec in tools),
        )


@dataclass(frozen=True, slots=True)
class Digests:
    """What generations are compared by.

    ``whole`` covers configuration and tools, ``shared`` the configuration as far as the replicas of a
    fleet share it, ``tools`` the tools alone, ``prompt`` the system prompt, and ``models`` what the model of
    each profile is.
    """

    whole: str
    shared: str
    tools: str
    prompt: str
    models: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """One configuration in force; everything in it is shared and read-only.

    ``number`` counts from 1 and is given when it comes into force; until then it is ``NOT_IN_FORCE``.
    ``schema_tokens`` estimates what each tool's
    schema costs in a request, in tokens; ``handlers`` is the source whose imported code the next
    generation takes over (REL-7), ``servers`` are those whose tools are used, ``toolbox`` is what handlers
    are offered, ``agents`` are the sub-agents by name; ``held_models``, ``held_sources`` and
    ``held_toolbox`` are the keys of the shared resources that it keeps open; ``warnings`` tell operators
    what was configured without effect.
    """

    number: int
    digests: Digests
    snapshot: ConfigSnapshot
    catalog: Catalog
    policy: Policy
    keys: Keyring
    index: SearchIndex
    profiles: Mapping[str, Profile]
    default_profile: str
    loader: Loader
    schema_tokens: Mapping[str, int]
    permitted: PermittedLists
    invoker: Invoker
    handlers: LocalSource
    servers: Servers
    toolbox: Toolbox
    agents: Mapping[str, Agent]
    held_models: tuple[str, ...]
    held_sources: tuple[str, ...]
    held_toolbox: str
    warnings: tuple[str, ...]

    @property
    def digest(self) -> str:
        """What covers the configuration and all tools (REL-1)."""
        return self.digests.whole

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.snapshot.settings

    def fallbacks(self, profile: Profile) -> Iterator[Profile]:
        """The profiles that take over one after the other when ``profile`` fails (ASK-9)."""
        while profile.settings.fallback is not None:
            profile = self.profiles[profile.settings.fallback]
            yield profile
