"""The sources that are not environment variables: the TOML file, explicit values and the defaults.

Each is read into a ``Reading``: values by key with their origins. Which wins is in ``merge``.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr

from session_runtime.config.faults import in_quotes, unknown
from session_runtime.config.keys import KeyPath, dotted, parse_dotted
from session_runtime.config.origin import DEFAULT, EXPLICIT, Candidate, Origin, Reading
from session_runtime.config.shape import (
    OLD_NOTICES,
    SHAPE,
    Branch,
    Leaf,
    Names,
    Node,
    child,
    entries_on,
    leaves,
    node_at,
    unquoted,
)
from session_runtime.config.toml_lines import key_lines, line_of
from session_runtime.errors import ConfigError, Problem

_PLACE = re.compile(r"line (\d+), column (\d+)\)")


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A configuration file as read: its name in messages, its bytes, its values, the line of each key."""

    name: str
    content: bytes = field(repr=False)
    data: Mapping[str, object] = field(repr=False)
    lines: Mapping[KeyPath, int]

    def origin(self, path: KeyPath) -> Origin:
        """Where ``path`` stands, or the innermost table around it."""
        return Origin("config", self.name, line_of(path, self.lines))


def open_toml(path: Path) -> TomlFile:
    """Read and parse the file; ConfigError if it is absent, empty, no UTF-8 or no TOML (CFG-1)."""
    try:
        if path.exists() and not path.is_file():
            raise _refused(path, f"{path} is no plain file")
        data = path.read_bytes()
    except OSError as error:
        raise _refused(path, f"{path} cannot be read: {error.strerror}") from None
    return parse_toml(path, data)


def parse_toml(path: Path, data: bytes) -> TomlFile:
    """Parse what the file says, or would say; ConfigError as ``open_toml``."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _refused(path, f"is not UTF-8 (byte 0x{data[error.start]:02x})", line) from None
    if not text.strip():
        raise _refused(path, "is empty; to run on defaults alone, write a comment")
    values = _parsed(path, text)
    return TomlFile(path.name, data, values, key_lines(text.replace("\r\n", "\n")))


def _parsed(path: Path, text: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        fault, _, place = str(error).rpartition(" (at ")
        numbers = _PLACE.fullmatch(place)
        where = f"column {numbers[2]}: " if numbers else ""
        line = int(numbers[1]) if numbers else text.count("\n") + 1
        raise _refused(path, f"{where}not valid TOML: {fault or error}", line) from None
    except RecursionError:
        raise _refused(path, "is nested too deeply") from None


def _refused(path: Path, message: str, line: int | None = None) -> ConfigError:
    return ConfigError([Problem(message, source=path.name, line=line)])


def read_toml(file: TomlFile) -> Reading:
    """Read every value of the configuration file, with its line."""
    return flatten(file.data, SHAPE, (), file.origin)


def read_explicit(explicit: Mapping[str, object]) -> tuple[Reading, ...]:
    """Read values given by the command line or the embedding program, the more specific key first.

    Keys are dotted; a whole table may be given as a mapping.
    """
    paths: dict[KeyPath, object] = {}
    problems: list[Problem] = []
    for key, value in explicit.items():
        try:
            paths[parse_dotted(key)] = value
        except ValueError:
            problems.append(EXPLICIT.problem("", _not_a_key(key)))
    in_order = sorted(paths, key=lambda path: (-len(path), path))
    readings = (read_at(path, paths[path], EXPLICIT) for path in in_order)
    return (*readings, Reading({}, problems=tuple(problems)))


def _not_a_key(key: str) -> str:
    return (
        f"{key!r} is not one dotted key; write it like models.main.base_url, with quotes around a"
        " part that has other characters than letters, digits, _ and -"
    )


def read_defaults(entries: Iterable[KeyPath]) -> Reading:
    """Give the default of every key, for each entry of an operator-named table too.

    An entry that is itself a value (``features.NAME``) has none; an old spelling needs none.
    """
    named = dict.fromkeys(entries)
    return Reading(
        {
            path: Candidate(leaf.default, DEFAULT, path)
            for path, leaf in leaves(named)
            if path not in named and path != OLD_NOTICES
        }
    )


def read_at(path: KeyPath, value: object, origin: Origin) -> Reading:
    """Read one value at ``path``, or a whole table there, all from one place."""
    if node_at(path) is None:
        path, value = _in_its_table(path, value)
    reading = flatten(value, node_at(path), path, lambda _: origin)
    return replace(reading, entries=(*entries_on(path), *reading.entries))


def _in_its_table(path: KeyPath, value: object) -> tuple[KeyPath, object]:
    """Go up to the table whose names the operator chooses, so that a name without quotes is noticed."""
    for end in range(len(path)):
        if isinstance(node_at(path[:end]), Names):
            for part in reversed(path[end:]):
                value = {part: value}
            return path[:end], value
    return path, value


def flatten(
    value: object, node: Node | None, path: KeyPath, place: Callable[[KeyPath], Origin]
) -> Reading:
    """Split a table into its keys; what the shape does not know becomes a problem.

    ``place`` tells where the value of a key was read.
    """
    splitting = _Splitting(place)
    splitting.walk(value, node, path)
    return Reading(
        MappingProxyType(splitting.found), tuple(splitting.entries), tuple(splitting.problems)
    )


class _Splitting:
    """What was found of a table so far."""

    def __init__(self, place: Callable[[KeyPath], Origin]) -> None:
        self._place = place
        self.found: dict[KeyPath, Candidate] = {}
        self.entries: list[KeyPath] = []
        self.problems: list[Problem] = []

    def walk(self, value: object, node: Node | None, path: KeyPath) -> None:
        match node, value:
            case (Branch(), Mapping()):
                for name, inner in value.items():
                    self.walk(inner, child(node, name), (*path, name))
            case (Names(item), Mapping()):
                for name, inner in value.items():
                    self._walk_entry(inner, item, (*path, name))
            case (Branch() | Names(), _):
                self._tell(path, "must be a table")
            case (Leaf(), _):
                self.found[path] = Candidate(_settled(value, node), self._place(path), path)
            case (None, _):
                self._tell(path, unknown(path, value))

    def _walk_entry(self, value: object, item: Node, path: KeyPath) -> None:
        rests = tuple(unquoted(item, value))
        for rest in rests:
            self._tell((*path, *rest), in_quotes((*path[:-1], ".".join((path[-1], *rest)))))
        if rests and isinstance(value, Mapping):
            told = {rest[0] for rest in rests}
            value = {name: inner for name, inner in value.items() if name not in told}
            if not value:
                return
        if isinstance(item, Leaf) or isinstance(value, Mapping):
            self.entries.append(path)
        self.walk(value, item, path)

    def _tell(self, path: KeyPath, message: str) -> None:
        self.problems.append(self._place(path).problem(dotted(path), message))


def _settled(value: object, leaf: Leaf) -> object:
    """Make a list unchangeable and a secret unreadable."""
    match value:
        case list():
            return tuple(value)
        case str() if leaf.secret:
            return SecretStr(value)
        case _:
            return value
