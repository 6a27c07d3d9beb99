"""Plain data back into the frozen values that it was made from, by their own fields; who reads is above."""

import math
from collections.abc import Collection
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

MOST: Final = 2**63 - 1
_SHOWN_CHARS: Final = 40


def decode(kind: Any, value: object, place: str = "") -> Any:
    """Make a value of ``kind``: a dataclass of such, a tuple, a set, an optional or a plain value.

    A field that is absent has its default, one that is unknown is left out. Raises ValueError that names
    the place.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, value, place)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else decode(_inner(arguments), value, place)
    if origin in (tuple, frozenset):
        items = [decode(arguments[0], item, f"{place}[]") for item in _list(value, place)]
        return origin(items)
    if origin is Literal:
        return _one_of(arguments, value, place)
    return _plain(kind, value, place)


def _inner(arguments: tuple[Any, ...]) -> Any:
    """What an optional value is if it is there."""
    [kind] = [each for each in arguments if each is not NoneType]
    return kind


def _dataclass(kind: type, value: object, place: str) -> object:
    if not isinstance(value, dict):
        raise ValueError(f"{place or 'the line'} is no object")
    given: dict[str, Any] = {}
    for name, (hint, needed) in _fields(kind).items():
        inside = f"{place}.{name}" if place else name
        if name in value:
            given[name] = decode(hint, value[name], inside)
        elif needed:
            raise ValueError(f"{inside} is missing")
    return kind(**given)


@lru_cache(maxsize=64)
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(kind)
    return {
        each.name: (
            hints[each.name],
            each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)
    }


def _list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"{place} is no list")
    return value


def _one_of(choices: Collection[object], value: object, place: str) -> object:
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{place} is {str(value)[:_SHOWN_CHARS]!r}, none of its values")


def _plain(kind: Any, value: object, place: str) -> object:
    if kind in (object, Any):
        return value
    if kind is float and type(value) in (int, float):
        return _number(value, place)
    if type(value) is not kind:
        raise ValueError(f"{place} is no {kind.__name__}")
    if type(value) is int and abs(value) > MOST:
        raise ValueError(f"{place} is larger than anything that is counted")
    return value


def _number(value: Any, place: str) -> float:
    """A finite number; whole ones may have any number of digits."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{place} is no number that a program can calculate with")
    return number
