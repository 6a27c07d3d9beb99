"""JSON that is read in slices is the JSON that it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.mcp import json_slices
from session_runtime.mcp.json_slices import MAX_DEPTH, TOO_DEEP, TooMuch, read_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=120),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('ab"\\é😀', max_size=9), inner),
)


@pytest.fixture(autouse=True, params=[120, 600, 98_304])
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_slices, "_WINDOW_CHARS", request.param)
    monkeypatch.setattr(json_slices, "_LEAST_CHARS", request.param // 3)


def is_refused(text: str) -> bool:
    try:
        read_json(text)
    except ValueError:
        return True
    return False


def nested(levels: int) -> str:
    return "[" * levels + "1" + "]" * levels


def depth_of(value: Any) -> tuple[int, Any]:
    depth = 0
    while isinstance(value, list):
        depth, value = depth + 1, value[0]
    return depth, value


@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_a_value_is_read_as_it_was_written(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert read_json(f" {text}\r\n") == value


@pytest.mark.parametrize("blanks", [0, 500])
@pytest.mark.parametrize(
    "text",
    [
        "nul",
        "-",
        "[1,2",
        "[1 2]",
        "[1,]",
        "[1}",
        '{"a" 1}',
        '{"a": 1,}',
        "{1: 2}",
        '{"a": 1]',
        '"abc',
        '"a\x01"',
        '"\\x"',
        '"\\u12"',
        "[1] x",
        "[1] [2]",
    ],
)
def test_what_is_no_json_is_refused(text: str, blanks: int) -> None:
    assert is_refused(" " * blanks + text)
    assert is_refused("[" + "7," * blanks + text + "]")


@pytest.mark.parametrize("levels", [1, MAX_DEPTH, MAX_DEPTH + 1, 900, 2_500])
def test_what_is_nested_too_deep_is_left_out_and_the_rest_stays(levels: int) -> None:
    read = read_json(f'{{"deep": {nested(levels - 1)}, "next": [1]}}')
    expected = (levels - 1, 1) if levels <= MAX_DEPTH else (MAX_DEPTH - 1, TOO_DEEP)
    assert depth_of(read["deep"]) == expected
    assert read["next"] == [1]


def test_nothing_is_refused() -> None:
    assert is_refused("")


def test_what_is_nested_beyond_all_measure_is_refused() -> None:
    with pytest.raises(TooMuch, match="nested more than 4000 levels"):
        read_json("[" * 100_000)


def test_more_values_than_are_kept_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_slices, "_MAX_COMMAS", 1_000)
    monkeypatch.setattr(json_slices, "_LEAST_CHARS", 10)
    with pytest.raises(TooMuch, match="more than 1000 values"):
        read_json("[" + "[1, 2], " * 2_000 + "0]")


def test_numbers_that_json_has_not_become_nothing() -> None:
    assert read_json("[NaN, Infinity, -Infinity]") == [None, None, None]


def test_halves_of_surrogate_pairs_are_joined_or_replaced() -> None:
    halves = '"\\ud83d\\ude00 \\ud800 ' + "\\ud83d\\ude00" * 100 + '"'
    assert read_json(halves) == "😀 \ufffd " + "😀" * 100
