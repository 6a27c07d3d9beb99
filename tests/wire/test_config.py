"""Edits of the configuration as JSON: what is too large for the network is refused before it is read."""

import re

import pytest

from session_runtime.errors import RequestError
from session_runtime.wire import edits_from_json

WAY_OUT = "can be sent over the network: edit the file on its machine"


@pytest.mark.requirement("NET-3")
@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"a.b": ["x"] * 1_001}, f"a.b: holds 1001 items, at most 1000 {WAY_OUT}"),
        ({"a.b": "x" * 65_537}, f"a.b: holds a text of 65537 characters, at most 65536 {WAY_OUT}"),
        ({"a.b": [{"c": [0] * 1_001}]}, f"a.b: holds 1001 items, at most 1000 {WAY_OUT}"),
        ({"a": {"x" * 65_537: 1}}, f"a: holds a text of 65537 characters, at most 65536 {WAY_OUT}"),
        (
            {"x" * 65_537: 1},
            f"{'x' * 100}: holds a text of 65537 characters, at most 65536 {WAY_OUT}",
        ),
        (
            {str(each): None for each in range(1_001)},
            "the request: holds 1001 keys, at most 1000 are allowed",
        ),
    ],
    ids=["list", "text", "inside", "name", "key", "keys"],
)
def test_what_is_too_large_is_refused_with_the_way_out(
    values: dict[str, object], fault: str
) -> None:
    with pytest.raises(RequestError, match=f"^{re.escape(fault)}$"):
        edits_from_json(values)


def test_the_largest_values_are_taken() -> None:
    values = {"a.b": ["x"] * 1_000, "c": "x" * 65_536}
    assert edits_from_json(values) == values
