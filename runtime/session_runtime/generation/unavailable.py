"""Which servers somebody may be told of that are down, so that a search need not look for their tools."""

from session_runtime.generation.state import Generation
from session_runtime.mcp.source import McpSource
from session_runtime.registry.policy import compile_policy, routed_as
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Identity, Principal


def unavailable_to(
    generation: Generation, principal: Principal, identity: Identity, mask: int
) -> tuple[str, ...]:
    """Names of servers and groups that are down, as far as the caller may know of them (TS-2).

    It may if it may use one of the tools, by ``mask``; where none is known yet, if it might use any tool
    whose name begins with that of the server.
    """
    down = generation.servers.unavailable(routed_as(principal, identity))
    if not down:
        return ()
    sources = {spec.source_id for spec in generation.permitted.get(mask).tools}
    listed = {spec.source_id for spec in generation.catalog.specs}
    unknown = tuple(_any_tool_of(source) for source in down if source.id not in listed)
    settings = generation.settings
    permitted = compile_policy(settings.access, settings.features, unknown).permitted(
        principal, identity
    )
    sources |= {spec.source_id for at, spec in enumerate(unknown) if permitted >> at & 1}
    return tuple(source.label for source in down if source.id in sources)


def _any_tool_of(source: McpSource) -> ToolSpec:
    """Stands for the tools of a server that has listed none; no pattern of one name alone fits it."""
    name = f"{source.label}.?"
    return ToolSpec(name, "", {}, "mcp", source.id, name, "")
