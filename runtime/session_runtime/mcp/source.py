"""The tools of one server, or of a group of equal ones, as a ``ToolSource`` with a list that never changes.

What the tools are called is decided in ``naming``, whose session a caller has in ``callers``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from session_runtime.config.mcp import McpServer
from session_runtime.errors import PermanentError
from session_runtime.handler import HandlerContext
from session_runtime.mcp.callers import OWN, Callers, callers_of
from session_runtime.mcp.naming import Listed, NamedTool, Way
from session_runtime.mcp.session import Session
from session_runtime.registry.spec import Audience, Limits, Route, ToolSpec
from session_runtime.types import Identity

FAILURES: Final = 5
PAUSE_S: Final = 30.0
NOT_FOUND: Final = "mcp.tool_not_found"

Sessions = Mapping[tuple[str, str], Session]


@dataclass(frozen=True, slots=True)
class Member:
    """One server of a source, with the sessions that its callers have, by credential.

    ``limits`` hold for all of them together, but failures count for each alone.
    """

    name: str
    callers: Callers
    limits: Limits
    sessions: Mapping[str, Session]

    def session_of(self, identity: Identity) -> Session | None:
        """The session that an identity has here; None for none at all."""
        credential = self.callers.session_of(identity)
        return None if credential is None else self.sessions.get(credential)


class McpSource:
    """Routes the calls of ``tools`` to the servers in ``members``, the best one first.

    ``label`` is the name of the server or group, which stands in front of its tools' names.
    """

    def __init__(
        self, source_id: str, label: str, tools: Sequence[NamedTool], members: Sequence[Member]
    ) -> None:
        self.label: Final = label
        self._id = source_id
        self._tools = MappingProxyType({tool.spec.name: tool for tool in tools})
        self._members = tuple(members)
        self._audience = _audience(self._tools, self._members)

    @property
    def id(self) -> str:
        """``mcp:`` and the name of the server, or ``mcp:group:`` and that of the group."""
        return self._id

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, sorted by name; always the same."""
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def ways(self) -> tuple[tuple[Way, ...], ...]:
        """By which sessions each of them can be called."""
        return tuple(tool.ways for tool in self._tools.values())

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        """The same."""
        return self.specs

    def is_loaded(self, spec: ToolSpec) -> bool:
        """There is no code to be loaded: every call may have reached the server."""
        del spec
        return True

    @property
    def audience(self) -> Audience | None:
        """Who is offered what; None if no server has credentials."""
        return self._audience

    def routes(self, spec: ToolSpec, identity: Identity) -> Sequence[Route]:
        """The sessions of an identity that list the tool, in the order of priority (RTE-2)."""
        ways = {(way.server, way.credential): way for way in self._tools[spec.name].ways}
        found = []
        for member in self._members:
            credential = member.callers.session_of(identity)
            way = None if credential is None else ways.get((member.name, credential))
            if way is not None:
                found.append(_route(member, way, spec))
        return found

    def is_unavailable_to(self, identity: Identity) -> bool:
        """Whether an identity has sessions here, but none that is ready now."""
        sessions = [member.session_of(identity) for member in self._members]
        own = [session for session in sessions if session is not None]
        return bool(own) and not any(session.ready for session in own)

    async def aclose(self) -> None:
        """Nothing is held: the sessions are shared, and closed by the last generation that uses them."""


def _route(member: Member, way: Way, spec: ToolSpec) -> Route:
    session = member.sessions[way.credential]
    return Route(
        f"mcp:{way.server}",
        partial(_call_approved if spec.annotations.destructive else _call, session, way),
        member.limits,
        partial(_obstacle, session),
        session.wanted.key,
    )


def _obstacle(session: Session) -> str | None:
    if session.ready:
        return None
    return f"the server {session.wanted.server!r} is temporarily unavailable"


async def _call_approved(
    session: Session, way: Way, arguments: Mapping[str, Any], context: HandlerContext
) -> object:
    """Call a destructive tool, unless its form is another by now than the one that is in force (RTE-4)."""
    listing = session.listing
    if listing is not None and not _lists(session, way):
        raise PermanentError(
            f"it is destructive and changed at the server {way.server!r}, or is gone there",
            code=NOT_FOUND,
        )
    return await _call(session, way, arguments, context)


async def _call(
    session: Session, way: Way, arguments: Mapping[str, Any], context: HandlerContext
) -> object:
    """Call, once more if the server did not know a tool that it still lists in the same form (RTE-4)."""
    key = context.idempotency_key
    if way.key_argument is not None:
        arguments = {**arguments, way.key_argument: key}
    try:
        return await session.call(way.native, arguments, key, context.on_progress, context.trace)
    except PermanentError as error:
        if error.code != NOT_FOUND:
            raise
    await session.refresh()
    if not _lists(session, way):
        raise PermanentError(
            f"the server {way.server!r} does not offer it in this form any more", code=NOT_FOUND
        )
    return await session.call(way.native, arguments, key, context.on_progress, context.trace)


def _lists(session: Session, way: Way) -> bool:
    listing = session.listing
    return listing is not None and any(
        tool.name == way.native and tool.schema_digest == way.schema_digest
        for tool in listing.tools
    )


@dataclass(frozen=True, slots=True)
class _Audience:
    """Callers by the session that they have of each member."""

    members: tuple[Member, ...]
    names: Mapping[str, frozenset[str]]

    def kinds_of(self, identity: Identity) -> Sequence[str]:
        """The sessions of an identity, one of each member at most."""
        return tuple(
            _kind(member.name, credential)
            for member in self.members
            if (credential := member.callers.session_of(identity)) is not None
        )

    def offered(self) -> Mapping[str, frozenset[str]]:
        """The tools that each session lists."""
        return self.names


def _audience(tools: Mapping[str, NamedTool], members: tuple[Member, ...]) -> _Audience | None:
    if all(member.callers.sessions == (OWN,) for member in members):
        return None
    by_kind: dict[str, set[str]] = {}
    for name, tool in tools.items():
        for way in tool.ways:
            by_kind.setdefault(_kind(way.server, way.credential), set()).add(name)
    return _Audience(
        members, MappingProxyType({kind: frozenset(names) for kind, names in by_kind.items()})
    )


def _kind(server: str, credential: str) -> str:
    return f"{server}/{credential}"


def open_sources(
    servers: Sequence[Listed], tools: Mapping[str, Sequence[NamedTool]], sessions: Sessions
) -> tuple[McpSource, ...]:
    """One source for each server or group, in the order in which they are configured."""
    members: dict[str, list[Listed]] = {}
    for server in servers:
        members.setdefault(server.source_id, []).append(server)
    return tuple(
        McpSource(source_id, of[0].label, tools[source_id], [*_members(of, sessions)])
        for source_id, of in members.items()
    )


def _members(servers: Sequence[Listed], sessions: Sessions) -> Iterator[Member]:
    for server in sorted(servers, key=lambda each: -each.settings.priority):
        own = {cred: each for (name, cred), each in sessions.items() if name == server.name}
        yield Member(
            server.name,
            callers_of(server.settings),
            _limits(server.settings),
            MappingProxyType(own),
        )


def _limits(settings: McpServer) -> Limits:
    return Limits(settings.max_concurrency, settings.rate_per_minute, FAILURES, PAUSE_S)
