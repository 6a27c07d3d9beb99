"""The servers of one generation: what their sessions listed when it was prepared, and how they are now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from session_runtime.config.mcp import McpSettings
from session_runtime.mcp.advice import advice
from session_runtime.mcp.approved import Waiting, judge, seen_of
from session_runtime.mcp.base import Listing, State
from session_runtime.mcp.callers import OWN, callers_of
from session_runtime.mcp.naming import Listed, name_tools
from session_runtime.mcp.pool import Held, Known
from session_runtime.mcp.session import Session
from session_runtime.mcp.source import McpSource, Sessions, open_sources
from session_runtime.mcp.way_out import with_way_out
from session_runtime.registry.approval_file import Seen
from session_runtime.registry.approvals import Approvals
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import Identity


@dataclass(frozen=True, slots=True, eq=False)
class Servers:
    """All servers that are configured and enabled; what they list never changes here.

    ``sessions`` are by server and credential, ``held`` their keys in the pool.
    """

    listed: tuple[Listed, ...] = ()
    sessions: Sessions = field(default_factory=dict)
    sources: tuple[McpSource, ...] = ()
    refused: tuple[Quarantined, ...] = ()
    warnings: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names, as configured."""
        return tuple(server.name for server in self.listed)

    @property
    def missing(self) -> tuple[str, ...]:
        """Servers of which a session is not ready now."""
        down = {name for (name, _), session in self.sessions.items() if not session.ready}
        return tuple(name for name in self.names if name in down)

    @property
    def untried(self) -> tuple[str, ...]:
        """Servers that a session is lacking of, which only a trial has: none was opened for it."""
        return tuple(
            server.name
            for server in self.listed
            if any(
                (server.name, credential) not in self.sessions
                for credential in callers_of(server.settings).sessions
            )
        )

    @property
    def outdated(self) -> bool:
        """Whether a session lists something else now than when this was made."""
        known = _frozen(self)
        now = lists_of(self.sessions)
        return any(
            place not in known or known[place].content != listing.content
            for place, listing in now.items()
        )

    @property
    def ways(self) -> tuple[object, ...]:
        """By which sessions each tool can be called, to be compared."""
        return tuple((source.id, source.ways) for source in self.sources)

    def unavailable(self, caller: Identity) -> tuple[McpSource, ...]:
        """The sources where ``caller`` has sessions, but none that is ready now."""
        return tuple(source for source in self.sources if source.is_unavailable_to(caller))

    def states(self) -> Mapping[str, State]:
        """How the best session of each source is now, by the source's id."""
        of: dict[str, set[State]] = {}
        sources = {server.name: server.source_id for server in self.listed}
        for (name, _), session in self.sessions.items():
            of.setdefault(sources[name], set()).add(session.health.state)
        return {
            source: next(state for state in _BEST_FIRST if state in states)
            for source, states in of.items()
        }

    def seen(self) -> Iterator[Seen]:
        """Each tool that is listed, in the form in which it is (RTE-4)."""
        return (seen for server in self.listed for seen in seen_of(server))

    def of(self, name: str) -> Mapping[str, Session]:
        """The sessions of one server by credential; KeyError if there is no such server."""
        return self._by_server()[name]

    def now(self) -> Known:
        """What the sessions list now, for those that take their places."""
        return lists_of(self.sessions)

    def status(self) -> Iterator[dict[str, Any]]:
        """Each server for operators, as JSON objects; with its credentials, if it has any."""
        sessions = self._by_server()
        for server in self.listed:
            credentials = [
                {"name": credential, **_shown(session)}
                for credential, session in sessions[server.name].items()
                if credential != OWN
            ]
            own = sessions[server.name].get(OWN)
            yield {
                "id": f"mcp:{server.name}",
                "name": server.name,
                "group": server.settings.group,
                **({} if own is None else _shown(own)),
                **({"credentials": credentials} if credentials else {}),
            }

    def _by_server(self) -> Mapping[str, Mapping[str, Session]]:
        found: dict[str, dict[str, Session]] = {name: {} for name in self.names}
        for (name, credential), session in self.sessions.items():
            found[name][credential] = session
        return found


_BEST_FIRST: Final[tuple[State, ...]] = ("ready", "connecting", "down", "stopped")


def open_servers(
    settings: McpSettings,
    held: Held,
    now: Known,
    before: Servers,
    taken: Mapping[str, str],
    approvals: Approvals,
) -> Servers:
    """Make tools of what the sessions list ``now``; takes long for many tools, may run in any thread.

    ``taken`` are the names of all other tools with their sources. Tools that are as ``before`` keep their
    specs. A server that is not connected to keeps the list that it had ``before``. Tools that ``approvals``
    lets wait are left out.
    """
    listings = {**_frozen(before), **now}
    listed = tuple(
        Listed(
            name,
            server,
            MappingProxyType(
                {
                    credential: listings[name, credential]
                    for credential in callers_of(server).sessions
                    if (name, credential) in listings
                }
            ),
        )
        for name, server in settings.servers.items()
        if server.enabled
    )
    judged = judge(listed, approvals)
    named = name_tools(judged.listed, taken, _specs(before.sources))
    return Servers(
        listed,
        MappingProxyType(dict(held.sessions)),
        open_sources(listed, named.tools, held.sessions),
        named.refused,
        (
            *(told for server in listed for told in advice(server)),
            *judged.warnings,
        ),
        held.keys,
        judged.waiting,
    )


def _frozen(servers: Servers) -> dict[tuple[str, str], Listing]:
    return {
        (server.name, credential): listing
        for server in servers.listed
        for credential, listing in server.listings.items()
    }


def lists_of(sessions: Sessions) -> Known:
    """What the sessions list now; used on the event loop, like all of a session."""
    return {
        place: session.listing for place, session in sessions.items() if session.listing is not None
    }


def _specs(sources: Sequence[McpSource]) -> dict[str, ToolSpec]:
    return {spec.name: spec for source in sources for spec in source.specs}


def _shown(session: Session) -> dict[str, Any]:
    health, listing = session.health, session.listing
    return {
        "state": health.state,
        "since": health.since,
        "error": with_way_out(session.wanted.server, session.wanted.settings, health.error) or None,
        "protocol": health.protocol or None,
        "server": health.server or None,
        "version": health.version or None,
        "tools": 0 if listing is None else len(listing.tools),
        "refused": 0 if listing is None else len(listing.refused),
        "stale": listing is not None and listing.stale,
        "calls": health.calls,
        "failures": health.failures,
        "restarts": health.restarts,
        "skipped_lines": health.skipped_lines,
        "retry_in_s": health.retry_in_s,
        "pid": health.pid,
    }
