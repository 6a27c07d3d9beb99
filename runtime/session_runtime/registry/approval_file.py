"""What is known of one tool of a server, what may change it, and the file that all processes share (RTE-4).

When it is read and written is decided in ``approvals``.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from session_runtime.config.durable import own_folder, replace_file
from session_runtime.registry.shared_file import Stamp, stamp_of
from session_runtime.state_files import make_state_folder
from session_runtime.types import JsonObject
from session_runtime.wire import strict_json, to_bytes

FILE: Final = "approvals.json"
MOST_FORM_CHARS: Final = 16_384
MOST_FORMS_CHARS: Final = 262_144
"""How much of one form, and of all forms of a server, is kept to be shown; digests are kept of all."""

_VERSION: Final = 1

Key = tuple[str, str]
"""A server, and its own name for a tool."""


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
    def key(self) -> Key:
        """Whose form it is."""
        return self.server, self.tool

    @property
    def digest(self) -> str:
        """Stands for all that an approval is about, in 16 hexadecimal digits."""
        text = json.dumps([self.schema, self.destructive])
        return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


Entries = Mapping[Key, Seen]


def has_to_wait(known: Seen, seen: Seen) -> bool:
    """Whether a tool that is known in one form may not be used in this one."""
    return known.schema != seen.schema and (known.destructive or seen.destructive)


def observed(known: Seen | None, seen: Seen) -> Seen:
    """What is known of a tool once a server listed it as ``seen``: ``known`` itself, if that is nothing new.

    Whatever a server lists, in whichever order: what was destructive stays that, in the form that it has.
    """
    if known is None:
        return without_needless_form(seen)
    if has_to_wait(known, seen):
        return known if known.destructive else replace(known, destructive=True)
    if known.schema != seen.schema:
        return without_needless_form(seen)
    is_destructive = known.destructive or seen.destructive
    form = seen.form if known.form is None and is_destructive else known.form
    if is_destructive == known.destructive and form is known.form:
        return known
    return replace(known, destructive=is_destructive, form=form)


def without_needless_form(seen: Seen) -> Seen:
    """Only the next form of a destructive tool is compared by somebody with this one."""
    return seen if seen.destructive or seen.form is None else replace(seen, form=None)


@dataclass(frozen=True, slots=True)
class Observation:
    """What this process knows after all that servers listed to it; to be added to what others know."""

    entry: Seen

    def on(self, known: Seen | None) -> Seen | None:
        """Make of what others know what is known then."""
        return observed(known, self.entry)


@dataclass(frozen=True, slots=True)
class Approval:
    """An operator took a tool as ``entry``, which this process knew as ``was``.

    It replaces what is known; but a mark that somebody else saw meanwhile stays, as nobody looked at it.
    """

    entry: Seen
    was: Seen | None

    def on(self, known: Seen | None) -> Seen | None:
        """Make of what others know what is known then."""
        if known is None or not known.destructive or known in (self.was, self.entry):
            return self.entry
        return replace(self.entry, destructive=True)


@dataclass(frozen=True, slots=True)
class Removal:
    """There is no room for a tool any more, unless it is destructive."""

    def on(self, known: Seen | None) -> Seen | None:
        """Make of what others know what is known then."""
        return known if known is not None and known.destructive else None


Change = Observation | Approval | Removal


class ApprovalFile:
    """``approvals.json`` of a state directory, which several processes change; every method blocks.

    Used by one thread at a time.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE
        self._stamp: Stamp | None = None

    def read(self) -> dict[Key, Seen]:
        """Read what is known; nothing if there is no file. Raises OSError and ValueError."""
        stamp = stamp_of(self._path)
        known = self._content()
        self._stamp = stamp
        return known

    def newer(self) -> dict[Key, Seen]:
        """The same if the file is another one than was read or written here last, else nothing."""
        stamp = stamp_of(self._path)
        return {} if stamp is None or stamp == self._stamp else self.read()

    def change(self, changes: Mapping[Key, Change]) -> dict[Key, Seen]:
        """Make all changes to what the file holds now, in one step; gives what it holds then.

        Raises OSError with nothing changed; but UnconfirmedError if a crash of the machine may undo it.
        """
        make_state_folder(self._path.parent, self._path.parent)
        with own_folder(self._path.parent) as folder:
            try:
                known = self._content()
            except ValueError as error:
                raise OSError(f"{self._path}: {error}") from error
            for key, change in changes.items():
                entry = change.on(known.pop(key, None))
                if entry is not None:
                    known[key] = entry
            replace_file(folder, FILE, to_bytes(_to_json(known)) + b"\n", of_state=True)
            self._stamp = stamp_of(self._path)
        return known

    def _content(self) -> dict[Key, Seen]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        return _read(strict_json(content.decode()))


def _to_json(known: Entries) -> JsonObject:
    servers: dict[str, dict[str, JsonObject]] = {}
    room: dict[str, int] = {}
    for seen in sorted(known.values(), key=lambda each: each.key):
        entry: dict[str, object] = {"schema": seen.schema, "destructive": seen.destructive}
        text = "" if seen.form is None else to_bytes(seen.form).decode()
        left = room.setdefault(seen.server, MOST_FORMS_CHARS)
        if text and len(text) <= min(MOST_FORM_CHARS, left):
            entry["form"] = text  # as text, so that its depth is none of the file's
            room[seen.server] -= len(text)
        servers.setdefault(seen.server, {})[seen.tool] = entry
    return {"version": _VERSION, "servers": servers}


def _read(data: object) -> dict[Key, Seen]:
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
