"""What a model is told about each keyword that its arguments break: the place, the rule, what it gave."""

from typing import Any

import pytest

from session_runtime.registry.schema import compile_schema

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
DEFINED = {"size": {"enum": ["fit", "raw"]}, "two": {"contains": TEXT, "minContains": 2}}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

# the schema of ``x``, a value that breaks it, all that is told
BROKEN: dict[str, tuple[Any, Any, str]] = {
    "type": (TEXT, 7, "x: must be a string, got 7"),
    "type, one of several": ({"type": ["integer", "null"]}, "a", 'x: must be null or an integer, got "a"'),
    "type, true is no number": ({"type": "integer"}, True, "x: must be an integer, got true"),
    "enum": ({"enum": ["fit", 1, None]}, "no", 'x: must be one of "fit", 1, null, got "no"'),
    "const": ({"const": {"a": 1}}, 3, 'x: must be {"a": 1}, got 3'),
    "pattern": ({"pattern": "^b"}, "a", 'x: must match the pattern "^b", got "a"'),
    "minimum": ({"minimum": 1}, 0, "x: must be at least 1, got 0"),
    "maximum": ({"maximum": 1}, 2, "x: must be at most 1, got 2"),
    "exclusiveMinimum": ({"exclusiveMinimum": 1}, 1, "x: must be more than 1, got 1"),
    "exclusiveMaximum": ({"exclusiveMaximum": 1}, 1, "x: must be less than 1, got 1"),
    "multipleOf": ({"multipleOf": 0.1}, 0.25, "x: must be a multiple of 0.1, got 0.25"),
    "minLength": ({"minLength": 1}, "", "x: must have at least 1 character, has 0"),
    "maxLength": ({"maxLength": 2}, "天天👍", "x: must have at most 2 characters, has 3"),
    "minItems": ({"minItems": 2}, [1], "x: must have at least 2 items, has 1"),
    "maxItems": ({"maxItems": 1}, [1, 2], "x: must have at most 1 item, has 2"),
    "minProperties": ({"minProperties": 2}, {"a": 1}, "x: must have at least 2 keys, has 1"),
    "maxProperties": ({"maxProperties": 1}, {"a": 1, "b": 2}, "x: must have at most 1 key, has 2"),
    "required": ({"required": ["id"]}, {}, "x.id: is required and missing"),
    "dependentRequired": (
        {"dependentRequired": {"b": ["d"], "a": ["c"]}},
        *({"a": 1}, "x.c: is required and missing, because a is given"),
    ),
    "dependencies of an older draft": (
        {"dependencies": {"a": ["b"]}},
        *({"a": 1}, "x.b: is required and missing, because a is given"),
    ),
    "dependencies, some of them schemas, of an older draft": (
        {"dependencies": {"b": True, "c": {}, "a": ["d"]}},
        *({"a": 1, "b": 1, "c": 1}, "x.d: is required and missing, because a is given"),
    ),
    "dependentSchemas": (
        {"dependentSchemas": {"a": {"properties": {"b": TEXT}}}},
        *({"a": 1, "b": 2}, "x.b: must be a string, got 2"),
    ),
    "additionalProperties": (
        {"properties": {"alpha": {}}, "additionalProperties": False},
        *({"alhpa": 1}, "x.alhpa: is not known; did you mean alpha?"),
    ),
    "additionalProperties, a schema": (
        {"additionalProperties": TEXT},
        *({"a": 1}, "x.a: must be a string, got 1"),
    ),
    "patternProperties": (
        {"patternProperties": {"^n": NUMBER}},
        *({"no": ""}, 'x.no: must be a number, got ""'),
    ),
    "patternProperties, nothing else": (
        {"patternProperties": {"^n": {}}, "properties": {"q": {}}, "additionalProperties": False},
        *({"zzz": 1}, 'x.zzz: is not known; known are q and names that match "^n"'),
    ),
    "unevaluatedProperties": (
        {"properties": {"alpha": {}}, "unevaluatedProperties": False},
        *({"alhpa": 1}, "x.alhpa: is not known; did you mean alpha?"),
    ),
    "unevaluatedProperties, of parts": (
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        *({"a": 1, "zzz": 1}, "x.zzz: is not known"),
    ),
    "unevaluatedProperties, a schema": (
        {"unevaluatedProperties": TEXT},
        *({"a": 1}, 'x.a: must fit {"type": "string"}, got 1'),
    ),
    "propertyNames": (
        {"propertyNames": {"maxLength": 2}},
        *({"abc": 1}, 'x: the name "abc" is not allowed: must have at most 2 characters, has 3'),
    ),
    "propertyNames, alternatives": (
        {"propertyNames": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
        *({"c": 1}, 'x: the name "c" is not allowed: must be one of "a", "b", got "c"'),
    ),
    "items": ({"items": TEXT}, ["a", 2], "x[1]: must be a string, got 2"),
    "items, none": ({"prefixItems": [TEXT], "items": False}, ["a", 2], "x[1]: is not allowed"),
    "prefixItems": ({"prefixItems": [TEXT, NUMBER]}, ["a", "b"], 'x[1]: must be a number, got "b"'),
    "additionalItems of an older draft": (
        {"items": [TEXT], "additionalItems": False},
        *(["a", 2, 3], "x: must have at most 1 item, has 3"),
    ),
    "unevaluatedItems": (
        {"prefixItems": [TEXT], "unevaluatedItems": False},
        *(["a", 2, "b"], 'x: holds items that are not allowed: 2, "b"'),
    ),
    "unevaluatedItems, a schema": (
        {"prefixItems": [TEXT], "unevaluatedItems": TEXT},
        *(["a", 2], 'x: holds items that do not fit {"type": "string"}: 2'),
    ),
    "contains": (
        {"contains": {"type": "integer", "minimum": 8}},
        *([1, "a"], 'x: must hold at least 1 item that fits {"type": "integer", "minimum": 8}, got [1, "a"]'),
    ),
    "contains, of nothing": (
        {"contains": TEXT},
        *([], 'x: must hold at least 1 item that fits {"type": "string"}, got []'),
    ),
    "minContains": (
        {"$ref": "#/$defs/two"},
        *(["a", 1], 'x: must hold at least 2 items that fit {"type": "string"}, got ["a", 1]'),
    ),
    "maxContains": (
        {"contains": TEXT, "maxContains": 1},
        *(["a", 1, "b"], 'x: must hold at most 1 item that fits {"type": "string"}, got ["a", 1, "b"]'),
    ),
    "uniqueItems": (
        {"uniqueItems": True},
        *([1, {"a": 2}, True, {"a": 2}], 'x: must not hold the same item twice: {"a": 2}'),
    ),
    "uniqueItems, equal numbers": (
        {"uniqueItems": True},
        *([1, 1.0], "x: must not hold the same item twice"),
    ),
    "allOf": ({"allOf": [NUMBER, {"minimum": 2}]}, 1, "x: must be at least 2, got 1"),
    "anyOf, types": ({"anyOf": [TEXT, NUMBER]}, None, "x: must be a string or a number, got null"),
    "anyOf, values": (
        {"anyOf": [{"const": "a"}, {"type": "string", "enum": ["b", "c"]}, {"type": "null"}]},
        *(1, 'x: must be one of "a", "b", "c" or null, got 1'),
    ),
    "anyOf, forms": (
        {"anyOf": [TEXT, {"required": ["id"], "type": "object"}]},
        *({}, "x.id: is required and missing (closest of 2 allowed forms)"),
    ),
    "oneOf, none": ({"oneOf": [TEXT, NUMBER]}, [], "x: must be a string or a number, got []"),
    "oneOf, several": (
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]},
        {"a": 1, "b": 2},
        'x: fits 2 forms of which exactly one must fit: {"required": ["a"]} and {"required": ["b"]}',
    ),
    "not": ({"not": {"required": ["a"]}}, {"a": 1}, 'x: must not fit {"required": ["a"]}, got {"a": 1}'),
    "if and then": (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        *({"a": 1}, "x.b: is required and missing"),
    ),
    "if and else": (
        {"if": {"required": ["a"]}, "else": {"required": ["b"]}},
        *({}, "x.b: is required and missing"),
    ),
    "$ref": ({"$ref": "#/$defs/size"}, "x", 'x: must be one of "fit", "raw", got "x"'),
    "false": (False, 1, "x: is not allowed"),
}  # fmt: skip
NOT_ENFORCED: dict[str, tuple[Any, Any]] = {
    "format": ({"format": "date"}, "tomorrow"),
    "contentEncoding": ({"contentEncoding": "base64"}, "%"),
    "contentMediaType": ({"contentMediaType": "application/json"}, "{"),
}


def told(content: Any, value: object, draft: str | None = None) -> list[str]:
    named = {} if draft is None else {"$schema": draft}
    schema = {**named, "type": "object", "properties": {"x": content}, "$defs": DEFINED}
    return list(compile_schema(schema).problems({"x": value}))


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize("keyword", BROKEN)
def test_each_keyword_is_told_with_its_place_the_rule_and_what_was_given(keyword: str) -> None:
    content, value, problem = BROKEN[keyword]
    assert told(content, value, DRAFT_7 if "older draft" in keyword else None) == [problem]


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize("keyword", NOT_ENFORCED)
def test_what_a_text_looks_like_is_not_enforced(keyword: str) -> None:
    assert told(*NOT_ENFORCED[keyword]) == []


def test_long_schemas_and_lists_are_cut_in_what_is_told() -> None:
    many = {"enum": ["word" * 50 for _ in range(100)]}
    forms = [{"minimum": 0, "title": "x" * 500} for _ in range(30)]
    for content, value in (
        ({"contains": many}, [1]),
        ({"not": {"type": "integer", "title": "x" * 500}}, 1),
        ({"oneOf": forms}, 1),
        ({"anyOf": [{"const": number} for number in range(500)]}, "a"),
        ({"unevaluatedItems": False}, ["y" * 500] * 100),
    ):
        [problem] = told(content, value)
        assert len(problem) < 1_000
