"""How much work untrusted JSON and schemas may cause; if a value fits a schema is ``schema``'s.

The validating engine recurses natively along both the schema and the value and lists every error it
finds, so depth, references and the number of checks are bounded before it sees either.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

MAX_CHAIN: Final = 32
"""Longest way from a schema through references and combinations that look at the same value."""

MAX_CHECKS: Final = 10_000
"""Most checks, each of one subschema against one value, that one call may cost."""

_REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_COMBINATIONS: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_ALTERNATIVES: Final = frozenset({"anyOf", "oneOf"})
_DEPENDENT: Final = frozenset({"dependentSchemas", "dependencies"})
_SAME_VALUE: Final = _REFERENCES | _COMBINATIONS | _DEPENDENT
_EVERY_PROPERTY: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_EVERY_ITEM: Final = frozenset({"items", "additionalItems", "contains", "unevaluatedItems"})

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

Schema = dict[str, Any]
Check = tuple[Schema, object]


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of a JSON value: levels of nesting, number of values, characters in keys and texts."""

    depth: int
    values: int
    characters: int


SCHEMA_LIMIT: Final = Limit(depth=64, values=10_000, characters=262_144)
ARGUMENTS_LIMIT: Final = Limit(depth=64, values=50_000, characters=1_000_000)


@dataclass(frozen=True, slots=True)
class Extent:
    """How many values a JSON value has, itself included, and how many characters in keys and texts."""

    values: int
    characters: int


def measure(value: object, limit: Limit) -> Extent:
    """Measure ``value``; ValueError if it is not JSON within limits."""
    pending = [(value, 1)]
    values = characters = 0
    while pending:
        item, depth = pending.pop()
        values += 1
        if depth > limit.depth:
            raise ValueError(f"nested more than {limit.depth} levels deep")
        if values + len(pending) + _size(item) > limit.values:
            raise ValueError(f"more than {limit.values} values")
        inner, length = _content(item)
        pending.extend((each, depth + 1) for each in inner)
        characters += length
        if characters > limit.characters:
            raise ValueError(f"more than {limit.characters} characters")
    return Extent(values, characters)


def _size(item: object) -> int:
    return len(item) if isinstance(item, dict | list) else 0


def _content(item: object) -> tuple[Iterable[object], int]:
    """Split off the values inside ``item`` and count its own characters."""
    match item:
        case str():
            return (), _length(item)
        case dict():
            return item.values(), sum(map(_length, item))
        case list():
            return item, 0
        case float() if not math.isfinite(item):
            raise ValueError(f"{item} is not a JSON number")
        case int() | float() | None:
            return (), 0
        case _:
            raise ValueError(f"a {type(item).__name__} is not JSON data")


def _length(text: object) -> int:
    if not isinstance(text, str):
        raise ValueError("a key is not a text")
    if not text.isascii() and _LONE_SURROGATE.search(text):
        raise ValueError("a text holds half of a character (a lone surrogate)")
    return len(text)


def has_references(schema: Schema) -> bool:
    """Whether some value can reach the same part of ``schema`` in more than one way."""
    return any(_REFERENCES & part.keys() for part in _objects(schema))


def has_forms(schema: Schema) -> bool:
    """Whether ``schema`` has alternatives."""
    return any(_ALTERNATIVES & part.keys() for part in _objects(schema))


def reference_fault(schema: Schema) -> str | None:
    """Say which reference of ``schema`` leaves it, never ends or chains too long, or None.

    Only pointers into the schema itself (``#/$defs/x``) are followed; nothing is ever fetched. A
    chain consists of steps that look at the same value again (``$ref``, ``allOf``, ``not`` …). A
    schema may refer to itself below a property or an item, where the value ends it.
    """
    lengths: dict[int, int] = {}
    for part in _objects(schema):
        for keyword in _REFERENCES & part.keys():
            if isinstance(part[keyword], str) and not _is_pointer(part[keyword]):
                return (
                    f"external reference {part[keyword][:100]!r}: only pointers into the schema "
                    "itself are followed, copy the definition into $defs"
                )
        if part is not schema and isinstance(part.get("$id"), str):
            return f"the inner $id {part['$id'][:100]!r} changes what references mean: remove it"
        fault = _chain_fault(part, schema, lengths, set())
        if fault is not None:
            return fault
    return None


def _chain_fault(here: Schema, root: Schema, lengths: dict[int, int], path: set[int]) -> str | None:
    """Measure the longest chain from ``here`` into ``lengths``; say what is wrong with it."""
    if id(here) in path:
        return "its references form a circle: let one of them stand below a property or an item"
    if id(here) in lengths:
        return None
    if len(path) >= MAX_CHAIN:
        return _TOO_LONG
    path.add(id(here))
    longest = 0
    for step in _same_value(here, root):
        fault = _chain_fault(step, root, lengths, path)
        if fault is not None:
            return fault
        longest = max(longest, lengths[id(step)])
    path.remove(id(here))
    lengths[id(here)] = longest + 1
    return _TOO_LONG if longest >= MAX_CHAIN else None


_TOO_LONG: Final = f"its references chain over more than {MAX_CHAIN} steps: inline some of them"


def checks_needed(schema: Schema, value: object) -> int:
    """Count the checks that validating ``value`` costs at most; stops above MAX_CHECKS."""
    pending: list[Check] = [(schema, value)]
    total = 1
    while pending and total <= MAX_CHECKS:
        here, item = pending.pop()
        below = list(islice(_checks_below(here, item, schema), MAX_CHECKS))
        total += len(below)
        pending += below
    return total


def pointed_at(path: Iterable[str | int], root: Schema) -> Schema | None:
    """Find the subschema at a path of keys and positions, None if there is none."""
    here: object = root
    for part in path:
        match here:
            case dict():
                here = here.get(str(part))
            case list() if str(part).isdecimal() and int(part) < len(here):
                here = here[int(part)]
            case _:
                return None
    return here if isinstance(here, dict) else None


def _is_pointer(reference: str) -> bool:
    return reference == "#" or reference.startswith("#/")


def targets(reference: object, root: Schema) -> Iterator[Schema]:
    """Yield the part of ``root`` that a reference points at, if there is one."""
    if isinstance(reference, str) and _is_pointer(reference):
        parts = unquote(reference).split("/")[1:]
        found = pointed_at((part.replace("~1", "/").replace("~0", "~") for part in parts), root)
        if found is not None:
            yield found


def _objects(schema: Schema) -> Iterator[Schema]:
    """Yield every object in ``schema``; those that are no schema have no keywords of one."""
    pending: list[Any] = [schema]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            item = item.values()
        pending.extend(each for each in item if isinstance(each, dict | list))


def _same_value(here: Schema, root: Schema) -> Iterator[Schema]:
    """Yield the subschemas that look at the same value as ``here``."""
    for keyword in _SAME_VALUE & here.keys():
        if keyword in _REFERENCES:
            yield from targets(here[keyword], root)
        elif keyword in _DEPENDENT:
            yield from _values(here[keyword])
        else:
            yield from _schemas(here[keyword])


def _checks_below(here: Schema, value: object, root: Schema) -> Iterator[Check]:
    for step in _same_value(here, root):
        yield step, value
    match value:
        case dict():
            yield from _below_object(here, value)
        case list():
            yield from _below_array(here, value)
        case _:
            pass


def _below_object(here: Schema, value: dict[str, object]) -> Iterator[Check]:
    named = here.get("properties")
    if isinstance(named, dict):
        for key in named.keys() & value.keys():
            yield from _each_with(_schemas(named[key]), [value[key]])
    yield from _each_with(_values(here.get("patternProperties")), value.values())
    for keyword in _EVERY_PROPERTY & here.keys():
        yield from _each_with(_schemas(here[keyword]), value.values())
    yield from _each_with(_schemas(here.get("propertyNames")), value)


def _below_array(here: Schema, value: list[object]) -> Iterator[Check]:
    for keyword in _EVERY_ITEM & here.keys():
        if isinstance(here[keyword], dict):
            yield from _each_with([here[keyword]], value)
    for keyword in ("prefixItems", "items"):
        if isinstance(here.get(keyword), list):
            yield from zip(_schemas(here[keyword]), value, strict=False)


def _each_with(schemas: Iterable[Schema], items: Iterable[object]) -> Iterator[Check]:
    for schema in schemas:
        for item in items:
            yield schema, item


def _schemas(content: object) -> Iterator[Schema]:
    """Yield what a keyword holds: one schema or a list of them; true and false cost nothing."""
    match content:
        case dict():
            yield content
        case list():
            yield from (each for each in content if isinstance(each, dict))
        case _:
            pass


def _values(content: object) -> Iterator[Schema]:
    if isinstance(content, dict):
        yield from (each for each in content.values() if isinstance(each, dict))
