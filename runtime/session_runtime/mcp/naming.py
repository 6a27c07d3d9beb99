"""What tools of servers are called, and what the operator's words make of them (RTE-3).

Which session a call takes is decided in ``source``.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from session_runtime.config.keys import dotted
from session_runtime.config.mcp import McpServer, McpTool
from session_runtime.mcp.base import Definition, Listing
from session_runtime.mcp.callers import OWN, callers_of
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.names import END, RESULTS_READ, TOOL_SEARCH, canonical_name
from session_runtime.registry.spec import Annotations, Deprecated, ToolSpec
from session_runtime.types import JsonObject

_PLAIN: Final = McpTool()
_RESERVED: Final = (TOOL_SEARCH, END, RESULTS_READ)


@dataclass(frozen=True, slots=True)
class Listed:
    """A configured server with what its sessions list, by credential, as far as that is known."""

    name: str
    settings: McpServer
    listings: Mapping[str, Listing]

    @property
    def source_id(self) -> str:
        """The source that its tools belong to: the server, or its group."""
        group = self.settings.group
        return f"mcp:{self.name}" if group is None else f"mcp:group:{group}"

    @property
    def label(self) -> str:
        """What stands in front of its tools' names."""
        return self.settings.group or self.name

    @property
    def key(self) -> str:
        """Where it is configured."""
        return dotted(("mcp", "servers", self.name))


@dataclass(frozen=True, slots=True)
class Way:
    """One session that a tool can be called in, and what the server calls it there.

    ``key_argument`` is the argument that tells the server which calls are the same one, None if it
    knows none.
    """

    server: str
    credential: str
    native: str
    schema_digest: str
    key_argument: str | None = None


@dataclass(frozen=True, slots=True)
class NamedTool:
    """A tool and the ways to call it, the best first."""

    spec: ToolSpec
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """All usable tools by the id of their source, sorted by name, and what was left out."""

    tools: Mapping[str, tuple[NamedTool, ...]]
    refused: tuple[Quarantined, ...]


def name_tools(
    servers: Sequence[Listed], taken: Mapping[str, str], known: Mapping[str, ToolSpec]
) -> Named:
    """Name the tools of all servers; a pure function of what it is given.

    ``taken`` maps the names of all other tools to their sources. A tool that is as in ``known``, by name,
    keeps that very object.
    """
    taken = {**dict.fromkeys(_RESERVED, "the runtime"), **taken}
    found: list[_Candidate] = []
    refused: list[Quarantined] = []
    for members in _sources(servers):
        candidates, out = _candidates(members)
        found += candidates
        refused += out
    tools: dict[str, list[NamedTool]] = {server.source_id: [] for server in servers}
    for candidate, name, fault in _names(found, taken):
        if fault is not None:
            refused.append(Quarantined(name, candidate.lead.key, fault))
            continue
        tools[candidate.lead.source_id].append(_named(candidate, name, known))
    return Named(
        {source: tuple(sorted(of, key=_by_name)) for source, of in tools.items()},
        tuple(refused),
    )


def _by_name(tool: NamedTool) -> str:
    return tool.spec.name


@dataclass(frozen=True, slots=True)
class _Holder:
    """One session of one server that lists a tool, as it lists it."""

    server: Listed
    credential: str
    definition: Definition

    @property
    def words(self) -> McpTool:
        return self.server.settings.tools.get(self.definition.name, _PLAIN)

    @property
    def key(self) -> str:
        """Where the operator's words stand."""
        return dotted(("mcp", "servers", self.server.name, "tools", self.definition.name))

    @property
    def description(self) -> str:
        return self.words.description or self.definition.description

    @property
    def key_argument(self) -> str | None:
        wanted = self.words.idempotency_key
        return wanted if wanted in self.definition.parameters.get("properties", {}) else None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A tool of one source before it has a name; the first of its holders describes it."""

    lead: Listed
    canonical: str
    holders: tuple[_Holder, ...]

    @property
    def prefixed(self) -> str:
        return f"{self.lead.label}.{self.canonical}"


def _sources(servers: Sequence[Listed]) -> Iterator[tuple[Listed, ...]]:
    """The servers of each source, the one of the highest priority first."""
    by_source: dict[str, list[Listed]] = {}
    for server in servers:
        by_source.setdefault(server.source_id, []).append(server)
    for members in by_source.values():
        yield tuple(sorted(members, key=lambda member: -member.settings.priority))


def _candidates(members: tuple[Listed, ...]) -> tuple[list[_Candidate], list[Quarantined]]:
    """Bring together what the sessions of one source list under one name."""
    lead = members[0]
    holders: dict[str, list[_Holder]] = {}
    refused: list[Quarantined] = []
    for member in members:
        for credential in callers_of(member.settings).sessions:
            listing = member.listings.get(credential)
            if listing is None:
                continue
            refused += _refused(member, lead, listing)
            for canonical, definition in _one_of_each(member, lead, listing.tools, refused):
                holder = _Holder(member, credential, definition)
                if holder.words.enabled:
                    _join(holders.setdefault(canonical, []), holder, lead, canonical, refused)
    found = [_Candidate(lead, canonical, tuple(who)) for canonical, who in holders.items()]
    return found, list(dict.fromkeys(refused))


def _refused(member: Listed, lead: Listed, listing: Listing) -> Iterator[Quarantined]:
    for bad in listing.refused:
        words = member.settings.tools.get(bad.name, _PLAIN)
        if words.enabled:
            yield replace(bad, name=f"{lead.label}.{canonical_name(bad.name)}", place=member.key)


def _one_of_each(
    member: Listed, lead: Listed, tools: Iterable[Definition], refused: list[Quarantined]
) -> Iterator[tuple[str, Definition]]:
    """The tools of one list by canonical name; one whose name needs no change goes before others."""
    by_name: dict[str, Definition] = {}
    for tool in sorted(tools, key=lambda each: (canonical_name(each.name) != each.name, each.name)):
        canonical = canonical_name(tool.name)
        other = by_name.setdefault(canonical, tool)
        if other is not tool:
            reason = f"its name {tool.name!r} becomes that of the server's tool {other.name!r}"
            refused.append(Quarantined(f"{lead.label}.{canonical}", member.key, reason))
    yield from by_name.items()


def _join(
    holders: list[_Holder],
    holder: _Holder,
    lead: Listed,
    canonical: str,
    refused: list[Quarantined],
) -> None:
    """Add one more session that lists a tool, unless what it lists is another tool of that name.

    What one credential is told is not shown to the callers of another one, so that their descriptions
    must be the same; servers of a group may word them as they like.
    """
    fault = _apart(holders, holder)
    if fault is None:
        holders.append(holder)
        return
    why, way_out = fault
    refused.append(
        Quarantined(
            f"{lead.label}.{canonical}",
            _place(holder),
            f"{why}, so that callers of {_session(holder)} do without it: {way_out}, or give it"
            " a server of its own",
        )
    )


def _apart(holders: Sequence[_Holder], holder: _Holder) -> tuple[str, str] | None:
    """Why a session does not list the tool that the others do, and the way out; None if it does."""
    if not holders:
        return None
    first, key = holders[0], holder.key
    apart = first.credential != OWN or holder.credential != OWN
    if holder.definition.schema_digest != first.definition.schema_digest:
        why = f"{_session(first)} lists it with other parameters or another result"
        return why, "let both list it alike"
    if apart and holder.description != first.description:
        why = f"{_session(first)} lists it with another description"
        return why, f"give it one description at {key}"
    switch = holder.words.feature
    other = next((each for each in holders if each.words.feature not in (None, switch)), None)
    if switch is not None and other is not None:
        why = f"{_session(other)} has it with the feature {other.words.feature!r} instead of {switch!r}"
        return why, f"set {key}.feature to the same"
    return None


def _place(holder: _Holder) -> str:
    if holder.credential == OWN:
        return holder.server.key
    return dotted(("mcp", "servers", holder.server.name, "credentials", holder.credential))


def _session(holder: _Holder) -> str:
    own = "" if holder.credential == OWN else f" with the credential {holder.credential!r}"
    return f"server {holder.server.name!r}{own}"


def _names(
    found: Sequence[_Candidate], taken: Mapping[str, str]
) -> Iterator[tuple[_Candidate, str, str | None]]:
    """Each tool with its name, and why it cannot have it."""
    prefixed = {each.prefixed: each for each in found if each.lead.settings.naming == "prefix"}
    fixed = {**{name: each.lead.source_id for name, each in prefixed.items()}, **taken}
    bare = Counter(each.canonical for each in found if each.lead.settings.naming != "prefix")
    insisting: dict[str, list[str]] = {}
    for each in found:
        if each.lead.settings.naming == "bare":
            insisting.setdefault(each.canonical, []).append(each.lead.source_id)
    holders: dict[str, str] = dict(taken)
    for each in found:
        fault = None
        match each.lead.settings.naming:
            case "prefix":
                name = each.prefixed
            case "bare":
                name = each.canonical
                others = [id_ for id_ in insisting[name] if id_ != each.lead.source_id]
                if name in fixed or others:
                    fault = _also(name, fixed.get(name) or others[0], each)
            case "auto":
                shared = each.canonical in fixed or bare[each.canonical] > 1
                name = each.prefixed if shared else each.canonical
        if fault is None and name in holders:
            fault = _also(name, holders[name], each)
        if fault is None:
            holders[name] = each.lead.source_id
        yield each, name, fault


def _also(name: str, other: str, each: _Candidate) -> str:
    """Name both, and the way out."""
    own = each.lead.source_id
    tool = each.holders[0].definition.name
    off = dotted(("mcp", "servers", each.lead.name, "tools", tool, "enabled"))
    if each.lead.settings.naming == "bare":
        way_out = f'set {each.lead.key}.naming = "prefix" to call it {each.prefixed}'
    else:
        way_out = "rename the server or the other tool"
    return f"tool {name!r} of {own!r} also exists in {other!r}: {way_out}, or set {off} = false"


def _named(candidate: _Candidate, name: str, known: Mapping[str, ToolSpec]) -> NamedTool:
    spec = _spec(candidate, name)
    old = known.get(name)
    ways = tuple(
        Way(
            each.server.name,
            each.credential,
            each.definition.name,
            each.definition.schema_digest,
            each.key_argument,
        )
        for each in candidate.holders
    )
    return NamedTool(old if old is not None and _kept(old) == _kept(spec) else spec, ways)


def _kept(spec: ToolSpec) -> tuple[object, ...]:
    """What must be equal for a tool to keep its spec; ``digest`` covers what callers notice."""
    limits = (spec.timeout_s, spec.idle_timeout_s, spec.max_result_chars)
    return spec.digest, spec.source_id, spec.native_name, spec.place, limits, spec.output


def _spec(candidate: _Candidate, name: str) -> ToolSpec:
    """Describe a tool as its first holder does; what makes it safer is taken from all of them."""
    holders = candidate.holders
    first, words = holders[0], holders[0].words
    settings = first.server.settings
    destructive = any(
        each.definition.destructive or each.words.destructive is True for each in holders
    )
    annotations = Annotations(
        destructive=destructive,
        read_only=all(each.words.read_only for each in holders),
        idempotent=all(each.words.idempotent for each in holders),
    )
    hard = words.hard_timeout_s or settings.hard_timeout_s
    deprecated = None
    if words.deprecated is not None:
        deprecated = Deprecated(words.deprecated, words.replacement)
    spec = ToolSpec(
        name=name,
        description=first.description,
        parameters=_without(first.definition.parameters, first.key_argument),
        origin="mcp",
        source_id=candidate.lead.source_id,
        native_name=first.definition.name,
        digest="",
        annotations=annotations,
        requires=frozenset(role for each in holders for role in each.words.requires),
        feature=next((each.words.feature for each in holders if each.words.feature), None),
        aliases=words.aliases,
        search_hints=words.search_hints,
        examples=words.examples,
        deprecated=deprecated,
        timeout_s=hard,
        max_result_chars=words.max_result_chars,
        place=first.server.key,
        output=first.definition.output,
        idle_timeout_s=min(words.idle_timeout_s or settings.idle_timeout_s, hard),
        keyed=all(each.key_argument is not None for each in holders),
    )
    return replace(spec, digest=_digest(spec, first))


def _without(parameters: JsonObject, argument: str | None) -> JsonObject:
    """The parameters that a model fills in: all but the one that the runtime does."""
    if argument is None:
        return parameters
    properties = {
        name: each for name, each in parameters.get("properties", {}).items() if name != argument
    }
    required = [name for name in parameters.get("required", ()) if name != argument]
    return {**parameters, "properties": properties, "required": required}


def _digest(spec: ToolSpec, first: _Holder) -> str:
    """Cover what the server says and all that the operator says which a caller could notice."""
    deprecated = spec.deprecated
    said = [
        first.definition.digest,
        first.key_argument,
        spec.description,
        spec.annotations.destructive,
        spec.annotations.read_only,
        spec.annotations.idempotent,
        sorted(spec.requires),
        spec.feature,
        spec.aliases,
        spec.search_hints,
        spec.examples,
        None if deprecated is None else [deprecated.reason, deprecated.replacement],
        spec.keyed,
    ]
    text = json.dumps(said, ensure_ascii=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).hexdigest()
