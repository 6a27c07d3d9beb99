"""On which lines of a TOML text each statement stands; the values are read by the standard library."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from session_runtime.config.keys import KeyPath, parse_dotted

_TOKEN = re.compile(
    r"""
      (?P<string>
          \"{3}(?:\\.|(?!\"{3}).)*\"{3,5}
        | '{3}(?:(?!'{3}).)*'{3,5}
        | \"(?:\\.|[^\"\\\n])*\"
        | '[^'\n]*'
      )
    | (?P<comment>\#[^\n]*)
    | (?P<newline>\n)
    | (?P<open>[\[{])
    | (?P<close>[\]}])
    | (?P<equals>=)
    | (?P<bare>[^\n\[\]{}="'#]+)
    """,
    re.VERBOSE | re.DOTALL,
)


Kind = Literal["header", "array", "pair"]


@dataclass(frozen=True, slots=True)
class Statement:
    """A header or an assignment: what it defines, and its 1-based lines, first and last.

    ``table`` is the table of the header above it, or of itself; for an assignment, ``path`` goes on
    from there. ``kind`` tells a header from the header of an array of tables.
    """

    kind: Kind
    table: KeyPath
    path: KeyPath
    first: int
    last: int


def statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a valid TOML text in their order."""
    table: KeyPath = ()
    for kind, written, first, last in _written(text):
        path = parse_dotted(written)
        if kind != "pair":
            table = path
        yield Statement(kind, table, path if kind != "pair" else (*table, *path), first, last)


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Find the 1-based line of every key, header and implied table of a valid TOML text.

    Keys inside an inline table are not listed; ``line_of`` then answers with the table's line.
    """
    lines: dict[KeyPath, int] = {}
    for statement in statements(text):
        if statement.kind != "pair":
            lines[statement.path] = statement.first
        for end in range(1, len(statement.path) + 1):
            lines.setdefault(statement.path[:end], statement.first)
    return lines


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """Find the line of ``path``, or of the innermost table around it that the text names."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


_Written = tuple[Kind, str, int, int]
_IN_BRACKETS: Mapping[Kind, Kind] = MappingProxyType({"pair": "header", "header": "array"})


def _written(text: str) -> Iterator[_Written]:
    """Yield every header and every key before a ``=`` as it is written, and its lines."""
    line, first, depth, written, part = 1, 1, 0, "", "key"
    kind: Kind = "pair"
    for token in _TOKEN.finditer(f"{text}\n"):
        piece = token[0]
        match token.lastgroup, part:
            case "newline", _ if part != "value" or depth <= 0:
                if part == "value":
                    yield kind, written.strip(), first, line
                depth, written, part, kind = 0, "", "key", "pair"
            case "open", "key" | "header":
                part, kind, first = "header", _IN_BRACKETS[kind], line
            case "close", "header":
                part = "value"
            case "equals", "key":
                part, first = "value", line
            case "open", "value":
                depth += 1
            case "close", "value":
                depth -= 1
            case "string" | "bare", "key" | "header":
                written += piece
        line += piece.count("\n")
