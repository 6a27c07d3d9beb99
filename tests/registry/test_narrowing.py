"""A schema that is called no narrower takes every value that the older one took."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from session_runtime.registry.narrowing import narrowed

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from([None, True, 0, 1, 2, 1.5, "", "x", "xyz"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(SCALARS, min_size=1, max_size=4),
        "const": SCALARS,
        "minimum": st.integers(0, 2),
        "maximum": st.integers(0, 2),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "minItems": st.integers(0, 2),
        "pattern": st.sampled_from(["x", "y"]),
        "title": st.text(max_size=3),
    },
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
        },
    )


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just("array"), "items": inner})


def choices(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})


SCHEMAS = st.recursive(
    LEAVES, lambda inner: objects(inner) | arrays(inner) | choices(inner), max_leaves=4
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


PLAIN = st.sampled_from([{}, {"type": "string"}, {"type": ["string", "integer", "null"]}])
OBJECTS = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(NAMES, PLAIN, max_size=2),
        "required": st.lists(NAMES, max_size=1),
        "additionalProperties": st.booleans() | PLAIN,
    },
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[Any, Any]:
    """An object's schema before and after one keyword was set, or left out."""
    old = draw(OBJECTS)
    new = dict(old)
    word = draw(st.sampled_from(["properties", "required", "additionalProperties"]))
    new.pop(word, None)
    given = draw(OBJECTS)
    return old, {**new, **({word: given[word]} if word in given else {})}


def closed(schema: Any) -> Any:
    """The same schema, where objects take nothing beside what is declared unless it says so."""
    match schema:
        case {"type": "object"}:
            more = {"additionalProperties": closed(schema.get("additionalProperties", False))}
            properties = {k: closed(v) for k, v in schema.get("properties", {}).items()}
            return {**schema, "properties": properties, **more}
        case {"items": inner}:
            return {**schema, "items": closed(inner)}
        case {"anyOf": each}:
            return {**schema, "anyOf": [closed(one) for one in each]}
        case _:
            return schema


@pytest.mark.requirement("RTE-12")
@given(old=SCHEMAS, new=SCHEMAS, values=st.lists(VALUES, min_size=1, max_size=30))
def test_what_is_called_no_narrower_takes_all_that_was_taken(
    old: Any, new: Any, values: list[Any]
) -> None:
    assume(not any(narrowed(old, new)))
    for value in values:
        if jsonschema_rs.is_valid(closed(old), value):
            assert jsonschema_rs.is_valid(new, value), value


@pytest.mark.requirement("RTE-12")
@given(pair=edited(), values=st.lists(st.dictionaries(NAMES, SCALARS), min_size=1, max_size=20))
def test_an_edit_of_parameters_that_is_called_no_narrower_takes_all_that_was_taken(
    pair: tuple[Any, Any], values: list[Any]
) -> None:
    old, new = pair
    assume(not any(narrowed(old, new)))
    for value in values:
        if jsonschema_rs.is_valid(closed(old), value):
            assert jsonschema_rs.is_valid(new, value), value


PARTS = st.sampled_from([{}, True, False, {"type": "string"}, {"minimum": 2}, {"enum": [1, "x"]}])
PART_LISTS = st.lists(PARTS, min_size=1, max_size=2)
PART_TABLES = st.dictionaries(NAMES, PARTS, min_size=1, max_size=2)
WORDS = {
    "contains": PARTS,
    "minContains": st.integers(0, 2),
    "maxContains": st.integers(0, 2),
    "prefixItems": PART_LISTS,
    "items": PARTS,
    "unevaluatedItems": PARTS,
    "uniqueItems": st.booleans(),
    "properties": PART_TABLES,
    "patternProperties": PART_TABLES,
    "additionalProperties": PARTS,
    "unevaluatedProperties": PARTS,
    "propertyNames": st.sampled_from([{}, {"maxLength": 0}]),
    "dependentRequired": st.just({"a": ["b"]}),
    "dependentSchemas": PART_TABLES,
    "allOf": PART_LISTS | st.just([{"properties": {"a": {}}}]),
    "anyOf": PART_LISTS | st.just([{"properties": {"a": {}}}, True]),
    "oneOf": PART_LISTS,
    "not": PARTS,
    "if": PARTS | st.just({"properties": {"a": {"minimum": 2}}}),
    "then": PARTS,
    "else": PARTS,
    "enum": st.lists(SCALARS, min_size=1, max_size=3),
    "const": SCALARS,
    "$ref": st.just("#/$defs/a"),
}
SMALL = st.sampled_from([1, 3, "x", True])
WHOLES = st.one_of(SCALARS, st.lists(SMALL, max_size=3), st.dictionaries(NAMES, SMALL, max_size=2))


@st.composite
def with_one_word_less(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema of any few keywords, and the same after one was left out."""
    words = draw(st.lists(st.sampled_from(sorted(WORDS)), min_size=1, max_size=4, unique=True))
    old = {word: draw(WORDS[word]) for word in words}
    new = {word: value for word, value in old.items() if word != words[0]}
    defs = {"$defs": {"a": draw(PARTS | st.just({"properties": {"a": {}}}))}}
    return {**old, **defs}, {**new, **defs}


@pytest.mark.requirement("RTE-12")
@settings(max_examples=500)
@given(pair=with_one_word_less(), values=st.lists(WHOLES, min_size=1, max_size=20))
def test_a_word_that_is_left_out_and_called_no_narrower_bound_no_other_word(
    pair: tuple[Any, Any], values: list[Any]
) -> None:
    old, new = pair
    assume(not any(narrowed(old, new)))
    for value in values:
        if jsonschema_rs.is_valid(old, value):
            assert jsonschema_rs.is_valid(new, value), value


@given(schema=SCHEMAS)
def test_the_same_schema_is_no_narrower(schema: Any) -> None:
    assert list(narrowed(schema, schema)) == []


@given(old=SCHEMAS, name=NAMES, extra=SCHEMAS)
def test_a_new_optional_parameter_is_no_narrower_where_any_other_was_taken(
    old: Any, name: str, extra: Any
) -> None:
    before = {"type": "object", "properties": {"x": old}}
    after = {"type": "object", "properties": {"x": old, name: extra}}
    assert list(narrowed(before, after)) == []


TEXT = {"type": "string"}


@pytest.mark.requirement("RTE-12")
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a": TEXT}, {}, ["parameter 'a' is gone"]),
        (
            {"a": TEXT},
            {"a": {"type": "integer"}},
            ["parameter 'a' was of type string, now of type integer"],
        ),
        (
            {"a": {"type": ["string", "null"]}},
            {"a": TEXT},
            ["parameter 'a' was of type null or string, now of type string"],
        ),
        ({"a": {"enum": [1, 2]}}, {"a": {"enum": [1]}}, ["parameter 'a' does not take 2 any more"]),
        (
            {"a": TEXT},
            {"a": {**TEXT, "enum": ["x"]}},
            ["parameter 'a' takes only listed values now"],
        ),
        ({"a": TEXT}, {"a": {**TEXT, "maxLength": 5}}, ["parameter 'a': maxLength is 5 now"]),
        ({"a": TEXT}, {"a": {**TEXT, "format": "date"}}, ["parameter 'a': format is another"]),
        (
            {"a": {"type": "array", "items": TEXT}},
            {"a": {"type": "array", "items": {"type": "boolean"}}},
            ["parameter 'a.items' was of type string, now of type boolean"],
        ),
        (
            {"a": {"contains": TEXT, "minContains": 0}},
            {"a": {"contains": TEXT}},
            ["parameter 'a': minContains is 1 now"],
        ),
        (
            {"a": {"patternProperties": {"^x": {}}, "additionalProperties": False}},
            {"a": {"additionalProperties": False}},
            ["parameter 'a': additionalProperties binds what patternProperties took"],
        ),
        (
            {"a": {"const": 1}},
            {"a": {"const": 1, "enum": [2]}},
            ["parameter 'a' does not take 1 any more"],
        ),
        ({"a": {"contains": TEXT}}, {"a": {"contains": TEXT, "minContains": 0}}, []),
        ({"a": {"type": "integer"}}, {"a": {"type": "number"}}, []),
        ({"a": {"enum": [1]}}, {"a": {"enum": [1, 2]}}, []),
        ({"a": TEXT}, {"a": {"anyOf": [TEXT, {"type": "null"}]}}, []),
        ({"a": {**TEXT, "maxLength": 5}}, {"a": TEXT}, []),
        ({"a": {**TEXT, "title": "A"}}, {"a": {**TEXT, "title": "B"}}, []),
    ],
)
def test_each_change_is_told(old: dict[str, Any], new: dict[str, Any], told: list[str]) -> None:
    before, after = ({"type": "object", "properties": part} for part in (old, new))
    assert list(narrowed(before, after)) == told


@pytest.mark.requirement("RTE-12")
def test_a_parameter_that_is_required_now_is_told() -> None:
    schema = {"type": "object", "properties": {"a": TEXT}}
    assert list(narrowed(schema, {**schema, "required": ["a"]})) == [
        "parameter 'a' is required now"
    ]


def test_references_are_followed_and_may_go_in_circles() -> None:
    def tree(leaf: Any) -> Any:
        node = {"type": "object", "properties": {"left": {"$ref": "#/$defs/node"}, "leaf": leaf}}
        return {"$ref": "#/$defs/node", "$defs": {"node": node}}

    assert list(narrowed(tree(TEXT), tree({}))) == []
    assert list(narrowed(tree({}), tree(TEXT))) == [
        "parameter 'left.leaf' was of type any, now of type string",
        "parameter 'leaf' was of type any, now of type string",
    ]


@pytest.mark.parametrize("odd", [None, 5, "x", [], {"$ref": "http://x/y"}, {"$ref": "#/gone"}])
def test_what_cannot_be_read_counts_as_narrower(odd: object) -> None:
    assert list(narrowed({"type": "object"}, odd))
