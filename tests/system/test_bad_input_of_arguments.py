"""Arguments that break a schema, keyword by keyword: told with their path, and the tool does not run."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime.types import ToolFinished
from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler
from tests.system.leftovers import nothing_left

RAN = (
    "def execute(args, context):\n    context.resources['ran'].append(args)\n    return 'it ran'\n"
)
TEXT, NUMBER = {"type": "string"}, {"type": "number"}
PAIR = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}

# the schema of ``x``, a value that breaks it, what the model is told
KEYWORDS: dict[str, tuple[Any, Any, str]] = {
    "type": (TEXT, 7, "x: must be a string, got 7"),
    "enum": ({"enum": ["fit", "raw"]}, "x", 'x: must be one of "fit", "raw", got "x"'),
    "const": ({"const": 3}, 4, "x: must be 3, got 4"),
    "minimum": ({"minimum": 1}, 0, "x: must be at least 1, got 0"),
    "maximum": ({"maximum": 1}, 2, "x: must be at most 1, got 2"),
    "exclusiveMinimum": ({"exclusiveMinimum": 1}, 1, "x: must be more than 1, got 1"),
    "exclusiveMaximum": ({"exclusiveMaximum": 1}, 1, "x: must be less than 1, got 1"),
    "multipleOf": ({"multipleOf": 5}, 7, "x: must be a multiple of 5, got 7"),
    "minLength": ({"minLength": 2}, "天", "x: must have at least 2 characters, has 1"),
    "maxLength": ({"maxLength": 2}, "天天天", "x: must have at most 2 characters, has 3"),
    "pattern": ({"pattern": "^(a+)+$"}, "a" * 30 + "!", 'x: must match the pattern "^(a+)+$"'),
    "minItems": ({"minItems": 2}, [1], "x: must have at least 2 items, has 1"),
    "maxItems": ({"maxItems": 1}, [1, 2], "x: must have at most 1 item, has 2"),
    "uniqueItems": ({"uniqueItems": True}, [1, 1], "x: must not hold the same item twice"),
    "contains": (
        {"contains": NUMBER},
        *(["a"], 'x: must hold at least 1 item that fits {"type": "number"}, got ["a"]'),
    ),
    "items": ({"items": TEXT}, ["a", 2], "x[1]: must be a string, got 2"),
    "prefixItems": ({"prefixItems": [TEXT, NUMBER]}, ["a", "b"], "x[1]: must be a number"),
    "unevaluatedItems": (
        {"prefixItems": [TEXT], "unevaluatedItems": False},
        *(["a", 2], "x: holds items that are not allowed: 2"),
    ),
    "required": ({"type": "object", "required": ["id"]}, {}, "x.id: is required and missing"),
    "minProperties": ({"minProperties": 1}, {}, "x: must have at least 1 key, has 0"),
    "maxProperties": ({"maxProperties": 1}, {"a": 1, "b": 2}, "x: must have at most 1 key, has 2"),
    "properties": (PAIR, {"a": "", "b": 1}, "x.b: must be a string, got 1"),
    "patternProperties": (
        {"patternProperties": {"^n": NUMBER}},
        {"no": ""},
        "x.no: must be a number",
    ),
    "additionalProperties": (
        {**PAIR, "additionalProperties": False},
        *({"c": 1}, "x.c: is not known; known are a, b"),
    ),
    "unevaluatedProperties": (
        {**PAIR, "unevaluatedProperties": False},
        *({"c": 1}, "x.c: is not known"),
    ),
    "propertyNames": (
        {"propertyNames": {"maxLength": 2}},
        *({"abc": 1}, 'x: the name "abc" is not allowed: must have at most 2 characters, has 3'),
    ),
    "dependentRequired": (
        {"dependentRequired": {"a": ["b"]}},
        *({"a": 1}, "x.b: is required and missing, because a is given"),
    ),
    "dependentSchemas": (
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        *({"a": 1}, "x.b: is required and missing"),
    ),
    "allOf": ({"allOf": [NUMBER, {"minimum": 2}]}, 1, "x: must be at least 2, got 1"),
    "anyOf": ({"anyOf": [TEXT, NUMBER]}, None, "x: must be a string or a number, got null"),
    "oneOf": (
        {"oneOf": [NUMBER, {"type": "integer"}]},
        *(1, "x: fits 2 forms of which exactly one must fit: "),
    ),
    "not": ({"not": TEXT}, "s", 'x: must not fit {"type": "string"}, got "s"'),
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
}


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize("keyword", KEYWORDS)
async def test_arguments_that_break_a_keyword_are_told_and_the_tool_does_not_run(
    tmp_path: Path, keyword: str
) -> None:
    schema, value, problem = KEYWORDS[keyword]
    parameters = {
        "type": "object",
        "properties": {"x": schema},
        "$defs": {"size": {"enum": ["fit", "raw"]}},
    }
    write_handler(tmp_path / "tools", "strict", parameters=parameters, code=RAN)
    write_handler(tmp_path / "tools", "good")
    turn = calls(("strict", {"x": value}), ("good", {"n": 1}))
    text = f"{tool_folder(tmp_path)}[skills]\nprefetch_tools = []\n"
    ran: list[Any] = []
    with nothing_left():
        async with opened(
            tmp_path, text + scripted(tmp_path, turn, says("done")), resources={"ran": ran}
        ) as runtime:
            asked = await ask(runtime, "go")
    told, good = (str(m.content) for m in asked.result.new_messages if m.role == "tool")
    assert told.startswith(f"strict was not run: {problem}")
    assert told.endswith("Call it again with corrected arguments.")
    assert (good, asked.result.text, ran) == ('{"got":{"n":1}}', "done", [])
    codes = {event.name: event.error_code for event in asked.of(ToolFinished)}
    assert codes == {"strict": "tool.invalid_arguments", "good": None}


# what the model wrote as arguments, what it is told
UNREADABLE = {
    "cut off": ('{"q": "a"', "not valid JSON"),
    "not JSON": ('query = """x"""', "not valid JSON"),
    "a list": ("[1]", "must be a JSON object, not an array"),
    "nested too deeply": ('{"q": ' + "[" * 10_000 + "]" * 10_000 + "}", "nested"),
    "too long": ('{"q": "' + "x" * 1_000_001 + '"}', "at most 1000000"),
}


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize("fault", UNREADABLE)
async def test_arguments_that_cannot_be_read_are_told_and_their_neighbours_run(
    tmp_path: Path, fault: str
) -> None:
    raw, words = UNREADABLE[fault]
    write_handler(tmp_path / "tools", "strict", code=RAN)
    write_handler(tmp_path / "tools", "good")
    turn = calls(("good", {"n": 1}), ("strict", raw), ("good", {"n": 2}))
    text = f"{tool_folder(tmp_path)}[skills]\nprefetch_tools = []\n"
    ran: list[Any] = []
    async with opened(
        tmp_path, text + scripted(tmp_path, turn, says("done")), resources={"ran": ran}
    ) as runtime:
        asked = await ask(runtime, "go")
    first, told, last = (str(m.content) for m in asked.result.new_messages if m.role == "tool")
    assert told.startswith("strict was not run: ")
    assert words in told
    assert len(told) < 1_000
    assert (first, last, ran) == ('{"got":{"n":1}}', '{"got":{"n":2}}', [])
    assert asked.result.text == "done"
