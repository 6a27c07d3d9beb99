"""Tells operators why: what a search finds and who may use what, with the code of every ask (OPS-3)."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from session_runtime.app.recent import RecentAsks
from session_runtime.ask.exposure import Exposure, open_exposure
from session_runtime.errors import RequestError
from session_runtime.generation import Generation, Profile
from session_runtime.generation.unavailable import unavailable_to
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.registry.registry import Registry
from session_runtime.search import PROMPT_RULE
from session_runtime.spelling import hint
from session_runtime.types import LOCAL, Identity

CHARS_PER_TOKEN: Final = 4


class Insight:
    """Looks at the generation in force; nothing that it does is seen by an ask."""

    def __init__(
        self, current: Callable[[], Generation], registry: Registry, recent: RecentAsks
    ) -> None:
        self._current = current
        self._registry = registry
        self._recent = recent

    async def search(self, query: str, identity: Identity, most: int) -> dict[str, Any]:
        """What ``tool_search`` gives the model of a new ask for this query, and what speaks for each match.

        ``answer`` is the very text that the tool gives, None if tool search would not be active; ``loaded``
        are the definitions that the model has from its next turn on. Tokens are estimates, as in traces.
        What prefetch would hide is not: it is known only once it ran.
        """
        generation = self._current()
        profile = generation.profiles[generation.default_profile]
        mask = generation.policy.permitted(LOCAL, identity)
        down = unavailable_to(generation, LOCAL, identity, mask)
        exposure = open_exposure(generation, profile, mask, (), down)
        before = exposure.next_turn()
        await exposure.prepare_search()
        answer = None if exposure.governor is None else exposure.governor.answer(query).content
        matches = []
        for match in generation.index.view(mask).explained(query, most):
            matches.append({**match, "tokens": generation.schema_tokens[str(match["name"])]})
            await asyncio.sleep(0)  # each takes about a millisecond in a large catalogue
        return {
            "query": query,
            "generation": generation.number,
            "model": profile.name,
            "permitted": mask.bit_count(),
            "rule": exposure.rule,
            "exposed": [tool.name for tool in before.tools],
            "tokens": {
                "exposed": before.tokens,
                "directory": _directory_tokens(exposure),
                "full_list": exposure.full_list_tokens,
                "answer": len(answer or "") // CHARS_PER_TOKEN,
                "loaded": sum(generation.schema_tokens[name] for name in exposure.loaded),
            },
            "directory": "" if exposure.session is None else exposure.session.directory,
            "answer": answer,
            "loaded": [_definition(generation, profile, name) for name in exposure.loaded],
            "matches": matches,
        }

    def access(self, tool: str, identity: Identity) -> dict[str, Any]:
        """Whether a tool may be used for an identity, and the rule that decides."""
        generation = self._current()
        policy = generation.policy
        position = policy.positions.get(tool)
        if position is None:
            near = hint(tool, tuple(policy.positions)) or "GET /v1/tools lists all"
            raise RequestError(
                f"there is no tool {tool[:100]!r}; {near}", code="request.unknown_tool"
            )
        return {
            "tool": tool,
            "allowed": bool(policy.permitted(LOCAL, identity) >> position & 1),
            "why": policy.why(identity, tool),
        }

    def permitted(self, identity: Identity) -> dict[str, Any]:
        """The names of all tools that may be used for an identity, whatever principal may act for it."""
        generation = self._current()
        tools = generation.permitted.get(generation.policy.permitted(LOCAL, identity)).tools
        return {"tools": [spec.name for spec in tools]}

    def routes(self) -> dict[str, Any]:
        """How calls go to each source that was called, with its breaker (RTE-6)."""
        routes = self._registry.routes(asyncio.get_running_loop().time())
        return {route: each.to_json() for route, each in routes.items()}

    def totals(self) -> dict[str, Any]:
        """What the asks that ended since the start came to."""
        return self._recent.totals()

    def ended(self, most: int) -> list[dict[str, Any]]:
        """The asks that ended last, newest first."""
        return self._recent.newest(most)

    def record(self, ask_id: str) -> dict[str, Any]:
        """One of them; raises RequestError if it is not remembered."""
        return self._recent.one(ask_id)


def _directory_tokens(exposure: Exposure) -> int:
    if exposure.session is None:
        return 0
    return (len(PROMPT_RULE) + len(exposure.session.directory)) // CHARS_PER_TOKEN


def _definition(generation: Generation, profile: Profile, name: str) -> dict[str, Any]:
    """A tool as the model is told of it."""
    spec = generation.loader.spec if name == TOOL_SEARCH else generation.catalog.lookup(name)
    return {
        "name": spec.name,
        "wire_name": profile.names.to_wire[name],
        "description": spec.description,
        "parameters": spec.parameters,
        "tokens": generation.schema_tokens[name],
    }
