"""What a schema marks as secret is blacked out, by whichever keyword the mark is reached."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.audit import masking
from session_runtime.audit.masking import masked

SECRET = "S3cr"
PASSWORD = {"type": "string", "format": "password"}
SCHEMA = {
    "type": "object",
    "properties": {
        "pin": {"type": "string", "format": "password"},
        "to": {"$ref": "#/$defs/account"},
        "rows": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/account"}, {}]}},
    },
    "additionalProperties": {"writeOnly": True},
    "$defs": {"account": {"type": "object", "properties": {"code": {"writeOnly": True}}}},
}

Schema = dict[str, Any]
Step = tuple[str, Callable[[Any, Schema, Schema], tuple[Any, Schema]]]


def referred(name: str, reference: str) -> Step:
    def step(value: Any, schema: Schema, definitions: Schema) -> tuple[Any, Schema]:
        number = len(definitions)
        definitions[name.format(number)] = schema
        return value, {"$ref": reference.format(number)}

    return f"$ref {reference}", step


def anchored(keyword: str, reference: str) -> Step:
    def step(value: Any, schema: Schema, definitions: Schema) -> tuple[Any, Schema]:
        name = f"here{len(definitions)}"
        definitions[name] = {"allOf": [schema], keyword: name}
        return value, {reference: f"#{name}"}

    return f"{reference} to {keyword}", step


def of_same_value(keyword: str, wrap: Callable[[Schema], Any]) -> Step:
    return keyword, lambda value, schema, _: (value, {keyword: wrap(schema)})


def of_property(keyword: str, wrap: Callable[[Schema], Any]) -> Step:
    return keyword, lambda value, schema, _: ({"a": value, "h": 1}, {keyword: wrap(schema)})


def of_item(keyword: str, wrap: Callable[[Schema], Any]) -> Step:
    return keyword, lambda value, schema, _: ([1, value], {keyword: wrap(schema)})


STEPS: list[Step] = [
    *(of_same_value(word, lambda s: [{}, s]) for word in ("allOf", "anyOf", "oneOf")),
    *(of_same_value(word, lambda s: s) for word in ("if", "then", "else", "not")),
    *(of_same_value(word, lambda s: {"h": s}) for word in ("dependentSchemas", "dependencies")),
    of_property("properties", lambda s: {"a": s}),
    of_property("patternProperties", lambda s: {"^a$": s}),
    *(of_property(w, lambda s: s) for w in ("additionalProperties", "unevaluatedProperties")),
    *(of_item(w, lambda s: s) for w in ("items", "contains", "unevaluatedItems")),
    *(of_item(w, lambda s: [True, s]) for w in ("items", "prefixItems")),
    ("additionalItems", lambda v, s, _: ([1, v], {"items": [{}], "additionalItems": s})),
    ("items behind", lambda v, s, _: ([1, v], {"prefixItems": [{}], "items": s})),
    referred("plain{}", "#/$defs/plain{}"),
    referred("a b/c~{}", "#/$defs/a%20b~1c~0{}"),
    ("$ref into a list", lambda v, s, d: into_list(v, s, d)),
    anchored("$anchor", "$ref"),
    anchored("$dynamicAnchor", "$dynamicRef"),
    anchored("$id", "$ref"),
    ("a list for one", lambda v, s, _: ([v], s)),
    ("JSON in a text", lambda v, s, _: (json.dumps(v), s)),
    (
        "contentSchema",
        lambda v, s, _: (json.dumps({"a": v}), {"contentSchema": {"properties": {"a": s}}}),
    ),
]


def into_list(value: Any, schema: Schema, definitions: Schema) -> tuple[Any, Schema]:
    name = f"list{len(definitions)}"
    definitions[name] = {"anyOf": [{}, schema]}
    return value, {"$ref": f"#/$defs/{name}/anyOf/1"}


def built(steps: list[Step], mark: Schema = PASSWORD) -> tuple[Any, Schema]:
    """A secret under these keywords, the innermost first, and the schema that says so."""
    value: Any = SECRET
    schema, definitions = mark, Schema()
    for _, step in steps:
        value, schema = step(value, schema, definitions)
    return value, {"allOf": [schema], "$defs": definitions}


@pytest.mark.requirement("RTE-13")
@pytest.mark.parametrize("step", STEPS, ids=[name for name, _ in STEPS])
@pytest.mark.parametrize("mark", [PASSWORD, {"writeOnly": True}])
def test_every_keyword_leads_to_the_mark(step: Step, mark: Schema) -> None:
    assert SECRET not in json.dumps(masked(*built([step], mark)))


@pytest.mark.requirement("RTE-13")
@given(st.lists(st.sampled_from(STEPS), max_size=40))
def test_any_keywords_inside_each_other_lead_to_the_mark(steps: list[Step]) -> None:
    assert SECRET not in json.dumps(masked(*built(steps)))


@pytest.mark.requirement("RTE-13")
def test_a_schema_that_contains_itself_leads_to_the_mark_at_any_depth() -> None:
    for depth in range(40):
        value: Any = {"a": SECRET}
        for _ in range(depth):
            value = {"c": value}
        schema = {"properties": {"a": PASSWORD, "c": {"$ref": "#"}}}
        assert SECRET not in json.dumps(masked(value, schema))


@pytest.mark.requirement("RTE-13")
def test_what_the_schema_calls_secret_is_blacked_out_and_nothing_else() -> None:
    value = {
        "pin": "1234",
        "to": {"code": 7, "name": "n"},
        "rows": [{"code": [1]}, {"name": "m"}, "{no JSON"],
        "other": {"deep": 1},
    }
    assert masked(value, SCHEMA) == {
        "pin": "***",
        "to": {"code": "***", "name": "n"},
        "rows": [{"code": "***"}, {"name": "m"}, "***"],
        "other": "***",
    }


ONE = {"a": "x", "b": 1}
HALF = {"a": "***", "b": 1}


@pytest.mark.parametrize(
    ("value", "schema", "told"),
    [
        (ONE, {"patternProperties": {"^a": PASSWORD}}, HALF),
        (ONE, {"patternProperties": {"^no": PASSWORD}}, ONE),
        (ONE, {"properties": {"b": {}}, "additionalProperties": PASSWORD}, HALF),
        (ONE, {"patternProperties": {".": {}}, "additionalProperties": PASSWORD}, ONE),
        (["x", "y"], {"prefixItems": [PASSWORD]}, ["***", "y"]),
        ({"l": {"h": 1}}, {"properties": {"l": {"properties": {"a": PASSWORD}}}}, {"l": {"h": 1}}),
        ('{"a": "x", "b": 1}', {"properties": {"a": PASSWORD}}, '{"a": "***", "b": 1}'),
        ("{ as text", {"anyOf": [{"type": "string"}, PASSWORD]}, "***"),
        ("[as text", {"not": {"enum": [PASSWORD]}}, "[as text"),
        ({"a": None}, {"properties": {"a": PASSWORD}}, {"a": None}),
    ],
)
def test_what_is_next_to_a_secret_stays(value: object, schema: Schema, told: object) -> None:
    assert masked(value, schema) == told


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "elsewhere.json"},
        {"$ref": 5},
        {"$ref": "#/allOf/7"},
        {"patternProperties": {"(?<=a)": {}}},
        {"propertyNames": PASSWORD},
        {"contentSchema": {"properties": {"a": PASSWORD}}},
    ],
)
def test_in_doubt_all_is_blacked_out(schema: Schema) -> None:
    value = "text x" if "contentSchema" in schema else {"a": "x"}
    assert "x" not in json.dumps(masked(value, {**schema, "$defs": {"p": PASSWORD}}))


@pytest.mark.requirement("RTE-13")
def test_where_it_would_take_too_long_the_rest_is_blacked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(masking, "MOST_STEPS", 100)
    schema = {"additionalProperties": {"properties": {"a": PASSWORD}}}
    value = {str(number): {"h": number} for number in range(1000)}
    told = masked(value, schema)
    assert isinstance(told, dict)
    assert (told["0"], told["999"]) == ({"h": 0}, "***")


@pytest.mark.parametrize(
    "schema",
    [True, None, {"properties": 5}, {"$ref": "#"}, {"$ref": "#/x/y"}, {"items": 3}, {"allOf": {}}],
)
def test_an_odd_schema_without_a_mark_changes_nothing(schema: object) -> None:
    assert masked({"a": [1]}, schema) == {"a": [1]}


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}, "p": PASSWORD}}
    assert masked({"a": 1}, schema) == {"a": 1}
