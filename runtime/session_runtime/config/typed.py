"""What a value typed on a command line means for a key; whether it is a good one is ``load``'s."""

import json
import tomllib

from session_runtime.config.keys import KeyPath
from session_runtime.config.shape import Leaf, node_at
from session_runtime.config.variables import parse_text

_NONE = object()


def typed_value(path: KeyPath, text: str) -> object:
    """Read ``text`` as TOML; where that gives nothing that the key could hold, as a variable's text.

    So texts need no quotes, and lists may be separated by commas. A whole table is TOML or JSON.
    """
    node, value = node_at(path), _toml(text)
    match node:
        case Leaf(many=True):
            given = value if isinstance(value, str) else text
            return value if isinstance(value, list) else parse_text(given, node)
        case Leaf(anything=True):
            return parse_text(text, node) if value is _NONE else value
        case Leaf():
            return value if isinstance(value, _expected(node)) else parse_text(text, node)
        case _:
            return _json(text) if value is _NONE else value


def _expected(leaf: Leaf) -> type | tuple[type, ...]:
    match leaf.item:
        case kind if kind is bool:
            return bool
        case kind if kind is int or kind is float:
            return (int, float)
        case _:
            return str


def _toml(text: str) -> object:
    """The one value that the text is; ``_NONE`` if it is none, or more than that."""
    try:
        data = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return _NONE
    return data["value"] if data.keys() == {"value"} else _NONE


def _json(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
