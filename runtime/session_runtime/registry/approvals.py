"""Remembers of each tool of a server the form in which it may be used (RTE-4).

That is the form in which it was first seen, in which a harmless one was seen last, or which was approved.

What becomes of a tool that waits for an approval is decided where tools are named, in ``mcp/naming``.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from session_runtime.config.durable import own_folder, replace_file
from session_runtime.errors import StartError, TransientError
from session_runtime.threads import Worker
from session_runtime.types import JsonObject
from session_runtime.wire import strict_json, to_bytes

FILE: Final = "approvals.json"
MOST_OF_A_SERVER: Final = 20_000
"""Tools of one server that are known: twice as many as a list may hold."""

MOST_FORM_CHARS: Final = 16_384
MOST_FORMS_CHARS: Final = 262_144
"""How much of one form, and of all forms of a server, is kept to be shown; digests are kept of all."""

LAST_WRITE_S: Final = 5.0

_VERSION: Final = 1
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """A tool as a server lists it, by the server's name for it; ``schema`` is the digest of its schemas.

    ``form`` are those schemas, to be shown to an operator; None if they were not kept.
    """

    server: str
    tool: str
    schema: str
    destructive: bool
    form: JsonObject | None = field(default=None, compare=False, repr=False)

    @property
    def digest(self) -> str:
        """Stands for all that an approval is about, in 16 hexadecimal digits."""
        text = json.dumps([self.schema, self.destructive])
        return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


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
_Key = tuple[str, str]
_Known = Mapping[_Key, Seen]


class Approvals:
    """What is known of the tools of servers, over all generations; without a file, until the process ends.

    ``judge`` may be called in any thread, all else belongs to the event loop.
    """

    def __init__(self, file: "ApprovalFile | None" = None, known: _Known | None = None) -> None:
        self._file = file
        self._known: dict[str, dict[str, Seen]] = {}
        self._drifted = 0
        self._full: set[str] = set()
        self._worker: Worker | None = None
        self._last: asyncio.Future[None] | None = None
        self._change((known or {}).values(), ())

    @property
    def drifted(self) -> int:
        """How often a tool that may change by itself was seen with other schemas."""
        return self._drifted

    def known(self, server: str, tool: str) -> Seen | None:
        """In which form a tool may be used; None if it was never seen."""
        return self._known.get(server, {}).get(tool)

    def judge(self, server: str, tool: str, schema: str, destructive: bool) -> Verdict:
        """Compare a tool with how it is known; pure."""
        known = self.known(server, tool)
        if known is None:
            return New()
        if known.schema == schema:
            return Approved()
        return Changed(waits=destructive or known.destructive)

    def saw(self, tools: Iterable[Seen]) -> None:
        """Remember what servers list in a generation that came into force; raises nothing.

        ``tools`` are all of each server that is named. Those that wait for an approval stay as they were.
        """
        listed: dict[str, dict[str, Seen]] = {}
        for tool in tools:
            listed.setdefault(tool.server, {})[tool.tool] = tool
        news: list[Seen] = []
        gone: list[_Key] = []
        for server, of_server in listed.items():
            changed = [tool for tool in of_server.values() if self._differs(tool)]
            left, out = self._fit(server, changed, of_server)
            news += left
            gone += out
        if news:
            self._change(news, gone)
            self._keep(news, gone).add_done_callback(_tell_trouble)

    async def approve(self, tools: Iterable[Seen]) -> None:
        """Take tools in exactly these forms.

        Raises TransientError (``approvals.not_kept``) if that acts, but a restart would forget it.
        """
        news = [*tools]
        self._change(news, ())
        try:
            await self._keep(news, ())
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

    def _differs(self, tool: Seen) -> bool:
        """Whether to remember a tool as it is; counts one that changed by itself."""
        match self.judge(tool.server, tool.tool, tool.schema, tool.destructive):
            case New():
                return True
            case Changed(waits=waits):
                self._drifted += not waits
                return not waits
            case Approved():
                known = self.known(tool.server, tool.tool)
                if known is None or not tool.destructive:
                    return False
                return not known.destructive or (known.form is None and tool.form is not None)

    def _fit(
        self, server: str, changed: Sequence[Seen], listed: Collection[str]
    ) -> tuple[list[Seen], list[_Key]]:
        """What of ``changed`` there is room for, destructive ones first, and what goes for that.

        Only harmless tools that are not listed any more go: whoever forgot a destructive one would trust it
        anew in any form.
        """
        known = self._known.get(server, {})
        new = [tool for tool in changed if tool.tool not in known]
        room = MOST_OF_A_SERVER - len(known)
        gone: list[str] = []
        if len(new) > room:
            idle = (name for name, of in known.items() if name not in listed and not of.destructive)
            gone = [*islice(idle, len(new) - room)]
            room = max(0, room + len(gone))
        if len(new) > room and server not in self._full:
            self._full.add(server)
            _log.warning(
                "server %s has listed more than %d tools: changes of further ones are not noticed",
                server,
                MOST_OF_A_SERVER,
            )
        fitting = sorted(new, key=_harmless)[:room]
        others = [tool for tool in changed if tool.tool in known]
        return [*others, *fitting], [(server, name) for name in gone]

    def _change(self, news: Collection[Seen], gone: Collection[_Key]) -> None:
        """Replace what is known; another thread may be reading the old one."""
        touched = {seen.server for seen in news} | {server for server, _ in gone}
        known = {server: dict(self._known.get(server, {})) for server in touched}
        for server, tool in gone:
            del known[server][tool]
        for seen in news:
            known[seen.server][seen.tool] = _kept(seen)
        self._known = {**self._known, **known}

    def _keep(self, news: Sequence[Seen], gone: Sequence[_Key]) -> "asyncio.Future[None]":
        """Have it written; the future has an OSError if that fails."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._file is None:
            written.set_result(None)
            return written
        try:
            if self._worker is None:
                self._worker = Worker()
        except RuntimeError as error:  # the system gives no thread
            written.set_exception(OSError(str(error)))
            return written
        self._last = self._worker.run("keep approvals", partial(self._file.add, news, gone))
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

    def add(self, news: Iterable[Seen], gone: Iterable[_Key] = ()) -> None:
        """Take ``gone`` out and add ``news``, in one step; raises OSError with nothing changed."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with own_folder(self._path.parent) as folder:
            try:
                known = self.read()
            except ValueError as error:
                raise OSError(f"{self._path}: {error}") from error
            for key in gone:
                known.pop(key, None)
            known |= {(seen.server, seen.tool): seen for seen in news}
            replace_file(folder, FILE, to_bytes(_to_json(known)) + b"\n")


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


def _harmless(seen: Seen) -> bool:
    return not seen.destructive


def _kept(seen: Seen) -> Seen:
    """Only the next form of a destructive tool is compared by somebody with this one."""
    return seen if seen.destructive or seen.form is None else replace(seen, form=None)


def _to_json(known: _Known) -> JsonObject:
    servers: dict[str, dict[str, JsonObject]] = {}
    room: dict[str, int] = {}
    for seen in sorted(known.values(), key=lambda each: (each.server, each.tool)):
        entry: dict[str, object] = {"schema": seen.schema, "destructive": seen.destructive}
        text = "" if seen.form is None else to_bytes(seen.form).decode()
        left = room.setdefault(seen.server, MOST_FORMS_CHARS)
        if text and len(text) <= min(MOST_FORM_CHARS, left):
            entry["form"] = text  # as text, so that its depth is none of the file's
            room[seen.server] -= len(text)
        servers.setdefault(seen.server, {})[seen.tool] = entry
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
        case {"schema": str(schema), "destructive": bool(destructive), **others}:
            return Seen(server, tool, schema, destructive, _form(others.get("form")))
    raise ValueError(f"what it says of tool {tool[:80]!r} of server {server[:80]!r} cannot be read")


def _form(text: object) -> JsonObject | None:
    """The schemas that were kept with an entry; None if there are none that can be shown."""
    if not isinstance(text, str) or len(text) > MOST_FORM_CHARS:
        return None
    try:
        form = strict_json(text)
    except ValueError:
        return None
    return form if isinstance(form, dict) else None
