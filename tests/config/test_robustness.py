"""Whatever stands in the file or the environment, reading it ends in settings or in a ConfigError."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.shape import leaves
from session_runtime.config.variables import variable_name
from session_runtime.errors import ConfigError
from tests.config.conftest import Reader

KEYS = [path for path, _ in leaves([("models", "x"), ("access", "rules", "x"), ("features", "x")])]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | WORDS
    | st.datetimes()
    | st.sampled_from(["env:X", "file:\0", "file:/", "chat", "http://[::1", "~", 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.requirement("CFG-1")
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_any_value_at_any_key_is_taken_or_refused(values: Mapping[tuple[str, ...], Any]) -> None:
    document: dict[str, Any] = {}
    for path, value in values.items():
        table = document
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = value
    ends_well(tomli_w.dumps(document), {})


@pytest.mark.requirement("CFG-2")
@given(
    st.dictionaries(
        st.sampled_from([variable_name(key[:end]) for key in KEYS for end in (1, 2, len(key))])
        | WORDS.map(lambda word: f"SESSION_RUNTIME__{word}"),
        st.text(max_size=12)
        | st.sampled_from(
            [
                "{}",
                "[]",
                "[" * 5_000,
                '{"x": {}}',
                "\udcff",
                '["\\udcff"]',
                '{"\\udcff": 1}',
                "9" * 5_000,
            ]
        ),
        max_size=6,
    )
)
def test_any_variable_is_taken_or_refused(env: Mapping[str, str]) -> None:
    ends_well(None, env)


def ends_well(text: str | None, env: Mapping[str, str]) -> None:
    """Read; a fault must be told in text that can be printed."""
    with TemporaryDirectory() as folder:
        try:
            told = repr(Reader(Path(folder))(text, env=env))
        except ConfigError as error:
            told = str(error)
    assert told.encode("utf-8")
