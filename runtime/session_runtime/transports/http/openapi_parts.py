"""What descriptions of HTTP routes are put together from."""

from typing import Any, Final

JSON: Final = "application/json"


def ref(name: str) -> dict[str, str]:
    """A schema of the components, by name."""
    return {"$ref": f"#/components/schemas/{name}"}


def answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    """An answer of JSON."""
    return {"description": description, "content": {JSON: {"schema": schema}}}


def error(description: str) -> dict[str, Any]:
    """An error object."""
    return answer(description, ref("Error"))


def query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    """A parameter of the query."""
    return {"name": name, "in": "query", "schema": schema, "description": description}


def in_path(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    """A parameter of the path."""
    return {**query(name, schema, description), "in": "path", "required": True}


def numbered(least: int, most: int) -> dict[str, Any]:
    """A whole number in a range."""
    return {"type": "integer", "minimum": least, "maximum": most}


def optional(**properties: dict[str, Any]) -> dict[str, Any]:
    """Fields that may be left out, which null stands for too."""
    return {name: {"anyOf": [schema, {"type": "null"}]} for name, schema in properties.items()}


def list_of(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """An object with one field, which is a list."""
    items = {"type": "array", "items": schema}
    return {"type": "object", "required": [name], "properties": {name: items}}


TEXT: Final = {"type": "string"}
TEXTS: Final = {"type": "array", "items": TEXT}
WHOLE: Final = {"type": "integer"}
FILLED: Final = {**TEXT, "pattern": r"\S"}
"""A text that is not blank."""

NAME: Final = {**FILLED, "maxLength": 256}
NAMES: Final = {"type": "array", "items": NAME}
NUMBER: Final = {"type": "number"}
ANY_OBJECT: Final = {"type": "object"}
TOKENS: Final = {
    "type": "array",
    "maxItems": 32,
    "items": {"type": "string", "minLength": 1, "maxLength": 200},
}
"""Tokens of calls that wait for consent."""
