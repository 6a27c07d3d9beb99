"""Lines of keys in TOML texts."""

import tomllib
from textwrap import dedent
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.keys import KeyPath
from session_runtime.config.toml_lines import Statement, key_lines, line_of, statements

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
TABLES = st.recursive(
    st.dictionaries(NAMES, st.none(), max_size=3),
    lambda inner: st.dictionaries(NAMES, st.none() | inner, max_size=4),
    max_leaves=12,
)


def numbered(table: dict[str, Any], path: KeyPath, leaves: dict[KeyPath, int]) -> dict[str, Any]:
    """The table with a number of its own at each leaf, noted in ``leaves``."""
    filled: dict[str, Any] = {}
    for name, inner in table.items():
        if inner is None:
            filled[name] = leaves[(*path, name)] = 1000 + len(leaves)
        else:
            filled[name] = numbered(inner, (*path, name), leaves)
    return filled


@pytest.mark.requirement("CFG-1")
@given(TABLES)
def test_every_key_is_found_on_the_line_that_holds_its_value(table: dict[str, Any]) -> None:
    leaves: dict[KeyPath, int] = {}
    text = tomli_w.dumps(numbered(table, (), leaves))
    rows, lines = text.split("\n"), key_lines(text)
    assert {path: rows[lines[path] - 1].endswith(f" = {leaves[path]}") for path in leaves} == (
        dict.fromkeys(leaves, True)
    )


@pytest.mark.requirement("CFG-1")
def test_text_that_looks_like_toml_inside_a_value_is_no_key() -> None:
    text = dedent(
        '''\
        a = """
        [not.a.table]
        b = 1 \\""" c = 2
        """""
        'd.e' = [ # comment = 3 ]
          "]", { x = 1, y = [2] }, \'\'\'
        f = 4\'\'\',
        ]
        [ g . "h.i" ] # [j]
        k.l = { m = 1, n = { o = 2 } }
        [[p]]
        q = 1979-05-27T07:32:00Z
        [g]
        '''
    )
    tomllib.loads(text)
    assert key_lines(text) == {
        ("a",): 1,
        ("d.e",): 5,
        ("g", "h.i"): 9,
        ("g",): 13,
        ("g", "h.i", "k"): 10,
        ("g", "h.i", "k", "l"): 10,
        ("p",): 11,
        ("p", "q"): 12,
    }


@pytest.mark.requirement("CFG-1")
def test_a_key_of_an_inline_table_is_on_the_line_of_the_table() -> None:
    lines = key_lines('[models]\nmain = { wire = "chat" }\n')
    assert line_of(("models", "main", "wire"), lines) == 2
    assert line_of(("skills",), lines) is None


def test_statements_are_told_with_all_their_lines() -> None:
    text = dedent(
        """\
        # nothing
        a.b = [
          1, # one
        ] # end

        [ c . "d.e" ] # here
        f = 1
          [[g]]
        h = '''
        [i]
        '''"""
    )
    assert list(statements(text)) == [
        Statement("pair", (), ("a", "b"), 2, 4),
        Statement("header", ("c", "d.e"), ("c", "d.e"), 6, 6),
        Statement("pair", ("c", "d.e"), ("c", "d.e", "f"), 7, 7),
        Statement("array", ("g",), ("g",), 8, 8),
        Statement("pair", ("g",), ("g", "h"), 9, 11),
    ]
