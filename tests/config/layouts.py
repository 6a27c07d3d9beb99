"""Configurations of any content in any layout: headers, dotted keys, inline tables, a comment per line."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

from hypothesis import strategies as st

from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.shape import Branch, Leaf, leaves, node_at
from session_runtime.config.written import with_value

ENTRIES: tuple[KeyPath, ...] = (
    ("models", "a"),
    ("models", "b.1"),
    ("models", "b.1", "headers", "X-Api-Key"),
    ("models", "b.1", "extra_body", "more"),
    ("access", "rules", "r"),
    ("features", "f"),
    ("handlers", "entries", "g.t"),
    ("handlers", "entries", "g.t", "parameters", "properties"),
)
KEYS = dict(leaves(ENTRIES))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ['"""', "a\nb", "\n", "\r\n", "[x]\ny = 1\n# z", "'''", "\\", "#", "a\x7f", "\x85"]
)
ANYTHING = st.recursive(
    st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=4,
)
Style = Literal["header", "dotted", "inline"]
STYLES = st.sampled_from(["header", "header", "header", "dotted", "inline"])


def values(leaf: Leaf) -> st.SearchStrategy[Any]:
    """Values of the type that a key has, good ones or not."""
    if leaf.many:
        items = st.integers(1, 9) if leaf.item is int else TEXTS
        return st.lists(items, max_size=4)
    if leaf.anything:
        return ANYTHING
    if leaf.item in (int, float):
        return st.integers(-3, 99) | st.floats(0, 9)
    return st.booleans() if leaf.item is bool else TEXTS


PAIRS = st.one_of([st.tuples(st.just(path), values(leaf)) for path, leaf in KEYS.items()])
SETTINGS = st.lists(PAIRS, max_size=12).map(dict)


def tree(settings: Mapping[KeyPath, object]) -> dict[str, Any]:
    """The keys as nested tables."""
    data: Mapping[str, object] = {}
    for path, value in settings.items():
        data = with_value(data, path, value)
    return dict(data)


@dataclass(frozen=True)
class Layout:
    """Writes data as TOML; ``styles`` says how the n-th table is written."""

    styles: tuple[Style, ...]

    def text(self, data: Mapping[str, Any]) -> str:
        tables: list[str] = []
        pairs = self._pairs(data, (), (), tables, cycle(self.styles))
        return "".join((*pairs, *tables))

    def _pairs(
        self,
        data: Mapping[str, Any],
        table: KeyPath,
        path: KeyPath,
        tables: list[str],
        styles: Iterator[Style],
    ) -> list[str]:
        """Lines for what is in ``path`` below the header ``table``; further tables are put aside."""
        rows: list[str] = []
        for name, value in data.items():
            inner = (*path, name)
            style = next(styles) if is_table(inner, value) else None
            if style == "header" and (path == table):
                at = len(tables)
                below = self._pairs(value, inner, inner, tables, styles)
                tables.insert(
                    at, f"\n# about {name!r}\n[{dotted(inner)}] # {mark(inner)}\n" + "".join(below)
                )
            elif style == "dotted" and value:
                rows += self._pairs(value, table, inner, tables, styles)
            else:
                rows.append(f"{dotted(inner[len(table) :])} = {inline(value)} # {mark(inner)}\n")
        return rows


def is_table(path: KeyPath, value: object) -> bool:
    return isinstance(value, Mapping) and not isinstance(node_at(path), Leaf)


def mark(path: KeyPath) -> str:
    """A comment that is found again."""
    return f"<{json.dumps(path)}>".replace("\x7f", "")


def inline(value: object) -> str:
    match value:
        case Mapping():
            pairs = (f"{dotted((name,))} = {inline(inner)}" for name, inner in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case list():
            return f"[{', '.join(map(inline, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


LAYOUTS = st.lists(STYLES, min_size=1, max_size=8).map(tuple).map(Layout)
TABLES = [
    path[:end]
    for path in KEYS
    for end in range(1, len(path))
    if isinstance(node_at(path[:end]), Branch)
]
