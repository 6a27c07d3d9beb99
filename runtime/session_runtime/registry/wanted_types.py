"""Which JSON types a schema may be content with, as far as that is plain to see; it checks nothing."""

from collections.abc import Mapping
from typing import Any

from session_runtime.registry.bounds import Schema, targets
from session_runtime.types import JsonObject


def property_types(schema: JsonObject) -> Mapping[str, frozenset[str]]:
    """By the name of each property of an object, its types; an empty set where they are not plain."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    root = dict(schema)
    return {name: _types(each, root) for name, each in properties.items()}


def _types(schema: Any, root: Schema) -> frozenset[str]:
    """All types that a schema may be content with; none where that is not plain to see."""
    match _referred(schema, root):
        case {"anyOf": list() as forms} | {"oneOf": list() as forms}:
            each = [_own_types(_referred(form, root)) for form in forms]
            return frozenset().union(*each) if all(each) else frozenset()
        case here:
            return _own_types(here)


def _own_types(schema: object) -> frozenset[str]:
    match schema:
        case {"type": str() as name}:
            return frozenset({name})
        case {"type": list() as names}:
            return frozenset(map(str, names))
        case _:
            return frozenset()


def _referred(schema: object, root: Schema) -> object:
    match schema:
        case {"$ref": reference}:
            return next(targets(reference, root), None)
        case _:
            return schema
