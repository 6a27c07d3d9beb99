"""JSON in pieces is the JSON that the standard library writes, whatever the data looks like."""

import base64
import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
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
    | st.integers(-(10**300), 10**300)
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


@given(DATA, st.integers(1, 100), st.integers(0, 2_000))
def test_a_part_that_occurs_again_has_the_same_text_everywhere(
    part: object, size: int, most: int
) -> None:
    value = [part, {"again": part, "and": [part, [part]]}, part]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "PIECE_CHARS", size)
        whole = json_text(value, most)
        assert json_text(value, MOST) == Whole(len(plain(value)), plain(value))
    assert whole is not None
    assert whole.chars == len(plain(value))
    assert plain(value).startswith(whole.text)


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
        {None: ["x"] * 9_000, True: ["y"] * 9_000, 1.5: [0] * 9_000, 10**300: [1] * 9_000},
        {"k" * 40_000: "v" * 40_000},
        OrderedDict(a=tuple(range(20_000))),
    ],
    ids=["rows", "members", "text", "strings", "numbered", "keys", "long key", "subclasses"],
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
        {("a", "b"): "x" * 20_000},
        10**5_000,
        {10**5_000: 1},
        [10**5_000, "x" * 20_000],
    ],
    ids=[
        *(
            "deep",
            "very deep",
            "ring",
            "nan",
            "tuple as key",
            "set",
            "bytes",
            "tuple and long text",
        ),
        *("huge number", "huge key", "huge item"),
    ],
)
def test_what_is_no_json_data_has_no_text(value: object) -> None:
    assert json_text(value, MOST) is None


@pytest.fixture
def any_digits() -> Iterator[None]:
    """Python without its own limit of digits, as the program around us may have set it."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(before)


@pytest.mark.usefixtures("any_digits")
@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: [[n], 1], lambda n: {n: 1, 2: 3}])
def test_digits_that_would_take_long_to_find_are_not_looked_for(
    wrap: Callable[[int], object],
) -> None:
    assert json_text(wrap(1 << 60_000), MOST) is None
    assert json_text(wrap(10**5_000), MOST) == Whole(*_measured(wrap(10**5_000)))


def _measured(value: object) -> tuple[int, str]:
    return len(plain(value)), plain(value)


@pytest.mark.parametrize("most", [0, 1_000, MOST])
def test_data_that_holds_the_same_part_again_and_again_is_encoded_once_and_given_up(
    most: int,
) -> None:
    encoded: list[object] = []

    def count(value: object) -> str:
        encoded.append(value)
        assert len(encoded) < 1_000
        return plain(value)

    value: list[Any] = []
    for _ in range(60):
        value = [value, value]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "compact_json", count)
        assert json_text(value, most) is None


def test_data_of_more_than_can_be_shown_has_no_text() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "MOST_CHARS", 100_000)
        assert json_text(["x" * 99_996], MOST) is not None
        assert json_text(["x" * 99_997], MOST) is None


@pytest.mark.parametrize(
    "encode_it",
    [
        lambda stopped: json_text(["x" * 20_000] * 9, MOST, stopped),
        lambda stopped: table_text(["a"], [["x" * 20_000]] * 9, MOST, stopped),
        lambda stopped: plain_text("x" * 200_000, MOST, stopped),
        lambda stopped: base64_text(bytes(400_000), stopped),
    ],
    ids=["json", "table", "text", "base64"],
)
def test_what_is_stopped_ends_with_the_next_piece(
    encode_it: Callable[[Callable[[], bool]], Whole | None],
) -> None:
    answers = [True, False, False]
    assert encode_it(answers.pop) is None
    assert answers == []


def test_a_table_of_many_rows_asks_once_a_piece_whether_it_is_stopped() -> None:
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return False

    table = table_text(["a", "b", "c"], [[1, 2, 3]] * 10_000, MOST, stopped)
    assert table is not None
    assert (
        table.chars == len('{"columns":["a","b","c"],"rows":[]}') + 10_000 * len(",\n[1,2,3]") - 1
    )
    assert 3 < asked <= table.chars // encode.PIECE_CHARS


def test_looking_at_a_ring_or_a_long_list_ends_soon() -> None:
    assert 100 < least_chars(ring(), 100) < 1_000
    assert least_chars(range(10), 100) == 1
    assert least_chars([0] * 1_000_000, 100) == 1_000_001
    assert least_chars([0, 7, 10**300], MOST) == len("[,,]") + 2 + 299


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
    assert table_text(["a"], [[1], [{1}]], MOST) is None


@given(st.lists(st.lists(SCALARS, min_size=2, max_size=2)), st.integers(1, 300))
def test_a_table_in_pieces_of_any_size_has_the_same_text(rows: list[Any], size: int) -> None:
    lines = ",".join(f"\n{plain(row)}" for row in rows)
    text = f'{{"columns":["a","b"],"rows":[{lines}]}}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "PIECE_CHARS", size)
        assert table_text(["a", "b"], rows, MOST) == Whole(len(text), text)


@given(st.binary(max_size=500), st.integers(1, 9))
def test_bytes_in_pieces_are_base64(data: bytes, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "PIECE_CHARS", size)
        encoded = base64.b64encode(data).decode()
        assert base64_text(data) == Whole(len(encoded), encoded)
