"""The sub-agents of one generation: what each is made of, and which tools it may use (ASK-11)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from session_runtime.config.agents import MAIN, AgentSettings
from session_runtime.config.settings import Settings, profiles, unknown_profile
from session_runtime.local.tool import LocalTool
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.masks import bits
from session_runtime.registry.patterns import Patterns
from session_runtime.registry.policy import AgentTools
from session_runtime.registry.spec import ToolSpec
from session_runtime.spelling import hint


@dataclass(frozen=True, slots=True)
class Agent:
    """A sub-agent ready for use: to the model that calls it, ``spec`` is a tool like others."""

    spec: ToolSpec
    prompt: str
    settings: AgentSettings
    tools: AgentTools
    callers: Patterns

    def may_be_called_by(self, caller: str | None) -> bool:
        """Whether another agent, or None for the model of an ask, may call it."""
        return (MAIN if caller is None else caller) in self.callers and caller != self.spec.name


def agents_of(tools: Iterable[LocalTool], catalog: Catalog) -> Mapping[str, Agent]:
    """All agents by name."""
    return MappingProxyType(
        {
            tool.spec.name: Agent(
                tool.spec,
                tool.form.prompt,
                tool.form.settings,
                AgentTools(_own(tool.spec.name, catalog), _shared(tool.form.settings, catalog)),
                Patterns(tool.form.settings.callers),
            )
            for tool in tools
            if tool.form is not None and tool.spec.name in catalog.positions
        }
    )


def agent_faults(tools: Iterable[LocalTool], settings: Settings) -> Mapping[str, str]:
    """Why an agent cannot be used with this configuration, by its name."""
    faults: dict[str, str] = {}
    names = tuple(profiles(settings))
    for tool in tools:
        if tool.form is None:
            continue
        stated = tool.form.settings
        found = [*_model_fault(stated, names), *_server_faults(stated, tuple(settings.mcp.servers))]
        if found:
            faults[tool.spec.name] = f"agent.toml: {'; '.join(found)}"
    return faults


def agent_warnings(agents: Mapping[str, Agent], catalog: Catalog) -> tuple[str, ...]:
    """Tell which patterns of agents match no tool."""
    shared = [spec.name for spec in catalog.specs if not spec.owner]
    return tuple(
        f"sub-agent {name!r}: agent.toml: tools: {pattern!r} matches no tool"
        for name, agent in agents.items()
        for pattern in agent.settings.tools
        if not any(tool in Patterns([pattern]) for tool in shared)
    )


def _model_fault(settings: AgentSettings, names: tuple[str, ...]) -> Iterator[str]:
    fault = None if settings.model is None else unknown_profile(settings.model, names)
    if fault is not None:
        yield f"model: {fault}"


def _server_faults(settings: AgentSettings, names: tuple[str, ...]) -> Iterator[str]:
    for server in settings.servers:
        if server not in names:
            way_out = hint(server, names) or "servers are configured in [mcp.servers]"
            yield f"servers: there is no server {server!r}; {way_out}"


def _own(agent: str, catalog: Catalog) -> int:
    return bits([at for at, spec in enumerate(catalog.specs) if spec.owner == agent])


def _shared(settings: AgentSettings, catalog: Catalog) -> int:
    """Shared tools that the agent is given: by their names, and all of a server."""
    wanted = Patterns(settings.tools)
    sources = {f"mcp:{server}" for server in settings.servers}
    return bits(
        [
            at
            for at, spec in enumerate(catalog.specs)
            if not spec.owner and (spec.name in wanted or spec.source_id in sources)
        ]
    )
