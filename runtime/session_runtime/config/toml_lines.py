"""On which line of a TOML text each key stands; the values are read by the standard library."""

import re
from collections.abc import Iterator, Mapping

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


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Find the 1-based line of every key, header and implied table of a valid TOML text.

    Keys inside an inline table are not listed; ``line_of`` then answers with the table's line.
    """
    lines: dict[KeyPath, int] = {}
    header: KeyPath = ()
    for line, is_header, written in _statements(text):
        path = parse_dotted(written)
        if is_header:
            header = path
            lines[header] = line
        else:
            path = (*header, *path)
        for end in range(1, len(path) + 1):
            lines.setdefault(path[:end], line)
    return lines


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """Find the line of ``path``, or of the innermost table around it that the text names."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


def _statements(text: str) -> Iterator[tuple[int, bool, str]]:
    """Yield every header and every key before a ``=``: line, whether it is a header, text."""
    line, depth, written, part = 1, 0, "", "key"
    for token in _TOKEN.finditer(text):
        piece = token[0]
        match token.lastgroup, part:
            case "newline", _ if part != "value" or depth <= 0:
                depth, written, part = 0, "", "key"
            case "open", "key":
                part = "header"
            case "close", "header":
                yield line, True, written.strip()
                part = "value"
            case "equals", "key":
                yield line, False, written.strip()
                part = "value"
            case "open", "value":
                depth += 1
            case "close", "value":
                depth -= 1
            case "string" | "bare", "key" | "header":
                written += piece
        line += piece.count("\n")
