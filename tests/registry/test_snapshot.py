"""What there was and what there is now: each change is told with whether it breaks callers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.registry.snapshot import compare, read_snapshot, snapshot
from session_runtime.registry.spec import Annotations, Deprecated, ToolSpec
from tests.registry.tools import spec

TEXT = {"type": "object", "properties": {"a": {"type": "string"}}}
NUMBER = {"type": "object", "properties": {"a": {"type": "integer"}}}


def changes(old: list[ToolSpec], new: list[ToolSpec]) -> list[tuple[str, str, str]]:
    return [
        (change.tool, change.weight, change.what)
        for change in compare(snapshot(old), snapshot(new))
    ]


@pytest.mark.requirement("RTE-12")
def test_a_snapshot_says_what_callers_rely_on() -> None:
    tool = spec(
        "a.b",
        TEXT,
        requires=frozenset({"staff"}),
        annotations=Annotations(destructive=True),
        deprecated=Deprecated("old", "a.c"),
    )
    [told] = snapshot([tool])["tools"]
    assert {key: told[key] for key in told if not key.endswith("digest")} == {
        "name": "a.b",
        "parameters": TEXT,
        "annotations": {"destructive": True, "read_only": False, "idempotent": False},
        "source": "here",
        "requires": ["staff"],
        "feature": None,
        "deprecated": {"reason": "old", "replacement": "a.c"},
    }


def test_the_order_of_tools_and_keys_makes_no_difference() -> None:
    one, other = spec("a", TEXT), spec("b", {"properties": {}, "type": "object"})
    turned = spec("b", {"type": "object", "properties": {}})
    assert snapshot([one, other]) == snapshot([turned, one])


@pytest.mark.requirement("RTE-12")
@pytest.mark.parametrize(
    ("edit", "weight", "what"),
    [
        (
            {"parameters": NUMBER},
            "breaking",
            "parameter 'a' was of type string, now of type integer",
        ),
        ({"annotations": Annotations(destructive=True)}, "breaking", "is destructive now"),
        ({"requires": frozenset({"staff"})}, "breaking", "requires the role 'staff' now"),
        ({"feature": "beta"}, "breaking", "needs the feature 'beta' now"),
        (
            {"parameters": {**TEXT, "title": "T"}},
            "compatible",
            "takes other parameters, and all that it took before",
        ),
        ({"description": "Another."}, "compatible", "has another description"),
        ({"output": TEXT}, "compatible", "describes its results in another way"),
        ({"annotations": Annotations(read_only=True)}, "compatible", "read_only is true now"),
        ({"source_id": "mcp:x"}, "compatible", "comes from mcp:x now, before from here"),
        ({"deprecated": Deprecated("", "b")}, "compatible", "is deprecated, use b"),
    ],
)
def test_each_change_is_told_with_its_weight(edit: dict[str, Any], weight: str, what: str) -> None:
    changed = {"parameters": TEXT, **edit}
    assert changes([spec("t", TEXT)], [spec("t", **changed)]) == [("t", weight, what)]


def test_what_is_looser_now_breaks_nobody() -> None:
    strict = spec(
        "t", annotations=Annotations(destructive=True), requires=frozenset({"r"}), feature="f"
    )
    assert [weight for _, weight, _ in changes([strict], [spec("t")])] == ["compatible"] * 3


@pytest.mark.requirement("RTE-12")
def test_tools_that_came_and_went_are_told() -> None:
    old = [spec("gone"), spec("late", deprecated=Deprecated("", "new"))]
    assert changes(old, [spec("new")]) == [
        ("gone", "breaking", "is gone"),
        ("late", "breaking", "is gone; it was deprecated"),
        ("new", "compatible", "is new"),
    ]


NAMED = st.dictionaries(
    st.sampled_from("abcd"), st.sampled_from([TEXT, NUMBER, {"type": "object"}])
)


@given(old=NAMED, new=NAMED)
def test_a_snapshot_differs_from_another_exactly_if_tools_do(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    before, after = ([spec(name, schema) for name, schema in of.items()] for of in (old, new))
    kept = read_snapshot(json.loads(json.dumps(snapshot(before))))
    assert bool(compare(kept, snapshot(after))) == (old != new)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ([], "it is no snapshot of tools"),
        ({"version": 2, "tools": []}, "it has version 2"),
        ({"version": 1, "tools": [{"name": "a"}]}, "it is no snapshot of tools"),
        ({"version": 1, "tools": ["a"]}, "it is no snapshot of tools"),
    ],
)
def test_what_is_no_snapshot_is_refused(data: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_snapshot(data)
