"""All sessions with servers, each shared by the generations that need it and closed by the last of them.

What a generation makes of their lists is in ``servers``.
"""

import asyncio
import hashlib
import importlib
import importlib.util
import json
import logging
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from session_runtime.config.keys import dotted
from session_runtime.config.mcp import McpServer
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError, Problem
from session_runtime.mcp.base import Listing
from session_runtime.mcp.callers import OWN, callers_of
from session_runtime.mcp.session import OpenLink, Session, Wanted
from session_runtime.threads import in_thread

SDK: Final = "mcp"

_log: Final = logging.getLogger(__name__)

Known = Mapping[tuple[str, str], Listing]
"""Lists by server and credential."""

NOTHING_LISTED: Final[Known] = MappingProxyType({})


@dataclass(slots=True)
class _Shared:
    """A session, and how many hold it."""

    session: Session
    holders: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """Sessions that somebody holds, by server and credential; ``new`` ones were opened just now."""

    sessions: Mapping[tuple[str, str], Session]
    keys: tuple[str, ...]
    new: tuple[Session, ...]

    async def settled(self, wait_s: float) -> None:
        """Wait until the first attempt of each new session is over, at most ``wait_s`` seconds (RTE-1)."""
        if not self.new:
            return
        waiting = [
            asyncio.create_task(session.settled(), name=f"wait for {session.wanted.name}")
            for session in self.new
        ]
        try:
            await asyncio.wait(waiting, timeout=wait_s)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        for session, task in zip(self.new, waiting, strict=True):
            if task.cancelled() and session.listing is None:
                _log.warning(
                    "server %s has no tools yet, after mcp.wait_s = %g s: they join when it lists them",
                    session.wanted.name,
                    wait_s,
                )


class ServerPool:
    """Opens a session for each server, credential and way of connecting that somebody holds (RTE-2).

    ``changed`` is set whenever a session has another list than before; who heeds that clears it.
    ``open_link`` stands in for the real connections.
    """

    def __init__(self, open_link: OpenLink | None = None) -> None:
        self.changed = asyncio.Event()
        self._open_link = open_link
        self._shared: dict[str, _Shared] = {}
        self._pepper = secrets.token_bytes(32)

    async def hold(self, snapshot: ConfigSnapshot, known: Known, *, trial: bool = False) -> Held:
        """Hold all sessions that the settings ask for; nobody waits for those that are new.

        ``known`` lists hold until a new session has its own. With ``trial`` nothing is opened, and only
        what is open already is held. Raises ConfigError if the library for servers is not installed.
        """
        wanted = tuple(self._wanted(snapshot))
        if wanted:
            open_link = await self._library(trial=trial)
            return self._hold(wanted, known, open_link)
        return Held({}, (), ())

    async def release(self, keys: Collection[str]) -> None:
        """Let go of sessions that were held; those that nobody holds any more are closed."""
        over = []
        for key in keys:
            shared = self._shared[key]
            shared.holders -= 1
            if not shared.holders:
                del self._shared[key]
                over.append(shared.session)
        await asyncio.gather(*(session.aclose() for session in over))

    def _hold(self, wanted: Sequence[Wanted], known: Known, open_link: OpenLink | None) -> Held:
        sessions: dict[tuple[str, str], Session] = {}
        new: list[Session] = []
        keys: list[str] = []
        for each in wanted:
            place = each.server, each.credential
            shared = self._shared.get(each.key)
            if shared is None and open_link is not None:
                session = Session(each, open_link, known.get(place), self.changed.set)
                shared = self._shared[each.key] = _Shared(session)
                new.append(session)
            if shared is not None:
                shared.holders += 1
                keys.append(each.key)
                sessions[place] = shared.session
        return Held(sessions, tuple(keys), tuple(new))

    async def _library(self, *, trial: bool) -> OpenLink | None:
        """What makes connections; None in a trial, which only looks whether there is something."""
        if self._open_link is None:
            if importlib.util.find_spec(SDK) is None:
                raise ConfigError(
                    [
                        Problem(
                            "servers need the extra mcp, which is not installed: pip install"
                            " '.[mcp]' in the source tree of session-runtime",
                            key=dotted(("mcp", "servers")),
                        )
                    ]
                )
            if not trial:
                self._open_link = await in_thread("load the library for servers", _load)
        return None if trial else self._open_link

    def _wanted(self, snapshot: ConfigSnapshot) -> Iterator[Wanted]:
        folder = Path.cwd() if snapshot.path is None else snapshot.path.parent
        state_dir = snapshot.settings.runtime.state_dir
        for name, server in snapshot.settings.mcp.servers.items():
            if server.enabled:
                for credential in callers_of(server).sessions:
                    key = self._key(name, credential, server, folder)
                    yield Wanted(name, credential, server, folder, state_dir, key)

    def _key(self, name: str, credential: str, server: McpServer, folder: Path) -> str:
        """Equal where a connection is made in the same way, secrets included; good in memory only."""
        own = server.credentials[credential] if credential != OWN else None
        secret = {
            kind: {variable: value.get_secret_value() for variable, value in table.items()}
            for kind, table in (
                ("env", {**server.env, **(own.env if own else {})}),
                ("headers", {**server.headers, **(own.headers if own else {})}),
            )
        }
        fields = _OF_COMMANDS if server.url is None else _OF_ADDRESSES
        made = {field: str(getattr(server, field)) for field in fields}
        text = json.dumps([name, credential, str(server.cwd or folder), secret, made])
        digest = hashlib.blake2b(text.encode("ascii"), key=self._pepper, digest_size=16)
        return f"{name}/{credential}:{digest.hexdigest()}"


_OF_ALL: Final = (
    "protocol",
    "connect_timeout_s",
    "list_timeout_s",
    "heartbeat_s",
    "refresh_ttl_s",
)
_OF_COMMANDS: Final = ("command", "args", *_OF_ALL)
_OF_ADDRESSES: Final = ("url", "hard_timeout_s", *_OF_ALL)


def _load() -> OpenLink:
    """Import what stands on the library: it takes a second or two, and not everybody has servers."""
    opened: OpenLink = importlib.import_module("session_runtime.mcp.connection").open_connection
    return opened
