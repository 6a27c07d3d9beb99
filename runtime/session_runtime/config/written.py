"""What a configuration file says, as plain data: with its secrets masked, and what differs in another.

What it comes to together with variables and defaults is decided in ``load``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from enum import Enum
from typing import Final

from session_runtime.config.by_name import (
    Show,
    Steps,
    by_name,
    holds_arguments,
    mask,
    masked_text,
    names_secret,
)
from session_runtime.config.keys import KeyPath, dotted
from session_runtime.config.origin import MASK
from session_runtime.config.secrets import is_reference
from session_runtime.config.section import Acts
from session_runtime.config.shape import SHAPE, Branch, Leaf, Names, Node, child, node_at


class _Removed(Enum):
    REMOVED = "removed"


REMOVED: Final = _Removed.REMOVED
"""Stands for: the key, or the whole table, is not in the file."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One key that two files give differently, with secrets masked; None where it is not in a file.

    The names of a table whose order matters are listed under its key if they come in another order.
    ``acts`` is when an edit takes effect, None for what is no key of this version.
    """

    key: str
    old: object
    new: object
    acts: Acts | None


def masked(data: Mapping[str, object]) -> dict[str, object]:
    """Copy what a file says, with a mask for every secret that is written out in it (CFG-4b).

    References (``env:NAME``, ``file:/path``) stay. Where a key may hold anything, and where there is
    no such key, what stands under a name that sounds secret is masked; of an address, what its query
    keeps secret; of arguments, what is secret in them.
    """
    return _table(data, SHAPE, (), mask)


def with_secrets(
    data: Mapping[str, object], now: Mapping[str, object]
) -> tuple[dict[str, object], tuple[KeyPath, ...]]:
    """Copy masked ``data``, with what is ``now`` in the place of each mask (CFG-4b).

    Gives also the keys that have nothing there now; their masks stay. In a list, a place is the same
    only if all that is not secret in its item is, and in its list if that holds arguments: whose secret
    it is follows from that.
    """
    missing: list[KeyPath] = []
    shown = masked(now)

    def in_place(steps: Steps) -> bool:
        items = [steps[: at + 1] for at, step in enumerate(steps) if isinstance(step, int)]
        if holds_arguments(steps[:-1]):
            items = [steps[:-1]]
        return all(same(value_at(data, item), value_at(shown, item)) for item in items)

    def unmask(steps: Steps, value: object, secret: bool) -> object:
        if not (value == MASK if secret else _is_masked(steps, str(value))):
            return value
        kept = value_at(now, steps)
        known = isinstance(kept, str) and (secret or masked_text(steps, kept) == value)
        if known and in_place(steps):
            return kept
        missing.append(tuple(step for step in steps if isinstance(step, str)))
        return value

    return _table(data, SHAPE, (), unmask), tuple(dict.fromkeys(missing))


def differences(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[Difference, ...]:
    """List every key that differs, in the order of ``new``, then what only ``old`` has.

    Another secret in the same place is a difference whose two values look alike.
    """
    before, after = keys_of(masked(old)), keys_of(masked(new))
    edited = (
        Difference(dotted(path), _json(before.get(path)), _json(after.get(path)), _acts(path))
        for path in edited_keys(old, new)
    )
    names_before, names_after = orders(old), orders(new)
    moved = (
        Difference(dotted(path), names_before[path], names, None)
        for path, names in names_after.items()
        if in_another_order(names_before.get(path, ()), names)
    )
    return (*edited, *moved)


def value_at(data: Mapping[str, object], steps: Steps) -> object:
    """Give what is at the end of the steps; REMOVED if there is nothing."""
    value: object = data
    for step in steps:
        match value, step:
            case Mapping(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                return REMOVED
    return value


def with_value(data: Mapping[str, object], path: KeyPath, value: object) -> Mapping[str, object]:
    """Give ``data`` with another value at ``path``, or without any (REMOVED); others keep their order."""
    name, rest = path[0], path[1:]
    if value is REMOVED and name not in data:
        return data
    if rest:
        inner = data.get(name)
        value = with_value(inner if isinstance(inner, Mapping) else {}, rest, value)
    if value is REMOVED:
        return {other: inner for other, inner in data.items() if other != name}
    return {**data, name: value}


def edited_keys(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[KeyPath, ...]:
    """List every key that differs, in the order of ``new``, then what only ``old`` has."""
    before, after = keys_of(old), keys_of(new)
    every = dict.fromkeys((*after, *before))
    return tuple(path for path in every if not same(before.get(path), after.get(path)))


def in_another_order(old: Iterable[str], new: Iterable[str]) -> bool:
    """Whether the names that both have come in another order."""
    before, after = list(old), list(new)
    return [name for name in before if name in after] != [name for name in after if name in before]


def orders(data: Mapping[str, object]) -> Mapping[KeyPath, list[str]]:
    """List the names in each table whose order matters, such as that of the model profiles."""
    return dict(_names(data, SHAPE, ()))


def alike(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two files say the same, in another order perhaps where that does not matter."""
    names = (
        {path: found for path, found in orders(each).items() if found} for each in (one, other)
    )
    return same(dict(keys_of(one)), dict(keys_of(other))) and next(names) == next(names)


def same(one: object, other: object) -> bool:
    """Whether two values are the same in a file, where 1, 1.0 and true are three."""
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
        case list(), list():
            return len(one) == len(other) and all(map(same, one, other))
        case _:
            return type(one) is type(other) and repr(one) == repr(other)


def _table(
    value: Mapping[str, object], node: Node | None, path: Steps, show: Show
) -> dict[str, object]:
    return {
        name: _copied(inner, None if node is None else child(node, name), (*path, name), show)
        for name, inner in value.items()
    }


def _copied(value: object, node: Node | None, path: Steps, show: Show) -> object:
    match node, value:
        case (Branch() | Names(), Mapping()):
            return _table(value, node, path, show)
        case (Leaf(), list()) if holds_arguments(path):
            return by_name(value, path, show, secret=False)
        case (Leaf(anything=False), list()):
            return [_copied(item, node, (*path, at), show) for at, item in enumerate(value)]
        case (Leaf(secret=True), _):
            stays = value == "" or (isinstance(value, str) and is_reference(value))
            return value if stays else show(path, value, True)
        case (Leaf(anything=False), _):
            return show(path, value, False) if isinstance(value, str) else value
        case _:
            return by_name(value, path, show, secret=names_secret(path))


def _is_masked(steps: Steps, text: str) -> bool:
    masks_in = text if holds_arguments(steps[:-1]) else text.partition("?")[2]
    return MASK in masks_in and masked_text(steps, text) == text


def keys_of(data: Mapping[str, object]) -> Mapping[KeyPath, object]:
    """Lay out what a file says by key; an entry of a table that has no keys is ``{}``."""
    return dict(_keys(data, SHAPE, (), entry=False))


def _keys(
    value: object, node: Node | None, path: KeyPath, *, entry: bool
) -> Iterator[tuple[KeyPath, object]]:
    if not isinstance(node, Branch | Names) or not isinstance(value, Mapping):
        yield path, value
        return
    inside = [
        found
        for name, inner in value.items()
        for found in _keys(inner, child(node, name), (*path, name), entry=isinstance(node, Names))
    ]
    yield from inside or ([(path, {})] if entry else [])


def _names(value: object, node: Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, list[str]]]:
    match node, value:
        case (Branch() | Names(), Mapping()):
            if isinstance(node, Names) and not isinstance(node.item, Leaf):
                yield path, list(value)
            for name, inner in value.items():
                yield from _names(inner, child(node, name), (*path, name))


def _json(value: object) -> object:
    """Give dates and times, which no key may hold, as texts."""
    match value:
        case dict():
            return {name: _json(inner) for name, inner in value.items()}
        case list():
            return [_json(item) for item in value]
        case date() | time():
            return value.isoformat()
        case _:
            return value


def _acts(path: KeyPath) -> Acts | None:
    node = node_at(path)
    return node.acts if isinstance(node, Leaf) else None
