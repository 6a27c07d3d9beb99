"""Each definition that a server lists is checked alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.mcp.base import Definition
from session_runtime.mcp.listed import read_definition, refusal
from session_runtime.mcp.stderr_log import Shown
from session_runtime.registry.catalog import Quarantined
from session_runtime.registry.schema import compile_schema
from tests.mcp.peer import tool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def read(**keys: Any) -> Definition:
    return read_definition(tool("t", **keys)).definition


def why_not(raw: object) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        read_definition(raw)
    return str(caught.value)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.requirement("RTE-5")
@pytest.mark.parametrize("schema", [{"type": "object"}, {}, {"type": "object", "properties": {}}])
def test_a_tool_without_arguments_gets_an_empty_list_of_properties(schema: dict[str, Any]) -> None:
    assert read(inputSchema=schema).parameters == {"type": "object", "properties": {}}


@pytest.mark.requirement("RTE-5")
def test_a_closed_schema_without_properties_still_refuses_every_argument() -> None:
    parameters = read(inputSchema={"type": "object", "additionalProperties": False}).parameters
    assert parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert compile_schema(parameters).problems({}) == ()
    assert compile_schema(parameters).problems({"a": 1})


@pytest.mark.requirement("RTE-5")
def test_definitions_inside_a_schema_stay_and_are_applied() -> None:
    schema = {
        "type": "object",
        "properties": {"f": {"$ref": "#/$defs/F"}},
        "$defs": {"F": {"enum": ["fit", "raw"]}},
    }
    check = compile_schema(read(inputSchema=schema).parameters)
    assert check.problems({"f": "fit"}) == ()
    assert check.problems({"f": "x"})


@pytest.mark.requirement("RTE-5")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "the definition must be an object, got null"),
        (tool("t", inputSchema=None), "it has no inputSchema"),
        ({"name": "t"}, "it has no inputSchema"),
        (tool("t", inputSchema=[]), "inputSchema: must be an object, got a list"),
        (
            tool("t", inputSchema={"type": "string"}),
            'inputSchema: must have "type": "object", got "string"',
        ),
        (
            tool("t", inputSchema={"type": "object", "properties": []}),
            "inputSchema: properties must be an object",
        ),
        (tool("t", inputSchema=nested(2_000)), "inputSchema: nested more than 64 levels deep"),
        (
            tool("t", outputSchema={"type": "string"}),
            'outputSchema: must have "type": "object", got "string"',
        ),
        ({**tool("t"), "name": 7}, "its name must be a text, got a int"),
        ({**tool("t"), "name": ""}, "its name cannot be used: it holds nothing that can be read"),
        ({**tool("t"), "name": "\ud800"}, "its name holds half of a character (a lone surrogate)"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_reason(raw: object, reason: str) -> None:
    assert why_not(raw) == reason


@pytest.mark.requirement("RTE-5")
def test_a_schema_that_refers_to_another_document_is_refused_unread() -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/x"}}}
    assert "external reference" in why_not(tool("t", inputSchema=schema))


@pytest.mark.requirement("RTE-5")
def test_a_long_name_is_refused_and_shown_short() -> None:
    raw = {**tool("t"), "name": "n" * 100_000}
    reason = why_not(raw)
    assert "at most 128 are allowed" in reason
    told = refusal(raw, 3, "srv", reason, Shown())
    assert len(told.name) <= 129


def test_a_refused_tool_without_a_name_is_told_by_its_number() -> None:
    assert refusal({}, 3, "srv", "why\x1b[2J not", Shown()) == Quarantined(
        "(number 3)", "srv", r"why\x1b[2J not"
    )


@pytest.mark.requirement("RTE-5")
@pytest.mark.parametrize("description", [None, "", "  ", 7, []])
def test_a_tool_that_is_not_described_is_kept(description: object) -> None:
    assert read(description=description).description == ""


def test_a_title_stands_in_for_a_description() -> None:
    assert read(description=None, title="Bills of a month").description == "Bills of a month"


@pytest.mark.parametrize(
    ("annotations", "destructive"),
    [
        ({"destructiveHint": True, "readOnlyHint": True}, True),
        ({"destructiveHint": False}, False),
        ({"destructiveHint": "yes"}, False),
        ("none", False),
        (None, False),
    ],
)
def test_a_tool_is_destructive_if_its_server_says_so(
    annotations: object, destructive: bool
) -> None:
    assert read(annotations=annotations).destructive is destructive


def test_a_digest_tells_whether_a_caller_could_notice_a_change() -> None:
    one, other = read(), read(description="Does it better.")
    assert one == read()
    assert (one.digest != other.digest, one.schema_digest == other.schema_digest) == (True, True)
    changed = read(inputSchema=nested(1))
    assert changed.schema_digest != one.schema_digest


@given(st.builds(tool, st.just("t"), inputSchema=JSON, outputSchema=JSON, description=JSON) | JSON)
def test_whatever_a_server_sends_is_a_definition_or_has_a_reason(raw: object) -> None:
    told: object
    try:
        told = json.dumps(read_definition(raw).definition.parameters)
    except ValueError as error:
        told = refusal(raw, 1, "srv", str(error), Shown()).reason
    assert told
