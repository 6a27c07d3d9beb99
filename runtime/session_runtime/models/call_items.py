"""What one item of an answer says of a call, in the form of chat completions: marks, name, arguments."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

MAX_ID_CHARS: Final = 4_096
"""Some gateways put a signature into the ids of calls; what is longer counts as no id."""

Place = int | str
"""Where a call or block stands: its index, or whatever word a service uses in place of one."""

_DIGITS: Final = re.compile("[0-9]{1,9}")
_ARGUMENTS: Final = ("arguments", "parameters")
_FLAT: Final = frozenset({"name", *_ARGUMENTS})
_LIKE_ARGUMENTS: Final = frozenset(
    {
        "args",
        "argument",
        "function_arguments",
        "input",
        "inputs",
        "kwargs",
        "params",
        "partial_json",
    }
)
"""Keys that some write for arguments; gateways add much else, of which nothing is."""


def place_of(index: object) -> Place | None:
    """The place that an index tells; digits count as their number, what tells nothing as None."""
    if isinstance(index, int):
        return index
    if isinstance(index, float) and index.is_integer():
        return int(index)
    if not isinstance(index, str) or not index.strip() or len(index) > MAX_ID_CHARS:
        return None
    return int(index) if _DIGITS.fullmatch(index) else index


def index_of(item: Mapping[str, Any]) -> Place | None:
    """The place that the item is marked with."""
    return place_of(item.get("index"))


def id_of(item: Mapping[str, Any]) -> str:
    """The id that the item is marked with, "" for none."""
    call_id = item.get("id")
    return call_id if isinstance(call_id, str) and len(call_id) <= MAX_ID_CHARS else ""


def name_of(item: Mapping[str, Any]) -> str:
    """The name of a tool, or a piece of it."""
    name = _function(item).get("name")
    return name if isinstance(name, str) else ""


def arguments_of(item: Mapping[str, Any]) -> str:
    """The text of arguments, or a piece of it."""
    function = _function(item)
    for key in _ARGUMENTS:
        given = function.get(key)
        if given is not None and (text := given if isinstance(given, str) else _written(given)):
            return text
    return ""


def begins_arguments(item: Mapping[str, Any]) -> bool:
    """Whether the arguments of the item begin an object."""
    return arguments_of(item).lstrip().startswith("{")


def holds_more(item: Mapping[str, Any]) -> bool:
    """Whether something that may be arguments stands under a key that is none of ours."""
    function = _function(item)
    if _LIKE_ARGUMENTS.isdisjoint(function):
        return False
    return any(
        isinstance(value, dict) or (isinstance(value, str) and value.lstrip().startswith("{"))
        for key, value in function.items()
        if value and key in _LIKE_ARGUMENTS
    )


def _function(item: Mapping[str, Any]) -> Mapping[str, Any]:
    function = item.get("function")
    if isinstance(function, dict):
        return function
    return {key: item[key] for key in _FLAT if key in item}


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
