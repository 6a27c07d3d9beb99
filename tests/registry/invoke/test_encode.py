"""JSON in pieces is the JSON that the standard library writes, whatever the data looks like."""

import base64
import json
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.registry.invoke import encode
from session_runtime.registry.invoke.encode import (
    Whole,
    base64_text,
    json_text,
    least_chars,
    plain_text,
    table_text,
)

MOST = 10_000_000
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=200)
)
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=200
)


def plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(DATA, st.integers(1, 100))
def test_pieces_of_any_size_make_the_same_text(value: object, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "PIECE_CHARS", size)
        assert json_text(value, MOST) == Whole(len(plain(value)), plain(value))


@given(DATA)
def test_the_least_length_is_never_more_than_the_length(value: object) -> None:
    assert least_chars(value, MOST) <= len(plain(value))


@pytest.mark.parametrize(
    "value",
    [
        [{"id": n, "tags": ["a", None, n / 2]} for n in range(5_000)],
        {f"k{n}": [n] * 10 for n in range(3_000)},
        {"one": "天\n" * 50_000},
        [["x" * 20_000], "y" * 20_000, []],
        dict.fromkeys(range(5_000), "number as a key"),
        OrderedDict(a=tuple(range(20_000))),
    ],
    ids=["rows", "members", "text", "strings", "numbered", "subclasses"],
)
def test_large_data_is_encoded_like_small_data(value: Any) -> None:
    assert json_text(value, MOST) == Whole(len(plain(value)), plain(value))


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def ring() -> list[Any]:
    around: list[Any] = [1] * 100
    around.append(around)
    return around


def wide(depth: int) -> list[Any]:
    value: list[Any] = ["x" * 20_000]
    for _ in range(depth):
        value = [value, depth]
    return value


def test_large_data_may_be_nested_a_hundred_levels_deep() -> None:
    assert json_text(wide(98), MOST) == Whole(len(plain(wide(98))), plain(wide(98)))
    assert json_text(wide(101), MOST) is None


@pytest.mark.parametrize(
    "value",
    [
        nested(5_000),
        nested(100_000),
        ring(),
        {"a": [1, float("nan")]},
        {("a", "b"): 1},
        ["x" * 20_000, {1, 2}],
        [b"bytes"] * 20_000,
        10**5_000,
    ],
    ids=["deep", "very deep", "ring", "nan", "tuple as key", "set", "bytes", "huge number"],
)
def test_what_is_no_json_data_has_no_text(value: object) -> None:
    assert json_text(value, MOST) is None


def test_data_that_holds_the_same_part_again_and_again_comes_to_an_end() -> None:
    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "MOST_CHARS", 1_000_000)
        assert json_text(value, 1_000) is None


def test_looking_at_a_ring_or_a_long_list_ends_soon() -> None:
    assert 100 < least_chars(ring(), 100) < 1_000
    assert least_chars(range(10), 100) == 1
    assert least_chars([0] * 1_000_000, 100) == 1_000_002


def test_more_than_may_be_kept_is_counted_only() -> None:
    whole = json_text(["x" * 100] * 1_000, 5_000)
    assert whole is not None
    assert (whole.chars, whole.complete) == (len(plain(["x" * 100] * 1_000)), False)
    assert plain_text("天" * 100, 7) == Whole(100, "天" * 7)


@pytest.mark.parametrize("text", ["a\ud800b", "天\udfff" * 20_000])
def test_halves_of_characters_are_replaced_everywhere(text: str) -> None:
    mended = text.encode("utf-8", "replace").decode()
    assert plain_text(text, MOST).text == mended
    assert json_text([text], MOST) == Whole(len(plain([mended])), plain([mended]))


def test_a_table_is_json_with_one_row_per_line() -> None:
    table = table_text(["city", "°C"], [["Rome", 21], ("Oslo", None)], MOST)
    assert table is not None
    assert table.text == '{"columns":["city","°C"],"rows":[\n["Rome",21],\n["Oslo",null]]}'
    assert table_text([], [], MOST) == Whole(24, '{"columns":[],"rows":[]}')
    assert table_text(["a"], [[{1}]], MOST) is None


@given(st.binary(max_size=500), st.integers(1, 9))
def test_bytes_in_pieces_are_base64(data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "PIECE_CHARS", size)
        assert base64_text(data) == base64.b64encode(data).decode()
