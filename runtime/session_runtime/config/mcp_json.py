"""Reads the ``mcpServers`` JSON of other programs as tables of [mcp.servers]; what cannot be is told."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.wire import printable

_TABLES: Final = (("mcpServers",), ("mcp", "servers"), ("servers",))
_URLS: Final = ("url", "serverUrl", "httpUrl")
_OF_COMMANDS: Final = ("args", "env", "cwd")
_OF_ADDRESSES: Final = ("headers",)
_SWITCHES: Final = ("disabled", "enabled")
_TAKEN: Final = frozenset(
    {"command", *_URLS, *_OF_COMMANDS, *_OF_ADDRESSES, *_SWITCHES, "type"},
)
_TYPES_OF_COMMANDS: Final = frozenset({"stdio", "local"})
_TYPES_OF_ADDRESSES: Final = frozenset(
    {"http", "streamable-http", "streamable_http", "streamablehttp", "remote"}
)
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACEHOLDER: Final = re.compile(r"\$\{[^}]*\}")
_NOT_FILLED_IN: Final = re.compile(r"\$\{[^}]*\}|\A~(?=/|\Z)")
_LONGEST_NAME: Final = 48


@dataclass(frozen=True, slots=True)
class Imported:
    """Tables by server name, as they go into the file, and what was not taken over and why."""

    servers: Mapping[str, Mapping[str, object]]
    notes: tuple[str, ...]


def servers_of(data: object) -> Imported:
    """Translate a whole file; RequestError (``request.invalid``) if it names no servers."""
    found = _table(data)
    servers: dict[str, Mapping[str, object]] = {}
    notes: list[str] = []
    named: dict[str, str] = {}
    for given, entry in found.items():
        name = _name(given)
        if (first := named.setdefault(name, given)) != given:
            raise RequestError(
                f"the servers {_shown(first)} and {_shown(given)} both come to the name {name!r}:"
                " rename one"
            )
        reading = _Reading(given)
        table = reading.table(entry)
        notes += reading.notes
        if table is not None:
            servers[name] = table
            if name != given:
                notes.append(
                    f"{_shown(given)}: it is called {name} here, as names are up to {_LONGEST_NAME}"
                    " letters, digits, _ and -"
                )
    return Imported(servers, tuple(notes))


def _table(data: object) -> Mapping[str, object]:
    for path in _TABLES:
        inner: object = data
        for key in path:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping):
            return inner
    raise RequestError('the file has no table "mcpServers" (or "servers") with a server in it')


def _name(given: str) -> str:
    name = _NOT_IN_NAMES.sub("-", given).strip("-")[:_LONGEST_NAME]
    if not name:
        raise RequestError(f"the name {_shown(given)} has no letter or digit: rename the server")
    return name


class _Reading:
    """Translates one entry and keeps what has to be told about it."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.notes: list[str] = []

    def table(self, entry: object) -> Mapping[str, object] | None:
        """Give the table of a server; None if the entry describes none that can be used."""
        if not isinstance(entry, Mapping):
            self._note("left out: it is no object")
            return None
        given = {key: value for key, value in entry.items() if not _is_empty(value)}
        kind = next((key for key in ("command", *_URLS) if key in given), "")
        fault = _fault(given, kind)
        if fault is not None:
            self._note(f"left out: {fault}")
            return None
        self._tell_of_what_is_left(entry, given, kind)
        table: dict[str, object] = {} if self._is_on(given) else {"enabled": False}
        if kind == "command":
            return table | dict(self._command(given))
        return table | {"url": self._text("url", given[kind])} | self._values(given, "headers")

    def _tell_of_what_is_left(
        self, entry: Mapping[str, object], given: Mapping[str, object], kind: str
    ) -> None:
        for key in sorted(entry.keys() - _TAKEN):
            self._note(f"{_shown(key)} is not taken over")
        stray = (*_URLS, *_OF_ADDRESSES) if kind == "command" else _OF_COMMANDS
        for key in stray:
            if key in given:
                self._note(
                    f"'{key}' is not taken over: it has a {'command' if kind == 'command' else 'url'}"
                )
        if kind != "command":
            for key in _URLS:
                if key in given and key != kind:
                    self._note(f"'{key}' is not taken over: {kind} counts")

    def _is_on(self, given: Mapping[str, object]) -> bool:
        for key in _SWITCHES:
            if key in given and not isinstance(given[key], bool):
                self._note(f"{key} is neither true nor false: it is off")
                return False
        return given.get("disabled") is not True and given.get("enabled") is not False

    def _command(self, given: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        command = self._text("command", given["command"])
        first, _, rest = command.strip().partition(" ")
        if rest and "/" not in first:
            self._note(
                f"command {_shown(command)} is taken for the name of one program: words after the first"
                " belong in args"
            )
        if (kind := given.get("type")) is not None and _type(kind) not in _TYPES_OF_COMMANDS:
            self._note(f"its type is {_shown(kind)}, and it has a command: that counts")
        yield "command", command
        yield from self._args(given.get("args"))
        yield from self._folder(given.get("cwd"))
        yield from self._values(given, "env").items()

    def _args(self, args: object) -> Iterator[tuple[str, object]]:
        if isinstance(args, list) and all(isinstance(each, str) for each in args):
            self._tell_of_placeholders("args", args)
            yield "args", args
        elif args is not None:
            self._note("args is no list of texts: write it yourself")

    def _folder(self, cwd: object) -> Iterator[tuple[str, object]]:
        if isinstance(cwd, str) and (found := _NOT_FILLED_IN.search(cwd)):
            self._note(
                f"cwd is left out, as {_shown(found[0])} is not filled in here: write it out"
            )
        elif isinstance(cwd, str):
            yield "cwd", cwd
        elif cwd is not None:
            self._note("cwd is no text and left out")

    def _text(self, key: str, value: object) -> str:
        """A text that was seen to be one, with a word about what nobody fills in."""
        assert isinstance(value, str)
        self._tell_of_placeholders(key, [value])
        return value

    def _tell_of_placeholders(self, key: str, texts: Iterable[str]) -> None:
        found = dict.fromkeys(each[0] for text in texts for each in _NOT_FILLED_IN.finditer(text))
        if found:
            self._note(
                f"{key} holds {', '.join(map(_shown, found))}: that is not filled in here; write it out, or"
                " give a secret by env or headers"
            )

    def _values(self, entry: Mapping[str, object], key: str) -> dict[str, object]:
        """Variables or headers; one that the other program would fill in becomes a reference."""
        given = entry.get(key)
        if given is not None and not isinstance(given, Mapping):
            self._note(f"{key} is no table and left out")
        if not isinstance(given, Mapping):
            return {}
        values = {name: self._value(f"{key}.{name}", value) for name, value in given.items()}
        return {key: {name: value for name, value in values.items() if value is not None}}

    def _value(self, place: str, value: object) -> str | None:
        if not isinstance(value, str):
            self._note(f"{_shown(place)} is no text and left out")
            return None
        if variable := _VARIABLE.fullmatch(value):
            return f"env:{variable[1]}"
        if _PLACEHOLDER.search(value):
            self._note(
                f"{_shown(place)} is left out, as only a part of it is a variable, or it is asked for:"
                ' put the whole value into a variable and write "env:NAME"'
            )
            return None
        if value.startswith(("env:", "file:")):
            self._note(f"{_shown(place)} begins like a reference and is taken for one")
        return value

    def _note(self, text: str) -> None:
        self.notes.append(f"{_shown(self._server)}: {text}")


def _is_empty(value: object) -> bool:
    """Whether a value says as little as none at all."""
    return value in (None, [], {}) or (isinstance(value, str) and not value.strip())


def _fault(given: Mapping[str, object], kind: str) -> str | None:
    if not kind:
        return "it has neither a command nor a url"
    if not isinstance(given[kind], str):
        return f"its {kind} is no text"
    if kind == "command" or "type" not in given or _type(given["type"]) in _TYPES_OF_ADDRESSES:
        return None
    if _type(given["type"]) == "sse":
        return "it speaks the old SSE transport; give its streamable HTTP address"
    return f"its type is {_shown(given['type'])}, which is not streamable HTTP"


def _type(value: object) -> str:
    return str(value).lower()


def _shown(text: object) -> str:
    return printable(repr(str(text)[:80]))
