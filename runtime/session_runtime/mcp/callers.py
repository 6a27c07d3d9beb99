"""Which session of a server a caller has: that of a credential about it, or the server's own (RTE-2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.config.mcp import McpCredential, McpServer
from session_runtime.registry.patterns import Patterns
from session_runtime.types import Identity

OWN: Final = ""
"""Stands for the session that a server has without any of its credentials."""


@dataclass(frozen=True, slots=True)
class Callers:
    """The credentials of one server in their order; what an identity does not state is no match."""

    credentials: tuple["_Credential", ...]
    others_too: bool

    def session_of(self, identity: Identity) -> str | None:
        """The credential of the session that an identity has, ``OWN``, or None for none at all."""
        for credential in self.credentials:
            if credential.is_about(identity):
                return credential.name
        return OWN if self.others_too else None

    @property
    def sessions(self) -> tuple[str, ...]:
        """All sessions that somebody may have; the server's own comes first."""
        own = (OWN,) if self.others_too else ()
        return (*own, *(credential.name for credential in self.credentials))


@dataclass(frozen=True, slots=True)
class _Credential:
    """Some callers; a condition that is None always holds."""

    name: str
    roles: frozenset[str]
    users: Patterns | None
    channels: Patterns | None

    def is_about(self, identity: Identity) -> bool:
        if self.roles and self.roles.isdisjoint(identity.roles or frozenset()):
            return False
        return _holds(self.users, identity.user) and _holds(self.channels, identity.channel)


def callers_of(server: McpServer) -> Callers:
    """Compile the credentials of a server."""
    return Callers(_compiled(server.credentials), not server.credentials_only)


def _compiled(credentials: Mapping[str, McpCredential]) -> tuple[_Credential, ...]:
    return tuple(
        _Credential(
            name,
            frozenset(each.roles),
            Patterns(each.users) if each.users else None,
            Patterns(each.channels) if each.channels else None,
        )
        for name, each in credentials.items()
    )


def _holds(condition: Patterns | None, value: str | None) -> bool:
    return condition is None or (value is not None and value in condition)
