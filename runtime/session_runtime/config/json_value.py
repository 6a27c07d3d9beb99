"""Values of keys that may be whatever JSON can say; what they mean is up to whoever reads the key."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import AfterValidator

MAX_DEPTH: Final = 32


def _frozen(value: object) -> object:
    return _frozen_at(value, MAX_DEPTH)


def _frozen_at(value: object, depth: int) -> object:
    """The JSON value, unchangeable; ValueError for what JSON cannot say."""
    if depth == 0:
        raise ValueError(f"is nested more than {MAX_DEPTH} levels deep")
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case Mapping():
            return MappingProxyType(
                {str(name): _frozen_at(inner, depth - 1) for name, inner in value.items()}
            )
        case list() | tuple():
            return tuple(_frozen_at(item, depth - 1) for item in value)
        case _:
            raise ValueError(
                "must be what JSON can say: texts, finite numbers, true or false, lists and "
                f"tables; write a {type(value).__name__} as a text"
            )


def thawed(value: object) -> object:
    """Give a copy of a frozen JSON value that ``json`` can write: lists and dicts."""
    match value:
        case Mapping():
            return {name: thawed(inner) for name, inner in value.items()}
        case tuple():
            return [thawed(item) for item in value]
        case _:
            return value


JsonValue = Annotated[Any, AfterValidator(_frozen)]
"""Any JSON value; lists are tuples and tables read-only mappings once it is validated."""
