"""Changing the text of a configuration file: the right data comes out, and all else stays as it was."""

import json
import tomllib
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.config.keys import KeyPath, parse_dotted
from session_runtime.config.rewrite import edits, rewritten
from session_runtime.config.written import REMOVED, alike, with_value
from session_runtime.errors import PermanentError
from tests.config.layouts import KEYS, LAYOUTS, SETTINGS, TABLES, Layout, mark, tree, values

OPERATORS = """\
# mine
[skills]
tool_search_enabled = true   # on since May
#tool_search_max_results = 5
prefetch_tools = [  # first
  "a",  # one
  "b",
]

# about ask
[ask]
#max_steps = 3

#[models.spare]
#model = "m"

  [models.main]  # the good one
  model = "m"
  extra_body = {seed = 1}  # for tests

# about log
[log]
level = "info"
"""
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TABLES), st.just(REMOVED)),
        *(st.tuples(st.just(key), values(leaf) | st.just(REMOVED)) for key, leaf in KEYS.items()),
    ),
    min_size=1,
    max_size=4,
).map(dict)


def changed(text: str, **changes: Any) -> str:
    """Rewrite; keys are written with ``__`` for each dot."""
    return rewritten(text, {tuple(key.split("__")): value for key, value in changes.items()})


def lines_beside(text: str, changes: Mapping[KeyPath, object]) -> list[str]:
    """Those lines of a layout that have nothing to do with any of the changes."""
    kept = []
    for line in text.split("\n"):
        if line.endswith(">"):
            key = tuple(json.loads(line.rpartition(" # <")[2][:-1]))
            header = line.startswith("[")
            if not any(
                key[: len(path)] == path or (path[: len(key)] == key and not header)
                for path in changes
            ):
                kept.append(line)
    return kept


@pytest.mark.requirement("REL-6")
@settings(deadline=None)
@given(SETTINGS, LAYOUTS, CHANGES)
def test_any_change_gives_what_was_asked_for_and_leaves_other_lines_alone(
    settings: Mapping[KeyPath, Any], layout: Layout, changes: Mapping[KeyPath, Any]
) -> None:
    text = layout.text(tree(settings))
    wanted: Mapping[str, object] = tomllib.loads(text)
    for path, value in changes.items():
        wanted = with_value(wanted, path, value)
    result = rewritten(text, changes)
    assert alike(tomllib.loads(result), wanted)
    beside = lines_beside(text, changes)
    assert [line for line in result.split("\n") if line in beside] == beside


@pytest.mark.requirement("REL-6")
@settings(deadline=None)
@given(SETTINGS, LAYOUTS, SETTINGS, st.booleans())
def test_any_file_can_be_made_to_say_what_another_one_says(
    settings: Mapping[KeyPath, Any], layout: Layout, others: Mapping[KeyPath, Any], windows: bool
) -> None:
    text, target = layout.text(tree(settings)), tree(others)
    if windows:
        text = "\ufeff" + text.replace("\n", "\r\n")
    result = rewritten(text, edits(tomllib.loads(text.removeprefix("\ufeff")), target))
    assert alike(tomllib.loads(result.removeprefix("\ufeff")), target)
    assert result.startswith("\ufeff") is windows
    if windows and settings:
        assert result.count("\n") == result.count("\r\n")


def test_what_has_its_value_already_stays_as_it_is_written() -> None:
    text = "[http]\nport = 8_040 # x\n[skills]\nprefetch_tools = [ 'a' ]\n"
    assert changed(text, http__port=8040, skills__prefetch_tools=["a"], ask__max_steps=REMOVED) == (
        text
    )


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"skills__tool_search_enabled": False}, "= true   #", "= false   #"),
        (
            {"skills__tool_search_max_results": 7},
            "#tool_search_max_results = 5\n",
            "#tool_search_max_results = 5\ntool_search_max_results = 7\n",
        ),
        ({"ask__max_steps": 2}, "#max_steps = 3\n", "#max_steps = 3\nmax_steps = 2\n"),
        (
            {"ask__system_prompt": 'Be "brief".\nBe kind.'},
            "#max_steps = 3\n",
            '#max_steps = 3\nsystem_prompt = """Be "brief".\nBe kind."""\n',
        ),
        ({"skills__prefetch_tools": ["b", "c"]}, '  "a",  # one\n  "b",\n', '  "b",\n  "c",\n'),
        (
            {"models__main__model": "n", "models__main__wire": "chat"},
            '  model = "m"\n  extra_body = {seed = 1}  # for tests\n',
            '  model = "n"\n  extra_body = {seed = 1}  # for tests\n  wire = "chat"\n',
        ),
        ({"log__level": REMOVED}, 'level = "info"\n', ""),
        (
            {"models__main": REMOVED},
            '  [models.main]  # the good one\n  model = "m"\n'
            "  extra_body = {seed = 1}  # for tests\n\n",
            "",
        ),
        (
            {"models__main__headers__X-A": "env:A_TOKEN"},
            "# for tests\n\n",
            '# for tests\n\n[models.main.headers]\nX-A = "env:A_TOKEN"\n\n',
        ),
        ({"http__port": 1}, 'level = "info"\n', 'level = "info"\n\n[http]\nport = 1\n'),
    ],
    ids=lambda value: "",
)
def test_a_change_is_made_where_an_operator_would_make_it(
    changes: dict[str, Any], old: str, new: str
) -> None:
    assert OPERATORS.count(old) == 1
    assert changed(OPERATORS, **changes) == OPERATORS.replace(old, new)


def test_a_long_list_is_written_as_one_piece() -> None:
    items = [f"group.tool_{number}" for number in range(20_000)]
    text = changed("[skills]\n", skills__prefetch_tools=items)
    again = changed(text, skills__prefetch_tools=items[::-1])
    assert text == f"[skills]\nprefetch_tools = {json.dumps(items)}\n"
    assert again == f"[skills]\nprefetch_tools = {json.dumps(items[::-1])}\n"


def test_a_field_is_added_inside_of_an_inline_table() -> None:
    text = "[models.m]\nextra_body = {seed = 1} # for tests\n"
    result = changed(text, models__m__extra_body__top_k={"x": [1]})
    assert result.endswith("} # for tests\n")
    assert tomllib.loads(result)["models"]["m"]["extra_body"] == {"seed": 1, "top_k": {"x": [1]}}


def test_an_entry_is_there_even_if_only_an_empty_section_of_it_is_left() -> None:
    path = ("handlers", "entries", "t", "runtime", "feature")
    result = rewritten("handlers.entries.t.runtime.feature = 'f'\n", {path: REMOVED})
    assert tomllib.loads(result) == {"handlers": {"entries": {"t": {}}}}


@pytest.mark.parametrize(
    ("text", "removed", "result"),
    [
        ("models.a.wire = 'chat'\nmodels.b.wire = 'chat'\n", "models.a.wire", "models.a = {}\n"),
        ("[models]\na.wire = 'chat'\nb.wire = 'chat'\n", "models.a.wire", "a = {}\n"),
        ("[models.a.headers]\nX = 'x'\n[models.b]\n", "models.a.headers", "[models.a]\n"),
    ],
)
def test_an_entry_without_keys_is_still_an_entry_in_its_place(
    text: str, removed: str, result: str
) -> None:
    changed_text = rewritten(text, {parse_dotted(removed): REMOVED})
    assert result in changed_text
    models = tomllib.loads(changed_text)["models"]
    assert (list(models), models["a"]) == (["a", "b"], {})


def test_comments_right_above_a_header_stay_with_it() -> None:
    text = "[ask]\nmax_steps = 1\n# of the log\n[log]\n"
    assert changed(text, ask__max_tool_calls=2) == (
        "[ask]\nmax_steps = 1\nmax_tool_calls = 2\n# of the log\n[log]\n"
    )
    assert changed(text, ask=REMOVED) == "# of the log\n[log]\n"


def test_a_table_is_replaced_key_by_key() -> None:
    table = {"model": "m", "wire": "chat"}
    assert changed(OPERATORS, models__main=table) == OPERATORS.replace(
        "  extra_body = {seed = 1}  # for tests\n", '  wire = "chat"\n'
    )


def test_names_whose_order_matters_come_in_the_order_wanted() -> None:
    text = '[models.a]\nmodel = "1"\n\n[models.b]\nmodel = "2" # two\n'
    old = tomllib.loads(text)
    new = {"models": {"b": old["models"]["b"], "a": old["models"]["a"]}}
    assert rewritten(text, edits(old, new)) == (
        '[models.b]\nmodel = "2" # two\n\n[models.a]\nmodel = "1"\n'
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[ask]\nmax_steps = 1", "[ask]\nmax_steps = 2\n"),
        ("\ufeff[ask]\r\nmax_steps = 1 # x\r\n", "\ufeff[ask]\r\nmax_steps = 2 # x\r\n"),
        ("[ask]\r\nmax_steps = 1 # x\n", "[ask]\r\nmax_steps = 2 # x\n"),
        ("ask.max_steps = 1", "ask.max_steps = 2\n"),
        ("", "[ask]\nmax_steps = 2\n"),
    ],
    ids=["no last line end", "Windows", "mixed", "dotted", "empty"],
)
def test_byte_order_mark_and_line_ends_stay(text: str, result: str) -> None:
    assert changed(text, ask__max_steps=2) == result


def test_text_that_looks_like_toml_inside_a_value_is_left_alone() -> None:
    text = dedent(
        '''\
        [ask]
        system_prompt = """
        [http]
        port = 1
        """
        '''
    )
    assert changed(text, http__port=2) == f"{text}\n[http]\nport = 2\n"


def test_what_cannot_be_changed_alone_is_refused() -> None:
    with pytest.raises(PermanentError) as caught:
        changed('[[runtime]]\nname = "a"\n[[runtime]]\nname = "b"\n', runtime__name="c")
    assert caught.value.code == "config.by_hand"
    assert str(caught.value) == (
        "runtime.name: cannot be changed without touching other keys; edit the file by hand"
    )


def test_marks_of_the_layouts_are_found_again() -> None:
    path = parse_dotted('models."b.1".model')
    assert lines_beside(f"x = 1 # {mark(path)}\n", {}) == [f"x = 1 # {mark(path)}"]


@pytest.mark.parametrize("text", ["[ask]\nmax_steps = 1\n", "# mine\n", "", "[ask]\n\n# more\n"])
def test_a_section_that_comes_and_goes_leaves_no_gap(text: str) -> None:
    path, table = ("models", "main"), {"wire": "offline", "model": "m"}
    assert rewritten(rewritten(text, {path: table}), {path: REMOVED}) == text
