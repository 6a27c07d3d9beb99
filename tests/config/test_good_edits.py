"""Edits of good configurations, of any key: they come to what was wanted, or are refused."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.load import load
from session_runtime.config.settings import Settings
from session_runtime.config.shape import leaves
from session_runtime.config.written import REMOVED, keys_of
from session_runtime.errors import ConfigError
from tests.config.editing import Editor, set_values
from tests.config.layouts import tree

PROFILE = ("models", "m")
LISTS = ([], ["a"], [80])
SINGLE = (True, 1, 7, 0.5, "a", "debug", "allow")


@cache
def good_values() -> tuple[tuple[KeyPath, object], ...]:
    """Per key of the fixed sections and of a profile, values that are good on their own."""
    return tuple(
        (path, value)
        for path, leaf in leaves([PROFILE])
        for value in (LISTS if leaf.many else SINGLE)
        if good({PROFILE: {"wire": "offline"}, path: value}) is not None
    )


def good(settings: Mapping[KeyPath, object]) -> Settings | None:
    """What a file with these keys comes to; None if it is refused."""
    text = tomli_w.dumps(tree(settings)).encode()
    try:
        return load(Path("config.toml"), named=True, env={}, text=text or b"#").settings
    except ConfigError:
        return None


@pytest.mark.requirement("REL-6")
@settings(deadline=None)
@given(st.data())
def test_a_good_file_comes_to_what_was_wanted_or_stays(data: st.DataObject) -> None:
    pair = st.sampled_from(good_values())
    before = {PROFILE: {"wire": "offline"}, **data.draw(st.lists(pair, max_size=6).map(dict))}
    key, value = data.draw(pair)
    after = before | {key: data.draw(st.sampled_from([value, REMOVED]))}
    wanted = good({path: inner for path, inner in after.items() if inner is not REMOVED})
    with TemporaryDirectory() as folder:
        editor = Editor(Path(folder) / "config.toml")
        text = "# mine\n" + tomli_w.dumps(tree(before))
        editor.write(text)
        try:
            set_values(editor.path, {dotted(key): after[key]}, editor.check)
        except ConfigError:
            assert editor.read() == text
        else:
            assert editor.read().startswith("# mine\n")
            result = tomllib.loads(editor.read())
            assert wanted is not None
            assert good(keys_of(result)) == wanted
