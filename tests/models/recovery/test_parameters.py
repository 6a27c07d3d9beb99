"""Values that were written between tags: they get a type only where the schema leaves no choice."""

import json
from typing import Any

import pytest

from session_runtime.models.recovery.parameters import arguments_of
from tests.models.building import properties

DEFS = {"$defs": {"n": {"type": "integer"}}}


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    ("schema", "raw", "value"),
    [
        ({"type": "string"}, "7", "7"),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": ["string", "integer"]}, "7", "7"),
        ({}, "7", "7"),
        ({"enum": [7, 8]}, "7", "7"),
        ({"type": "integer"}, "7", 7),
        ({"type": "integer"}, " 7\n", 7),
        ({"type": "integer"}, "7.5", "7.5"),
        ({"type": "integer"}, "true", "true"),
        ({"type": "integer"}, "seven", "seven"),
        ({"type": "integer"}, "9" * 5000, "9" * 5000),
        ({"type": "number"}, "7", 7),
        ({"type": "number"}, "7.5", 7.5),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "boolean"}, "1", "1"),
        ({"type": "boolean"}, "yes", "yes"),
        ({"type": "array"}, '["a"]', ["a"]),
        ({"type": "array"}, "a, b", "a, b"),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "object"}, '{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7", 7),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "7", "7"),
        ({"$ref": "#/$defs/n"}, "7", 7),
    ],
)
def test_a_value_is_read_as_what_the_schema_takes_and_else_left_a_text(
    schema: dict[str, Any], raw: str, value: object
) -> None:
    text = arguments_of((("x", raw), ("other", raw)), properties(x=schema) | DEFS)
    assert json.loads(text) == {"x": value, "other": raw}
    assert type(json.loads(text)["x"]) is type(value)


@pytest.mark.requirement("ASK-5")
def test_a_name_that_is_given_twice_is_written_twice_so_that_it_is_refused() -> None:
    assert arguments_of((("x", "a"), ("x", "b")), {}) == '{"x": "a", "x": "b"}'
