"""Tells operators why: what a search finds and who may use what, with the code of every ask (OPS-3)."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from session_runtime.app.recent import RecentAsks
from session_runtime.ask.exposure import Exposure, open_exposure, prepare_directory
from session_runtime.errors import RequestError
from session_runtime.generation import Generation, Profile
from session_runtime.generation.unavailable import unavailable_to
from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.registry.policy import acting_for
from session_runtime.registry.registry import Registry
from session_runtime.search import PROMPT_RULE
from session_runtime.spelling import hint
from session_runtime.types import LOCAL, Identity, Principal

CHARS_PER_TOKEN: Final = 4


class Insight:
    """Looks at the generation in force; nothing that it does is seen by an ask."""

    def __init__(
        self,
        current: Callable[[], Generation],
        registry: Registry,
        recent: RecentAsks,
        totals: Callable[[], dict[str, Any]],
        refused: Callable[[], Mapping[str, int]],
    ) -> None:
        self._current = current
        self._registry = registry
        self._recent = recent
        self._totals = totals
        self._refused = refused

    async def search(
        self, query: str, identity: Identity, most: int, principal: str | None = None
    ) -> dict[str, Any]:
        """What ``tool_search`` gives the model of a new ask for this query, and what speaks for each match.

        ``answer`` is the very text that the tool gives, None if tool search would not be active; ``loaded``
        are the definitions that the model has from its next turn on. Tokens are estimates, as in traces.
        What prefetch would hide is not: it is known only once it ran. The search is one for ``identity`` by
        the principal of that name, who may lack what the identity may use; without one nobody bounds it.
        """
        generation = self._current()
        profile = generation.profiles[generation.default_profile]
        who = _caller(generation, identity, principal)
        mask = generation.policy.permitted(*who)
        down = unavailable_to(generation, *who, mask)
        await prepare_directory(generation, profile, mask, ())
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

    def access(self, tool: str, identity: Identity, principal: str | None = None) -> dict[str, Any]:
        """Whether a tool may be used for an identity by a principal, and the rule that decides."""
        generation = self._current()
        policy = generation.policy
        position = policy.positions.get(tool)
        if position is None:
            near = hint(tool, tuple(policy.positions)) or "GET /v1/tools lists all"
            raise RequestError(
                f"there is no tool {tool[:100]!r}; {near}", code="request.unknown_tool"
            )
        who = _caller(generation, identity, principal)
        return {
            "tool": tool,
            "allowed": bool(policy.permitted(*who) >> position & 1),
            "why": policy.ruling(*who, tool),
        }

    def permitted(self, identity: Identity, principal: str | None = None) -> dict[str, Any]:
        """The names of all tools that may be used for an identity, by a principal if one is named."""
        generation = self._current()
        mask = generation.policy.permitted(*_caller(generation, identity, principal))
        return {"tools": [spec.name for spec in generation.permitted.get(mask).tools]}

    def principals(self) -> dict[str, Any]:
        """Who has a key, and what each is by itself."""
        return {"principals": [_told_of(each) for _, each in self._current().keys.owners]}

    def routes(self) -> dict[str, Any]:
        """How calls go to each source that was called, with its breaker (RTE-6)."""
        routes = self._registry.routes(asyncio.get_running_loop().time())
        return {route: each.to_json() for route, each in routes.items()}

    def totals(self) -> dict[str, Any]:
        """What the asks that ended since the start came to, and how many were refused, by the code."""
        refused = {code: count for code, count in self._refused().items() if count}
        return {**self._totals(), "refused": refused}

    def ended(self, most: int) -> list[dict[str, Any]]:
        """The asks that ended last, newest first."""
        return self._recent.newest(most)

    def record(self, ask_id: str) -> dict[str, Any]:
        """One of them; raises RequestError if it is not remembered."""
        return self._recent.one(ask_id)


def _caller(
    generation: Generation, identity: Identity, name: str | None
) -> tuple[Principal, Identity]:
    """Who asks, for whom: RequestError if there is no such principal, or it may not act for the identity."""
    if name is None:
        return LOCAL, identity
    principal = generation.keys.named(name)
    if principal is None:
        names = tuple(each.name for _, each in generation.keys.owners)
        way_out = hint(name, names) or "GET /v1/principals lists all"
        raise RequestError(f"there is no principal {name[:100]!r} in [http.keys]; {way_out}")
    return principal, acting_for(principal, identity)


def _told_of(principal: Principal) -> dict[str, Any]:
    own = principal.identity or Identity()
    return {
        "name": principal.name,
        "roles": sorted(own.roles or ()),
        "channel": own.channel,
        "group": own.group,
    }


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
