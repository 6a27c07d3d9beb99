import contextlib
import json
import math
import re
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import RequestError
from session_runtime.wire import parse_json, strict_json, to_bytes, well_formed

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.none() | st.floats() | st.text(st.characters()) | st.text(st.characters(categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_json_survives_being_written_and_read(data: Any) -> None:
    assert parse_json(to_bytes(data)) == data


@given(ANYTHING)
def test_whatever_a_model_or_tool_says_can_be_written(data: Any) -> None:
    json.loads(to_bytes(data).decode(), parse_constant=pytest.fail)


def test_what_json_cannot_hold_is_replaced() -> None:
    data = {"half": "a\ud83d", "pair": "\ud83d\ude00", "nan": math.nan, "inf": [-math.inf]}
    assert json.loads(to_bytes(data)) == {
        "half": "a\ufffd",
        "pair": "😀",
        "nan": None,
        "inf": [None],
    }


def test_mappings_tuples_and_sets_are_written_as_json() -> None:
    data = MappingProxyType({"names": ("a", "b"), "roles": frozenset({"y", "x"})})
    assert to_bytes(data) == b'{"names":["a","b"],"roles":["x","y"]}'


def test_text_outside_ascii_is_written_as_it_is() -> None:
    assert to_bytes({"text": "天气"}) == '{"text":"天气"}'.encode()


def test_well_formed_leaves_good_text_alone() -> None:
    assert well_formed("天气 😀 e\u0301") == "天气 😀 e\u0301"


def test_a_byte_order_mark_is_accepted() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "it is empty"),
        (b"  ", "it is empty"),
        (b"{", "line 1 column 2"),
        (b'{"a": 1,}', "line 1 column"),
        (b"{'a': 1}", "line 1 column 2"),
        (b"\xff\xfe{}", "it is not UTF-8 at byte 0"),
        (b"NaN", "NaN is not a JSON number"),
        (b'{"a": [-Infinity]}', "-Infinity is not a JSON number"),
        (b"1e999", "1e999 is too large"),
        (b"9" * 5000, "has 5000 digits"),
        (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' is given twice"),
        (rb'{"a": "x\ud800y"}', "half of a surrogate pair"),
        (rb'{"\udfff": 1}', "half of a surrogate pair"),
        (b"[" * 65 + b"]" * 65, "deeper than 64 levels"),
        (b"[" * 10_000 + b"]" * 10_000, "deeper than 64 levels"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deeper than 64 levels"),
        (b"[" * 1_000_000, "deeper than 64 levels"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_json(body)
    assert caught.value.code == "request.json"
    assert reason in str(caught.value)
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' is given twice"),
        ('{"a": {"b": 1, "b": 1}}', "the key 'b' is given twice"),
        ("NaN", "NaN is not a JSON number"),
        ("Infinity", "Infinity is not a JSON number"),
        ("[" * 100_000 + "]" * 100_000, "it is nested deeper than 64 levels"),
    ],
)
def test_strict_json_says_in_plain_words_why_a_text_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        strict_json(text)


def test_a_doubled_key_behind_very_many_others_is_found_in_one_pass() -> None:
    keys = ",".join(
        f'"{number}":1' for number in range(400_000)
    )  # takes hours if compared pairwise
    with pytest.raises(ValueError, match="the key 'last' is given twice"):
        strict_json(f'{{{keys},"last":1,"last":2}}')


def test_sixty_four_levels_are_allowed() -> None:
    parse_json(b"[" * 64 + b"]" * 64)


@given(st.binary(max_size=40))
def test_any_bytes_are_parsed_or_refused(body: bytes) -> None:
    with contextlib.suppress(RequestError):
        parse_json(body)
