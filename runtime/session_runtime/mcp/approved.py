"""Holds back tools whose schemas changed and that wait for an approval, before tools are named (RTE-4).

What is known of earlier forms is ``registry/approvals``'.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from session_runtime.config.keys import dotted
from session_runtime.config.mcp import McpTool
from session_runtime.mcp.base import Definition, Listing
from session_runtime.mcp.callers import callers_of
from session_runtime.mcp.naming import Listed
from session_runtime.registry.approvals import Approvals, Changed, Seen
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.names import canonical_name

MOST_TOLD: Final = 5

_PLAIN: Final = McpTool()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A tool that waits, by the name under which operators see it, in the form that it has now."""

    name: str
    seen: Seen


@dataclass(frozen=True, slots=True)
class Judged:
    """The servers without the tools that wait, those tools, and what changed without having to wait."""

    listed: tuple[Listed, ...]
    waiting: tuple[Waiting, ...]
    warnings: tuple[str, ...]


def judge(servers: Sequence[Listed], approvals: Approvals) -> Judged:
    """Compare what servers list with how it is known; a pure function of both."""
    listed: list[Listed] = []
    waiting: list[Waiting] = []
    warnings: list[str] = []
    for server in servers:
        held_back: list[Seen] = []
        changed: list[Seen] = []
        for seen in seen_of(server):
            verdict = approvals.judge(seen.server, seen.tool, seen.schema, seen.destructive)
            if isinstance(verdict, Changed):
                (held_back if verdict.waits else changed).append(seen)
        listed.append(_without(server, {seen.tool for seen in held_back}))
        waiting += [Waiting(_name(server, seen.tool), seen) for seen in held_back]
        warnings += _told(server, [seen.tool for seen in changed])
    return Judged(tuple(listed), tuple(waiting), tuple(warnings))


def seen_of(server: Listed) -> Iterator[Seen]:
    """Each tool of a server once: as the first session that lists it does, whose form counts (RTE-3)."""
    known: set[str] = set()
    for credential in callers_of(server.settings).sessions:
        listing = server.listings.get(credential)
        for tool in () if listing is None else listing.tools:
            words = server.settings.tools.get(tool.name, _PLAIN)
            if words.enabled and tool.name not in known:
                known.add(tool.name)
                destructive = tool.destructive or words.destructive is True
                yield Seen(server.name, tool.name, tool.schema_digest, destructive)


def _without(server: Listed, held_back: set[str]) -> Listed:
    if not held_back:
        return server
    listings = {cred: _left(server, of, held_back) for cred, of in server.listings.items()}
    return replace(server, listings=MappingProxyType(listings))


def _left(server: Listed, listing: Listing, held_back: set[str]) -> Listing:
    refused = [_refused(server, tool) for tool in listing.tools if tool.name in held_back]
    tools = tuple(tool for tool in listing.tools if tool.name not in held_back)
    return replace(listing, tools=tools, refused=(*listing.refused, *refused))


def _refused(server: Listed, tool: Definition) -> Quarantined:
    name = _name(server, tool.name)
    return Quarantined(
        tool.name,
        server.key,
        "it is destructive, and its parameters or its result changed since it was approved: look at it,"
        f" then session-runtime tools approve {name}",
    )


def _name(server: Listed, tool: str) -> str:
    return f"{server.label}.{canonical_name(tool)}"


def _told(server: Listed, tools: Sequence[str]) -> Mapping[str, None]:
    """A line for each tool, and one for the rest of many."""
    key = dotted(("mcp", "servers", server.name, "tools"))
    told = [
        f"{key}: {tool!r} has other parameters or another result than when it was last seen"
        for tool in tools[:MOST_TOLD]
    ]
    if len(tools) > MOST_TOLD:
        told.append(f"{key}: {len(tools) - MOST_TOLD} more tools changed in the same way")
    return dict.fromkeys(told)
