"""The tools that a raw server can list, good and bad; what the good ones do is in ``effects``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_TEXT: Final = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_NOTHING: Final = {"type": "object"}
_SUM: Final = {
    "type": "object",
    "properties": {"sum": {"type": "number"}},
    "required": ["sum"],
}

DEEP: Final = 2_000
"""How deep the schema of ``deep_schema`` is nested."""


def definitions(wanted: Sequence[str | Mapping[str, Any]]) -> list[Any]:
    """The definitions of these names, in order."""
    return [found for each in wanted for found in _definitions(each)]


def _definitions(wanted: str | Mapping[str, Any]) -> Iterator[Any]:
    if not isinstance(wanted, str):
        yield dict(wanted)
    elif wanted.startswith("many:"):
        for number in range(int(wanted.removeprefix("many:"))):
            yield _tool(f"tool_{number}", f"Does the thing of number {number}.", _TEXT)
    elif wanted in _bad():
        yield from _bad()[wanted]
    else:
        yield _good(wanted)


def _tool(name: str, description: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema} | more


def _good(name: str) -> dict[str, Any]:
    number = {"type": "number"}
    two = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
    special = {
        "echo": _tool("echo", "Gives the text back.", _TEXT),
        "add": _tool("add", "Adds two numbers.", two, outputSchema=_SUM),
        "structured": _tool("structured", "Gives data that fits.", _NOTHING, outputSchema=_SUM),
        "structured_bad": _tool(
            "structured_bad", "Gives data that does not fit.", _NOTHING, outputSchema=_SUM
        ),
        "structured_missing": _tool(
            "structured_missing", "Gives no data.", _NOTHING, outputSchema=_SUM
        ),
        "defs": _tool(
            "defs",
            "Has definitions of its own.",
            {
                "type": "object",
                "properties": {"f": {"$ref": "#/$defs/F"}},
                "$defs": {"F": {"enum": ["fit", "raw"]}},
            },
        ),
        "closed": _tool(
            "closed", "Takes nothing.", {"type": "object", "additionalProperties": False}
        ),
        "destructive": _tool(
            "destructive", "Deletes.", _NOTHING, annotations={"destructiveHint": True}
        ),
        "read": _tool("read", "Reads.", _NOTHING, annotations={"readOnlyHint": True}),
        "lies": _tool(
            "lies",
            "Deletes everything.",
            _NOTHING,
            annotations={"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
        ),
        "undescribed": {"name": "undescribed", "inputSchema": _NOTHING},
    }
    return special.get(name) or _tool(name, f"Does {name}.", _NOTHING)


def _bad() -> dict[str, list[Any]]:
    """Definitions that cannot be used, each under the name of its fault."""
    return {
        "null_schema": [_tool("null_schema", "", None)],
        "no_schema": [{"name": "no_schema", "description": ""}],
        "string_root": [_tool("string_root", "", {"type": "string"})],
        "list_schema": [_tool("list_schema", "", [])],
        "url_ref": [_tool("url_ref", "", _property({"$ref": "https://schemas.invalid/a.json"}))],
        "lost_ref": [_tool("lost_ref", "", _property({"$ref": "#/$defs/Gone"}))],
        "deep_schema": [_tool("deep_schema", "", _deep())],
        "wrong_schema": [_tool("wrong_schema", "", _property({"type": "strin"}))],
        "huge_schema": [_tool("huge_schema", "", _property({"enum": ["x" * 1_000] * 1_000}))],
        "duplicate": [
            _tool("duplicate", "Is there first.", _NOTHING),
            _tool("duplicate", "Is there second.", _NOTHING),
        ],
        "empty_name": [_tool("", "", _NOTHING)],
        "blank_name": [_tool("two words\n", "", _NOTHING)],
        "long_name": [_tool("n" * 1_000, "", _NOTHING)],
        "number_name": [{"name": 7, "inputSchema": _NOTHING}],
        "no_name": [{"description": "Has no name.", "inputSchema": _NOTHING}],
        "no_object": [None, 3, "echo"],
        "dotted": [_tool("calendar.respondToEvent", "Answers an invitation.", _NOTHING)],
        "long_description": [_tool("long_description", "d" * 1_000_000, _NOTHING)],
        "steering": [_tool("steering", "Red: \x1b[31m\u202e and \x00 more.", _NOTHING)],
        "wrong_annotations": [_tool("wrong_annotations", "", _NOTHING, annotations="none")],
        "wrong_output": [_tool("wrong_output", "", _NOTHING, outputSchema={"type": "string"})],
    }


def _property(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


def _deep() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(DEEP // 2):
        schema = _property(schema)
    return schema
