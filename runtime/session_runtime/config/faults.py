"""How faults are worded: what was expected, what was given, the nearest valid key (CFG-1).

No text here ever holds a secret.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from session_runtime.config.by_name import holds_arguments, names_secret
from session_runtime.config.http import KEY_SHAPE
from session_runtime.config.keys import KeyPath, dotted, nearest, sounds_secret
from session_runtime.config.origin import MASK, Candidates, Origin
from session_runtime.config.section import UNSHOWN
from session_runtime.config.shape import SHAPE, Branch, Leaf, Names, leaf_at, leaves, node_at
from session_runtime.errors import Problem

_LONGEST_VALUE = 60
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "bool_type": "must be true or false",
        "int_type": "must be a whole number",
        "float_type": "must be a number",
        "finite_number": "must be a number",
        "string_type": "must be text",
        "string_unicode": "must be text",
        "string_too_short": "must not be empty",
        "tuple_type": "must be a list",
        "is_instance_of": "must be a path",
    }
)
_OF_A_NAME = "[key]"  # the last step to an error that is about the name of an entry
_BEFORE_AT_SIGN = re.compile(r"\S+@")
_QUERY = re.compile(r"\?\S+|#\S*=\S+")
_IN_BROKER_URL: Final = frozenset({("mqtt", "host"), ("mqtt", "port"), ("mqtt", "tls")})
_BROKER_URL: Final = "mqtt.url says it: mqtt://host:port, or mqtts://host:port with TLS"


def problems_of(
    error: ValidationError,
    candidates: Candidates,
    place: Callable[[KeyPath], Origin],
    told: Collection[KeyPath] = (),
) -> Iterator[Problem]:
    """One problem per validation error; ``place`` tells where a key was given, or its table.

    Nothing is said of the keys ``told``: it is known already why those have no value.
    """
    for fault in error.errors(include_url=False, include_input=False):
        rule = expected(fault["type"], fault.get("ctx", {}), fault["msg"])
        path, position = _path_of(fault["loc"], candidates)
        if path in told:
            continue
        if path in candidates:
            given = candidates[path][0]
            hidden = fault["type"] == UNSHOWN
            message = rule if hidden else _with_given(rule, given.value, path, position)
            yield place(path).problem(dotted(given.key), message)
        else:
            yield place(path).problem(dotted(path), f"{rule}{_given_elsewhere(path, candidates)}")


def _given_elsewhere(entry: KeyPath, candidates: Candidates) -> str:
    """Name what of an entry does not stand in the file where its fault is told."""
    if not isinstance(node_at(entry[:-1]), Names):
        return ""
    given = (
        f"{path[-1]} is given by {origin}"
        for path, (candidate, *_) in candidates.items()
        if path[:-1] == entry and (origin := candidate.origin).kind not in ("config", "default")
    )
    told = ", ".join(given)
    return f" ({told})" if told else ""


def _path_of(loc: tuple[int | str, ...], candidates: Candidates) -> tuple[KeyPath, int | None]:
    """Find the key that an error is about, and which item of its list."""
    parts = tuple(str(part) for part in (loc[:-1] if loc[-1:] == (_OF_A_NAME,) else loc))
    for end in range(len(parts), 0, -1):
        if parts[:end] in candidates:
            item = loc[end] if end < len(loc) else None
            return parts[:end], item if isinstance(item, int) else None
    return parts, None


def _with_given(expected: str, value: object, path: KeyPath, position: int | None) -> str:
    if value is None:
        return expected
    if position is not None and isinstance(value, tuple):
        return f"item {position + 1} {expected} (given: {describe(value[position], path)})"
    return f"{expected} (given: {describe(value, path)})"


def expected(kind: str, context: Mapping[str, Any], otherwise: str) -> str:
    """Say what a value must be, from the kind of pydantic's error and what goes with it."""
    if kind in _KINDS:
        return _KINDS[kind]
    match kind:
        case "literal_error":
            return f"must be {context['expected']}"
        case "greater_than_equal":
            return f"must be at least {context['ge']:g}"
        case "greater_than":
            return f"must be more than {context['gt']:g}"
        case "less_than_equal":
            return f"must be at most {context['le']:g}"
        case "string_pattern_mismatch":
            return f"must match {context['pattern']}"
        case "value_error":
            return str(context["error"])
        case _:
            return otherwise


def describe(value: object, path: KeyPath) -> str:
    """Write the value as an operator would, short, and never a secret."""
    leaf = leaf_at(path)
    if isinstance(value, SecretStr) and not value.get_secret_value():
        return written("")
    if leaf.secret or (leaf.anything and names_secret(path)):
        return MASK
    if holds_arguments(path) and isinstance(value, str):
        return "a text"
    return written(value)


def written(value: object) -> str:
    """Write a value that is no secret, in one short line."""
    match value:
        case Mapping():
            return "a table"
        case tuple() | list():
            return "a list"
        case str():
            without_keys = KEY_SHAPE.sub(MASK, value)
            without_query = _QUERY.sub(_masked_query, without_keys)
            open_text = _BEFORE_AT_SIGN.sub(f"{MASK}@", without_query)
            return _shortened(json.dumps(open_text, ensure_ascii=False))
        case bool():
            return "true" if value else "false"
        case _:
            return _shortened(str(value))


def _masked_query(found: re.Match[str]) -> str:
    return f"{found[0][0]}{MASK}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def unknown(key: KeyPath, value: object) -> str:
    """Say that a key does not exist, and which one was probably meant.

    Its text is repeated only if it was surely meant for a key that holds no secret.
    """
    if key in _IN_BROKER_URL:
        return f"unknown key (given: {written(value)}); {_BROKER_URL}"
    hint = _likely_key(key, value)
    node = node_at(hint) if hint is not None else None
    open_leaf = isinstance(node, Leaf) and not node.secret and not sounds_secret(key[-1])
    open_leaf = open_leaf and hint is not None and not holds_arguments(hint)
    shown = "a text" if isinstance(value, str) and not open_leaf else written(value)
    what = "section" if len(key) == 1 else "key"
    message = f"unknown {what} (given: {shown})"
    if hint is None:
        return message
    spelling = hint[-1:] if hint[:-1] == key[:-1] else hint
    return f"{message}; did you mean {dotted(spelling)}?"


def in_quotes(meant: KeyPath) -> str:
    """Say how the name of an entry has to be written that TOML takes for several."""
    return f"a name with dots is written in quotes: {dotted(meant)}"


def _likely_key(key: KeyPath, value: object) -> KeyPath | None:
    """Guess what was meant: in another case, in the same section, or anywhere."""
    parent, name = key[:-1], key[-1]
    siblings = {sibling: (*parent, sibling) for sibling in _children(parent)}
    if name.casefold() in siblings:
        return siblings[name.casefold()]
    inner = tuple(value) if isinstance(value, Mapping) else ()
    if isinstance(value, Mapping) and (table := _likely_table(name, siblings, inner)) is not None:
        return table
    anywhere = {path[-1]: path for path, _ in leaves(())}
    guesses = [
        (name, siblings),
        (name, {end: path for sibling, path in siblings.items() for end in _endings(sibling)}),
    ]
    joined = siblings if parent else anywhere
    guesses = [*((f"{name}_{each}", joined) for each in inner), *guesses, (name, anywhere)]
    for guess, known in guesses:
        close = nearest(guess, known)
        if close is not None:
            return known[close]
    return _run_together(name) or _left_out(name, siblings.values(), inner)


def _run_together(name: str) -> KeyPath | None:
    """Find the table whose whole name this is, written without dots, or the end of whose name."""
    squashed = name.casefold().replace("_", "").replace("-", "")
    tables = _tables((section,) for section in SHAPE.children)
    fits = [path for path in tables if squashed in ("".join(path), path[-1])]
    return fits[0] if fits else None


def _left_out(name: str, sections: Iterable[KeyPath], inner: Collection[str]) -> KeyPath | None:
    """Find the first table of entries, one of which this may be: it has keys that such an entry has."""
    fits = []
    for path in _tables(sections):
        table = node_at(path)
        entry = table.item if isinstance(table, Names) else None
        if inner and isinstance(entry, Branch) and set(inner) <= entry.children.keys():
            fits.append((*path, name))
    return fits[0] if fits else None


def _tables(sections: Iterable[KeyPath]) -> Iterator[KeyPath]:
    """The tables whose names the operator chooses, in these places and right below them."""
    for path in sections:
        below = [(*path, each) for each in _children(path)]
        yield from (each for each in (path, *below) if isinstance(node_at(each), Names))


def _likely_table(
    name: str, siblings: Mapping[str, KeyPath], inner: Collection[str]
) -> KeyPath | None:
    """Find the table of a name like ``name`` that has, or could have, one of the keys ``inner``."""
    tables = [each for each, path in siblings.items() if not isinstance(node_at(path), Leaf)]
    close = nearest(name, tables)
    if close is None:
        return None
    fixed = _children(siblings[close])
    fits = not fixed or not inner or any(nearest(each, fixed) for each in inner)
    return siblings[close] if fits else None


def _endings(name: str) -> list[str]:
    """What a key may be called by somebody who leaves out its beginning."""
    words = name.split("_")
    return ["_".join(words[at:]) for at in range(1, len(words) - 1)]


def _children(path: KeyPath) -> Collection[str]:
    node = node_at(path)
    return tuple(node.children) if isinstance(node, Branch) else ()
