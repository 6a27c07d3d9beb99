"""How argument text becomes an object: what is repaired, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.ask.arguments import ArgumentFault, Arguments, parse_arguments

ANY_OBJECT = {"type": "object"}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    ("raw", "values", "repairs"),
    [
        ('{"q": "a"}', {"q": "a"}, ()),
        ("", {}, ()),
        ("  ", {}, ()),
        ("null", {}, ()),
        ('```json\n{"q": 1}\n```', {"q": 1}, ("code fence",)),
        ('{"q": [1, 2,], }', {"q": [1, 2]}, ("trailing comma",)),
        ('{"q": "a,}",}', {"q": "a,}"}, ("trailing comma",)),
        ('"{\\"pattern\\": \\"*\\"}"', {"pattern": "*"}, ("double encoding",)),
    ],
)
def test_text_that_needs_no_guess_becomes_an_object(
    raw: str, values: object, repairs: tuple[str, ...]
) -> None:
    assert parse_arguments(raw, ANY_OBJECT) == Arguments(values, repairs)


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ('{"q": "a"', "not valid JSON"),
        ('query = """x"""', "not valid JSON"),
        ('{"a": 1} extra', "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number"),
        ('{"a": 1e999}', "not valid JSON"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"b": {"a": 1, "a": 1}}', "the key 'a' is given twice"),
        (json.dumps('{"a": 1, "a": 2}'), "the key 'a' is given twice"),
        ('{"a": "\\ud800"}', "half of a surrogate pair"),
        ('{"a": "\ud800"}', "half of a surrogate pair"),
        ('{"a": ' + "[" * 64 + "]" * 64 + "}", "nested deeper than 64 levels"),
        ("[1]", "must be a JSON object, not an array"),
        ("7", "must be a JSON object, not a number"),
        ("true", "must be a JSON object, not a boolean"),
        ('"plain words"', "not valid JSON"),
        ('"\\"{}\\""', "must be a JSON object, not a string"),
        ("[" * 40_000, "nested deeper than"),
        ("{,}", "not valid JSON"),
        ('{"q": [ , ]}', "not valid JSON"),
        ('{"q": [1,,]}', "not valid JSON"),
        ('{"q": ,}', "not valid JSON"),
        ('{"q": [' + "1," * 50_000 + "1]}", "more than 50000 values"),
        ('{"q": [' + "1," * 50_000 + "]}", "more than 50000 values"),
        (json.dumps('{"q": [' + "1," * 50_000 + "1]}"), "more than 50000 values"),
        ('{"q": [' + "[[[1]]]," * 20_000 + "1]}", "more than 50000 values"),
        ('{"a": "' + "x" * 1_000_001 + '"}', "at most 1000000"),
        ('{"a": ' + "9" * 5000 + "}", "not valid JSON"),
    ],
)
def test_text_that_would_need_a_guess_is_refused_with_the_problem(raw: str, says: str) -> None:
    fault = parse_arguments(raw, ANY_OBJECT)
    assert isinstance(fault, ArgumentFault)
    assert says in fault.problem


@pytest.mark.requirement("ASK-5")
def test_a_field_is_unwrapped_once_only_where_the_schema_wants_an_object_or_array() -> None:
    schema = {
        "type": "object",
        "properties": {
            "fields": {"type": "object"},
            "ids": {"type": "array"},
            "note": {"type": "string"},
        },
    }
    given_values = {"fields": '{"a": 1}', "ids": "[1, 2]", "note": '{"keep": "me"}', "x": "[3]"}
    assert parse_arguments(json.dumps(given_values), schema) == Arguments(
        {"fields": {"a": 1}, "ids": [1, 2], "note": '{"keep": "me"}', "x": "[3]"},
        ("double encoding of 'fields'", "double encoding of 'ids'"),
    )


OBJECT = {"type": "object"}
NULL = {"type": "null"}


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "field",
    [
        {"type": ["object", "null"]},
        {"anyOf": [OBJECT, NULL]},
        {"oneOf": [NULL, {"type": ["array", "object"]}]},
        {"anyOf": [{"$ref": "#/$defs/F"}, NULL]},
        {"$ref": "#/$defs/F"},
        {"$ref": "#/$defs/optional"},
    ],
)
def test_a_field_that_may_be_an_object_but_no_text_is_unwrapped_too(field: object) -> None:
    definitions = {"F": OBJECT, "optional": {"anyOf": [{"$ref": "#/$defs/F"}, NULL]}}
    schema = {"type": "object", "properties": {"f": field}, "$defs": definitions}
    assert parse_arguments('{"f": "{\\"a\\": 1}"}', schema) == Arguments(
        {"f": {"a": 1}}, ("double encoding of 'f'",)
    )


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "field",
    [
        {"type": ["object", "string"]},
        {"anyOf": [OBJECT, {"type": "string"}]},
        {"anyOf": [OBJECT, {"enum": ["all"]}]},
        {"anyOf": [OBJECT, {"$ref": "#/$defs/gone"}]},
        {"type": ["array", "null"]},
        NULL,
        {},
        True,
    ],
)
def test_a_field_that_may_be_a_text_or_no_object_is_left_as_it_is(field: object) -> None:
    schema = {"type": "object", "properties": {"f": field}}
    assert parse_arguments('{"f": "{}"}', schema) == Arguments({"f": "{}"})


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "values",
    [
        {"q": [1] * 49_998},
        {"q": [[]] * 49_998},
        {f"k{number}": [{}] for number in range(24_999)},
        {"csv": "1,2,[3]\\\n" * 60_000, "quotes": '{",' * 30_000},
    ],
    ids=["numbers", "empty arrays", "keys", "marks in texts"],
)
def test_as_many_values_as_the_check_allows_are_read(values: dict[str, object]) -> None:
    assert parse_arguments(json.dumps(values), ANY_OBJECT) == Arguments(values)


@pytest.mark.requirement("ASK-5")
def test_a_field_with_too_many_values_in_its_text_is_left_for_the_schema_check() -> None:
    schema = {"type": "object", "properties": {"f": {"type": "array"}}}
    text = "[" + "1," * 50_000 + "1]"
    assert parse_arguments(json.dumps({"f": text}), schema) == Arguments({"f": text})


@pytest.mark.requirement("ASK-5")
def test_a_field_of_the_wrong_kind_inside_its_string_is_left_for_the_schema_check() -> None:
    schema = {"type": "object", "properties": {"fields": {"type": "object"}}}
    assert parse_arguments('{"fields": "[1]"}', schema) == Arguments({"fields": "[1]"})


@pytest.mark.requirement("ASK-5")
@given(st.dictionaries(st.text(), JSON_VALUES))
def test_valid_json_objects_come_through_unchanged(values: dict[str, object]) -> None:
    assert parse_arguments(json.dumps(values), ANY_OBJECT) == Arguments(values)


@pytest.mark.requirement("ASK-5")
@given(st.text())
def test_no_text_makes_the_parser_fail(raw: str) -> None:
    assert isinstance(parse_arguments(raw, ANY_OBJECT), Arguments | ArgumentFault)


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    "raw",
    [
        "```json" + "\n" * 300_000,
        '{"html": "' + '\\"' * 150_000,
        '{"html": "' + '\\"' * 150_000 + "\\",
        "," * 300_000,
        '{"a": [' + "1, " * 100_000 + " " * 300_000,
    ],
    ids=["blank lines", "cut off in quotes", "cut off in an escape", "commas", "cut off in blanks"],
)
def test_a_long_reply_that_was_cut_off_is_read_in_linear_time(raw: str) -> None:
    assert isinstance(parse_arguments(raw, ANY_OBJECT), ArgumentFault)
