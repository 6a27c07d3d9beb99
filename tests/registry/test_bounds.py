"""Schemas from outside can neither reach out nor keep the process busy."""

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from session_runtime.errors import PermanentError
from session_runtime.registry.bounds import MAX_CHAIN, MAX_CHECKS, checks_needed
from session_runtime.registry.schema import compile_schema

TOO_LARGE = ("the arguments are too large for this tool: send less at a time",)


def refusal(schema: dict[str, Any]) -> str:
    with pytest.raises(PermanentError) as caught:
        compile_schema(schema)
    return str(caught.value)


def referring(definitions: dict[str, Any], start: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"x": {"$ref": f"#/$defs/{start}"}},
        "$defs": definitions,
    }


def doubling(levels: int) -> dict[str, Any]:
    """Each definition refers twice to the next: 2 ** levels checks of one value."""
    steps = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return referring({**steps, f"d{levels}": {"type": "string"}}, "d0")


@pytest.fixture
def requests() -> Iterator[list[str]]:
    """Paths that were asked of a server of ours, whose address comes first."""
    seen: list[str] = []

    class Noting(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Noting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        seen.append(f"http://127.0.0.1:{server.server_port}")
        yield seen
        server.shutdown()


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema", "$id"])
def test_no_schema_makes_the_process_fetch_anything(requests: list[str], keyword: str) -> None:
    address = requests.pop()
    for schema in (
        {"type": "object", keyword: f"{address}/root"},
        {"type": "object", "properties": {"a": {keyword: f"{address}/inner", "$ref": "#/x"}}},
    ):
        try:
            compile_schema(schema).problems({"a": 1})
        except PermanentError:
            pass
    assert requests == []


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json", "#anchor", "//h/x"]
)
def test_only_references_into_the_schema_itself_are_followed(reference: str) -> None:
    told = refusal({"type": "object", "properties": {"a": {"$ref": reference}}})
    assert "external reference" in told
    assert reference in told


@pytest.mark.requirement("REG-7")
def test_a_property_may_be_called_like_a_keyword() -> None:
    named = {name: {"type": "string"} for name in ("$ref", "allOf", "not", "items", "$id")}
    check = compile_schema({"type": "object", "properties": named})
    assert check.problems({"$ref": 1}) == ("$ref: must be a string, got 1",)


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "$ref": "#"},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/properties/a"}]}}},
        referring(
            {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "a"
        ),
        referring({"a": {"not": {"$ref": "#/$defs/a"}}}, "a"),
    ],
)  # fmt: skip
def test_references_that_never_reach_a_value_are_refused(schema: dict[str, Any]) -> None:
    assert "form a circle" in refusal(schema)


@pytest.mark.requirement("REG-7")
def test_a_schema_may_describe_a_tree() -> None:
    check = compile_schema(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#"}},
            },
        }
    )
    tree = {"name": "a", "children": [{"name": "b", "children": [{"name": 3}]}]}
    assert check.problems(tree) == ("children[0].children[0].name: must be a string, got 3",)


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize("steps", [MAX_CHAIN, 1_500])
def test_a_long_chain_of_references_is_refused(steps: int) -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"type": "null"}]} for n in range(steps)
    }
    assert "chain over more than" in refusal(referring({**definitions, f"d{steps}": {}}, "d0"))


@pytest.mark.requirement("REG-7")
def test_references_that_multiply_are_answered_without_doing_the_work() -> None:
    assert compile_schema(doubling(4)).problems({"x": "a"}) == ()
    assert compile_schema(doubling(15)).problems({"x": "a"}) == TOO_LARGE


@pytest.mark.requirement("REG-7")
def test_recursion_that_multiplies_with_depth_is_answered_without_doing_the_work() -> None:
    step = {"additionalProperties": {"$ref": "#/$defs/n"}}
    check = compile_schema(referring({"n": {"type": "object", "anyOf": [step, step]}}, "n"))
    value: object = 5
    for _ in range(50):
        value = {"a": value}
    assert check.problems({"x": value}) == TOO_LARGE


@pytest.mark.parametrize(
    ("schema", "value", "checks"),
    [
        ({}, 1, 1),
        ({"properties": {"a": {}, "b": {}}}, {"a": 1, "c": 2}, 2),
        ({"additionalProperties": {"not": {}}}, {"a": 1, "b": 2}, 5),
        ({"items": {"anyOf": [{}, True]}}, [1, 2, 3], 7),
        ({"prefixItems": [{}, {}]}, [1], 2),
        ({"propertyNames": {}, "patternProperties": {"x": {}}}, {"a": 1}, 3),
        ({"$defs": {"d": {"items": {}}}, "$ref": "#/$defs/d"}, [1, 2], 4),
    ],
)
def test_checks_are_counted_along_schema_and_value(
    schema: dict[str, Any], value: object, checks: int
) -> None:
    assert checks_needed(schema, value) == checks


def test_counting_ends_soon_after_the_limit() -> None:
    assert checks_needed({"items": {"items": {}}}, [[0] * 1_000] * 1_000) <= 2 * MAX_CHECKS


@pytest.mark.requirement("REG-7")
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object", "description": "x" * 262_145}, "more than 262144 characters"),
        ({"type": "object", "enum": [0] * 10_001}, "more than 10000 values"),
        ({"type": "object", "default": float("inf")}, "inf is not a JSON number"),
        ({"type": "object", "$defs": {"a": {"$id": "b", "$ref": "#"}}}, "the inner $id 'b'"),
    ],
)
def test_a_schema_beyond_the_bounds_is_refused(schema: dict[str, Any], says: str) -> None:
    assert says in refusal(schema)


@pytest.mark.requirement("REG-7")
def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"items": schema}
    assert "nested more than 64 levels deep" in refusal({"type": "object", **schema})
