"""Reads the ``mcpServers`` JSON of other programs as tables of [mcp.servers]; what cannot be is told."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.wire import printable

_TABLES: Final = (("mcpServers",), ("mcp", "servers"), ("servers",))
_URLS: Final = ("url", "serverUrl", "httpUrl")
_TAKEN: Final = frozenset({"command", "args", "env", "cwd", "headers", "type", "disabled", *_URLS})
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_PLACEHOLDER: Final = re.compile(r"\$\{[^}]*\}")
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
    for given, entry in found.items():
        name = _name(given)
        if name in servers:
            raise RequestError(
                f"two servers come to the name {name!r}, the second one is {_shown(given)}: rename one"
            )
        reading = _Reading(given)
        table = reading.table(entry)
        notes += reading.notes
        if table is not None:
            servers[name] = table
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
        url = next((entry[key] for key in _URLS if key in entry), None)
        fault = _fault(entry, url)
        if fault is not None:
            self._note(f"left out: {fault}")
            return None
        for key in sorted(entry.keys() - _TAKEN):
            self._note(f"{_shown(key)} is not taken over")
        table: dict[str, object] = {"enabled": False} if entry.get("disabled") is True else {}
        if isinstance(entry.get("command"), str):
            return table | dict(self._command(entry))
        return table | {"url": url} | self._values(entry, "headers")

    def _command(self, entry: Mapping[str, object]) -> Iterator[tuple[str, object]]:
        yield "command", entry["command"]
        args = entry.get("args")
        if isinstance(args, list) and all(isinstance(each, str) for each in args):
            yield "args", args
        elif args is not None:
            self._note("args is no list of texts: write it yourself")
        if isinstance(entry.get("cwd"), str):
            yield "cwd", entry["cwd"]
        yield from self._values(entry, "env").items()

    def _values(self, entry: Mapping[str, object], key: str) -> dict[str, object]:
        """Variables or headers; one that the other program would fill in becomes a reference."""
        given = entry.get(key)
        if not isinstance(given, Mapping) or not given:
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


def _fault(entry: Mapping[str, object], url: object) -> str | None:
    if entry.get("type") == "sse":
        return "it speaks the old SSE transport; give its streamable HTTP address"
    if not isinstance(entry.get("command") or url, str):
        return "it has neither a command nor a url"
    return None


def _shown(text: object) -> str:
    return printable(repr(str(text)[:80]))
