"""Holds back tools that wait for an approval, and marks those that were destructive, before they are named.

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
from session_runtime.registry.approval_file import Seen
from session_runtime.registry.approvals import Approvals, Changed
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.names import canonical_name

MOST_TOLD: Final = 5

_PLAIN: Final = McpTool()
_CHANGED: Final = "has other parameters or another result than when it was last seen"
_REMEMBERED: Final = (
    "counts as destructive because it was before, and nobody says so now: set destructive = false for it"
    " to take that back"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A tool that waits, by the name under which operators see it, in the form that it has now."""

    name: str
    seen: Seen


@dataclass(frozen=True, slots=True)
class Judged:
    """The servers without the tools that wait, those tools, and what operators should know of others.

    In ``listed`` a tool is destructive as long as it has to be taken for that.
    """

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
        remembered: list[Seen] = []
        for now in seen_of(server):
            seen = _as_known(server, now, approvals)
            if seen != now:
                remembered.append(seen)
            verdict = approvals.judge(seen.server, seen.tool, seen.schema, seen.destructive)
            if isinstance(verdict, Changed):
                (held_back if verdict.waits else changed).append(seen)
        marked = _marked(server, {seen.tool for seen in remembered})
        listed.append(_without(marked, {seen.tool for seen in held_back}))
        waiting += [Waiting(_name(server, seen.tool), seen) for seen in held_back]
        warnings += _told(server, [seen.tool for seen in changed], _CHANGED)
        warnings += _told(server, [seen.tool for seen in remembered], _REMEMBERED)
    return Judged(tuple(listed), tuple(waiting), tuple(warnings))


def seen_of(server: Listed) -> Iterator[Seen]:
    """Each tool of a server once: as the first session that lists it does, whose form counts (RTE-3).

    It is destructive if any session says so.
    """
    first: dict[str, Definition] = {}
    destructive: set[str] = set()
    for credential in callers_of(server.settings).sessions:
        listing = server.listings.get(credential)
        for tool in () if listing is None else listing.tools:
            first.setdefault(tool.name, tool)
            if tool.destructive:
                destructive.add(tool.name)
    for name, tool in first.items():
        words = server.settings.tools.get(name, _PLAIN)
        if words.enabled:
            is_destructive = name in destructive or words.destructive is True
            form = {"parameters": tool.parameters, "output": tool.output}
            yield Seen(server.name, name, tool.schema_digest, is_destructive, form)


def _as_known(server: Listed, seen: Seen, approvals: Approvals) -> Seen:
    """The same, and destructive if it ever was, unless the operator takes that back (RTE-9c)."""
    known = approvals.known(seen.server, seen.tool)
    words = server.settings.tools.get(seen.tool, _PLAIN)
    if known is None or not known.destructive or words.destructive is False:
        return seen
    return replace(seen, destructive=True)


def _marked(server: Listed, destructive: set[str]) -> Listed:
    if not destructive:
        return server
    listings = {
        credential: replace(
            listing,
            tools=tuple(
                replace(tool, destructive=True) if tool.name in destructive else tool
                for tool in listing.tools
            ),
        )
        for credential, listing in server.listings.items()
    }
    return replace(server, listings=MappingProxyType(listings))


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
        "it is destructive, and its parameters or its result changed since it was approved:"
        f" session-runtime tools approve {name} shows how, and takes it",
    )


def _name(server: Listed, tool: str) -> str:
    return f"{server.label}.{canonical_name(tool)}"


def _told(server: Listed, tools: Sequence[str], what: str) -> Mapping[str, None]:
    """A line for each tool, and one for the rest of many."""
    key = dotted(("mcp", "servers", server.name, "tools"))
    told = [f"{key}: {tool!r} {what}" for tool in tools[:MOST_TOLD]]
    if len(tools) > MOST_TOLD:
        told.append(f"{key}: {len(tools) - MOST_TOLD} more tools changed in the same way")
    return dict.fromkeys(told)
