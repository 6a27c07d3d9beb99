"""Schemas are checked when a tool is found, arguments before it runs, both in bounds."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import PermanentError
from session_runtime.registry.schema import MAX_PROBLEMS, compile_schema

TEXTS = st.text(max_size=5)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def problems(properties: dict[str, Any], arguments: dict[str, Any], **root: Any) -> list[str]:
    schema = {"type": "object", "properties": properties, **root}
    return list(compile_schema(schema).problems(arguments))


def refusal(schema: dict[str, Any]) -> str:
    with pytest.raises(PermanentError) as caught:
        compile_schema(schema)
    assert caught.value.code == "tool.schema_invalid"
    return str(caught.value)


@pytest.mark.requirement("REG-7")
def test_arguments_that_fit_have_no_problem() -> None:
    check = compile_schema({"type": "object", "properties": {"q": {"type": "string"}}})
    assert check.problems({"q": "a", "more": [1, None]}) == ()


@pytest.mark.requirement("REG-7")
def test_problems_inside_objects_have_the_whole_path() -> None:
    inner = {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["need"]}
    assert set(problems({"opts": inner}, {"opts": {"deep": 1}})) == {
        "opts.deep: must be a boolean, got 1",
        "opts.need: is required and missing",
    }


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"query": {}}, "querry: is not known; did you mean query?"),
        ({"a": {}, "b": {}}, "querry: is not known; known are a, b"),
        ({}, "querry: is not known; nothing is allowed here"),
    ],
)
def test_an_unknown_argument_is_answered_with_the_known_ones(
    properties: dict[str, Any], problem: str
) -> None:
    assert problems(properties, {"querry": 1}, additionalProperties=False) == [problem]


@pytest.mark.requirement("REG-7")
def test_at_most_five_problems_are_told() -> None:
    names = [f"n{number}" for number in range(20)]
    told = problems({name: {"type": "string"} for name in names}, dict.fromkeys(names, 1))
    assert len(told) == len(set(told)) == MAX_PROBLEMS


def anything_of(*kinds: str) -> dict[str, Any]:
    return {"anyOf": [{"type": "array", "items": {"type": kind}} for kind in kinds]}


TOO_LARGE_TO_TELL = (
    "the arguments do not fit the parameters of this tool and are too large to be told where: "
    "compare them with the parameters, or send less at a time"
)


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize(
    ("schema", "arguments", "problem"),
    [
        (
            {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
            {"a": list(range(1_600))},
            "a[0]: must be a string, got 0",
        ),
        (
            {"required": [f"n{number}" for number in range(5_000)]},
            {},
            "n0: is required and missing",
        ),
        (
            {"required": [f"n{number}" for number in range(100)]},
            {"x": "y" * 900_000},
            "n0: is required and missing",
        ),
        (
            {"properties": {"a": anything_of("string", "null")}},
            {"a": [1] * 4_000},
            TOO_LARGE_TO_TELL,
        ),
        (
            {"properties": {"a": {"oneOf": [{"required": [f"n{n}" for n in range(4_000)]}]}}},
            {"a": {"x": "y" * 900_000}},
            TOO_LARGE_TO_TELL,
        ),
    ],
    ids=["items", "missing keys", "missing keys of much", "forms of items", "forms of much"],
)
def test_of_what_would_have_very_many_faults_one_is_told_at_most(
    schema: dict[str, Any], arguments: dict[str, Any], problem: str
) -> None:
    check = compile_schema({"type": "object", **schema})
    assert check.problems(arguments) == (problem,)


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize(
    ("arguments", "waits"),
    [
        ({"a": [1] * 100}, False),
        ({"a": "x" * 16_000}, False),
        ({"a": [1] * 2_000}, True),
        ({"a": "x" * 17_000}, True),
        ({"a": [1] * 60_000}, True),
        ({"b": [1] * 800}, True),
    ],
)
async def test_what_takes_long_to_check_is_checked_beside_the_event_loop(
    arguments: dict[str, Any], waits: bool
) -> None:
    forms = [{"const": number} for number in range(10)] if "b" in arguments else [{}]
    check = compile_schema({"type": "object", "properties": {"b": {"anyOf": forms}}})
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "other work")
    assert await check.examine(arguments) == check.problems(arguments)
    assert bool(turns) is waits


def test_long_values_are_shortened_in_problems() -> None:
    (problem,) = problems({"x": {"maxLength": 3, "type": "integer"}}, {"x": "y" * 10_000})[:1]
    assert len(problem) < 150


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"x": "y" * 1_000_001}, "more than 1000000 characters"),
        ({"x": [0] * 50_001}, "more than 50000 values"),
        ({"x": float("nan")}, "nan is not a JSON number"),
        ({"x": {1: 2}}, "a key is not a text"),
        ({"x": {1, 2}}, "a set is not JSON data"),
        ({"x": "\ud800"}, "half of a character"),
    ],
)
def test_arguments_beyond_the_bounds_are_refused(arguments: dict[str, Any], says: str) -> None:
    (problem,) = compile_schema({"type": "object"}).problems(arguments)
    assert says in problem


@pytest.mark.requirement("REG-7")
def test_arguments_that_are_nested_too_deeply_are_refused() -> None:
    value: object = 1
    for _ in range(10_000):
        value = [value]
    (problem,) = compile_schema({"type": "object"}).problems({"x": value})
    assert problem == "the arguments are refused: nested more than 64 levels deep"


@pytest.mark.requirement("REG-4")
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({}, 'the root has no type: add "type": "object"'),
        ({"type": "string"}, 'the root must have "type": "object", got "string"'),
        ({"type": ["object"]}, 'the root must have "type": "object", got ["object"]'),
        ({"type": "object", "properties": None}, "properties: must be an object, got null"),
        ({"type": "object", "required": "q"}, "required: must be an array"),
        (
            {"type": "object", "properties": {"n": {"type": "any"}}},
            'properties.n.type: must be one of "array", "boolean"',
        ),
        (
            {"type": "object", "properties": {"n": {"minimum": 0, "exclusiveMinimum": True}}},
            "properties.n.exclusiveMinimum: must be a number; true and false are the style of draft",
        ),
        (
            {"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"},
            "$schema names draft-04, which is not supported",
        ),
        (
            {"type": "object", "properties": {"n": {"$ref": "#/$defs/gone"}}},
            "a $ref leads nowhere",
        ),
    ],
)
def test_an_illegal_schema_is_refused_with_its_fault(schema: dict[str, Any], says: str) -> None:
    assert says in refusal(schema)


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(a{1000}){1000}", "["])
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_a_pattern_without_a_linear_time_match_is_refused(pattern: str, keyword: str) -> None:
    content: Any = pattern if keyword == "pattern" else {pattern: {}}
    told = refusal({"type": "object", "properties": {"n": {keyword: content}}})
    assert "has no linear-time match" in told


@pytest.mark.requirement("REG-7")
def test_nested_repetition_is_matched_without_backtracking() -> None:
    value = "a" * 5_000 + "!"
    (problem,) = problems({"n": {"pattern": "^(a+)+$"}}, {"n": value})
    assert problem.startswith('n: must match the pattern "^(a+)+$"')


def test_definitions_stay_usable_and_the_draft_of_the_schema_counts() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"F": {"enum": ["fit", "raw"]}},
        "properties": {"f": {"$ref": "#/definitions/F"}, "p": {"items": [{"type": "string"}]}},
    }
    check = compile_schema(schema)
    assert check.problems({"f": "fit", "p": ["a", 1]}) == ()
    assert check.problems({"f": "x"}) == ('f: must be one of "fit", "raw", got "x"',)


def test_formats_are_not_enforced() -> None:
    assert problems({"when": {"type": "string", "format": "date-time"}}, {"when": "nope"}) == []


@given(JSON_VALUES, JSON_VALUES)
def test_whatever_is_given_as_a_schema_compiles_or_is_refused(
    content: object, value: object
) -> None:
    try:
        check = compile_schema({"type": "object", "properties": {"x": content}})
    except PermanentError:
        return
    assert all(isinstance(problem, str) for problem in check.problems({"x": value}))
