"""Remembers in which form each tool of a server was first seen, and which later forms were approved (RTE-4).

What becomes of a tool that waits for an approval is decided where tools are named, in ``mcp/naming``.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from session_runtime.config.durable import own_folder, replace_file
from session_runtime.errors import StartError, TransientError
from session_runtime.threads import Worker
from session_runtime.types import JsonObject
from session_runtime.wire import strict_json, to_bytes

FILE: Final = "approvals.json"
MAX_SEEN: Final = 100_000
LAST_WRITE_S: Final = 5.0

_VERSION: Final = 1
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """A tool as a server lists it, by the server's name for it; ``schema`` is the digest of its schemas."""

    server: str
    tool: str
    schema: str
    destructive: bool


@dataclass(frozen=True, slots=True)
class New:
    """It was never seen: it is trusted as it is, and remembered."""


@dataclass(frozen=True, slots=True)
class Approved:
    """It is as it was first seen, or as it was approved."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Its schemas are others now; it ``waits`` for an approval if it is destructive, or was."""

    waits: bool


Verdict = New | Approved | Changed
_Known = Mapping[tuple[str, str], Seen]


class Approvals:
    """What is known of the tools of servers, over all generations; without a file, until the process ends.

    ``judge`` may be called in any thread, all else belongs to the event loop.
    """

    def __init__(self, file: "ApprovalFile | None" = None, known: _Known | None = None) -> None:
        self._file = file
        self._known: dict[tuple[str, str], Seen] = dict(known or {})
        self._drifted = 0
        self._worker: Worker | None = None
        self._last: asyncio.Future[None] | None = None

    @property
    def drifted(self) -> int:
        """How often a tool that may change by itself was seen with other schemas."""
        return self._drifted

    def judge(self, server: str, tool: str, schema: str, destructive: bool) -> Verdict:
        """Compare a tool with how it is known; pure."""
        known = self._known.get((server, tool))
        if known is None:
            return New()
        if known.schema == schema:
            return Approved()
        return Changed(waits=destructive or known.destructive)

    def saw(self, tools: Iterable[Seen]) -> None:
        """Remember tools that came into force; those that wait for an approval stay as they are known."""
        news: dict[tuple[str, str], Seen] = {}
        for tool in tools:
            match self.judge(tool.server, tool.tool, tool.schema, tool.destructive):
                case New() if len(self._known) + len(news) < MAX_SEEN:
                    news[tool.server, tool.tool] = tool
                case Changed(waits=False):
                    self._drifted += 1
                    news[tool.server, tool.tool] = tool
                case Approved() if tool.destructive and not self._is_destructive(tool):
                    news[tool.server, tool.tool] = tool
                case _:
                    pass
        if news:
            self._remember(news)
            self._keep(news).add_done_callback(_tell_trouble)

    async def approve(self, tools: Iterable[Seen]) -> None:
        """Take tools as they are now.

        Raises TransientError (``approvals.not_kept``) if that acts, but a restart would forget it.
        """
        news = {(tool.server, tool.tool): tool for tool in tools}
        self._remember(news)
        try:
            await self._keep(news)
        except OSError as error:
            raise TransientError(
                f"approved as long as this process runs, but no longer: {error}",
                code="approvals.not_kept",
            ) from error

    async def aclose(self) -> None:
        """Wait for the last write, a few seconds at most."""
        if self._worker is not None:
            self._worker.end()
        if self._last is not None:
            await asyncio.wait([self._last], timeout=LAST_WRITE_S)

    def _is_destructive(self, tool: Seen) -> bool:
        known = self._known.get((tool.server, tool.tool))
        return known is not None and known.destructive

    def _remember(self, news: Mapping[tuple[str, str], Seen]) -> None:
        self._known = {**self._known, **news}  # another thread may be reading the old one

    def _keep(self, news: Mapping[tuple[str, str], Seen]) -> "asyncio.Future[None]":
        if self._file is None:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            done.set_result(None)
            return done
        if self._worker is None:
            self._worker = Worker()
        self._last = self._worker.run("keep approvals", partial(self._file.add, news))
        return self._last


class ApprovalFile:
    """``approvals.json`` of a state directory; several processes may add to it. Every method blocks."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE

    def read(self) -> dict[tuple[str, str], Seen]:
        """Read what is known; nothing if there is no file. Raises OSError and ValueError."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        return _read(strict_json(content.decode()))

    def add(self, news: Mapping[tuple[str, str], Seen]) -> None:
        """Add to it in one step; raises OSError with nothing changed."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with own_folder(self._path.parent) as folder:
            try:
                known = self.read()
            except ValueError as error:
                raise OSError(f"{self._path}: {error}") from error
            replace_file(folder, FILE, to_bytes(_to_json({**known, **news})) + b"\n")


def open_approvals(state_dir: Path) -> Approvals:
    """Read what is known in a state directory; blocks.

    Raises StartError (``start.approvals``) if that cannot be known: a tool that changed would be trusted.
    """
    file = ApprovalFile(state_dir)
    try:
        return Approvals(file, file.read())
    except (OSError, ValueError) as error:
        raise StartError(
            f"it cannot be known which tools of servers were approved: {state_dir / FILE}: {error}; mend"
            " the file, or delete it to trust what the servers list now",
            code="start.approvals",
        ) from error


def _tell_trouble(written: "asyncio.Future[None]") -> None:
    if not written.cancelled() and (error := written.exception()) is not None:
        _log.warning(
            "the forms of new tools could not be kept, and are new after a restart: %s", error
        )


def _to_json(known: _Known) -> JsonObject:
    servers: dict[str, dict[str, JsonObject]] = {}
    for seen in sorted(known.values(), key=lambda each: (each.server, each.tool)):
        servers.setdefault(seen.server, {})[seen.tool] = {
            "schema": seen.schema,
            "destructive": seen.destructive,
        }
    return {"version": _VERSION, "servers": servers}


def _read(data: object) -> dict[tuple[str, str], Seen]:
    """Read the content of the file; ValueError for anything that this version did not write."""
    match data:
        case {"version": 1, "servers": dict(servers)}:
            return {
                (server, tool): _seen(server, tool, said)
                for server, tools in servers.items()
                for tool, said in _table(tools).items()
            }
        case {"version": int(version)} if version != _VERSION:
            raise ValueError(f"it has version {version}, and only version {_VERSION} can be read")
    raise ValueError("it does not hold version and servers")


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError("a server in it is no object")
    return value


def _seen(server: str, tool: str, said: object) -> Seen:
    match said:
        case {"schema": str(schema), "destructive": bool(destructive)}:
            return Seen(server, tool, schema, destructive)
    raise ValueError(f"what it says of tool {tool[:80]!r} of server {server[:80]!r} cannot be read")
