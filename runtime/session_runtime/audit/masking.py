"""Blacks out what a tool's JSON Schema marks as secret, and in doubt more than that (RTE-13).

What is a secret by its name or looks is decided in ``trace.redact``.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote

from jsonschema_rs import RegexOptions, ValidationError, Validator, validator_for

from session_runtime.trace.redact import MASK, MAX_DEPTH

MOST_STEPS: Final = 100_000
"""How many times a schema is looked at for one value at most; the rest of the value is blacked out."""

_MOST_NAME_CHARS: Final = 1_000
_ONE: Final = ("if", "then", "else", "not")
_SEVERAL: Final = ("allOf", "anyOf", "oneOf")
_BY_NAME: Final = ("dependentSchemas", "dependencies")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_INSIDE: Final = frozenset(
    {
        *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"),
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"),
    }
)
_OPENS_JSON: Final = ("{", "[", '"')

Schema = Mapping[str, Any]


def masked(value: object, schema: object) -> object:
    """Black out what is marked by ``format = "password"`` or ``writeOnly``, whichever keyword leads there.

    All alternatives count, whether the value fits them or not. Where it cannot be told what a schema
    says of a value, as behind a reference to nowhere, the value is blacked out.
    """
    if not any(map(_is_mark, _mappings(schema))):
        return value
    return _Masking(schema).value(value, (schema,), 0)


class _DoubtError(Exception):
    """It cannot be told whether a value is secret."""


class _Masking:
    """One pass over one value; counts down the schemas that may still be looked at."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._anchors = _anchors(root)
        self._patterns: dict[str, Validator] = {}
        self._steps_left = MOST_STEPS

    def value(self, value: object, schemas: Iterable[object], depth: int) -> object:
        """Black out in a value of which all of these schemas say something."""
        if value is None:
            return None
        try:
            return self._seen_through(value, self._about(schemas), depth)
        except _DoubtError:
            return MASK

    def _seen_through(self, value: object, about: Sequence[Schema], depth: int) -> object:
        if depth > MAX_DEPTH or any(map(_is_mark, about)):
            return MASK
        match value:
            case dict():
                self._check_names(about)
                return {
                    name: self.value(each, self._of_property(str(name), about), depth + 1)
                    for name, each in value.items()
                }
            case list():
                return [
                    self.value(each, self._of_item(index, about), depth + 1)
                    for index, each in enumerate(value)
                ]
            case str():
                return self._text(value, about, depth)
            case _:
                return value

    def _text(self, text: str, about: Sequence[Schema], depth: int) -> str:
        """Look into a text that holds what should not have been given as text."""
        contents = [schema["contentSchema"] for schema in about if "contentSchema" in schema]
        if not contents and not text.lstrip().startswith(_OPENS_JSON):
            return text
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return MASK if contents or any(_INSIDE & schema.keys() for schema in about) else text
        clean = self.value(data, [*about, *contents], depth + 1)
        return text if clean == data else json.dumps(clean, ensure_ascii=False)

    def _check_names(self, about: Sequence[Schema]) -> None:
        if any(map(_is_mark, self._about(schema.get("propertyNames") for schema in about))):
            raise _DoubtError

    def _about(self, schemas: Iterable[object]) -> tuple[Schema, ...]:
        """These schemas and all others that they apply to the same value."""
        found: dict[int, Schema] = {}
        pending = list(schemas)
        while pending:
            schema = pending.pop()
            self._count()
            if isinstance(schema, Mapping) and id(schema) not in found:
                found[id(schema)] = schema
                pending += _same_value(schema)
                pending += chain.from_iterable(map(self._targets, _references(schema)))
        return tuple(found.values())

    def _of_property(self, name: str, about: Sequence[Schema]) -> Iterator[object]:
        """What is said of a property; what of the items of a list, in case one was meant."""
        for schema in about:
            self._count()
            named = _table(schema.get("properties"))
            patterns = _table(schema.get("patternProperties"))
            known = [named[name]] if name in named else []
            known += [each for pattern, each in patterns.items() if self._matches(pattern, name)]
            yield from known
            if not known:
                yield schema.get("additionalProperties")
                yield schema.get("unevaluatedProperties")
            yield from _list(schema.get("prefixItems"))
            yield from _of_every_item(schema)

    def _of_item(self, index: int, about: Sequence[Schema]) -> Iterator[object]:
        """What is said of an item; what of the list itself, in case it was given for one value."""
        yield from about
        for schema in about:
            self._count()
            first = _list(schema.get("prefixItems")) or _list(schema.get("items"))
            if index < len(first):
                yield first[index]
            else:
                yield schema.get("additionalItems")
                yield schema.get("unevaluatedItems")
            yield from _of_every_item(schema)

    def _targets(self, reference: object) -> Sequence[object]:
        """The schemas that a reference points at; there may be several of one name."""
        if not isinstance(reference, str):
            raise _DoubtError
        if reference == "#":
            return (self._root,)
        if reference.startswith("#/"):
            return (_at(self._root, unquote(reference).split("/")[1:]),)
        if reference in self._anchors:
            return self._anchors[reference]
        raise _DoubtError

    def _matches(self, pattern: str, name: str) -> bool:
        """Whether a name is meant by a pattern, which is matched in linear time."""
        self._count()
        if len(name) > _MOST_NAME_CHARS:
            raise _DoubtError
        if pattern not in self._patterns:
            self._patterns[pattern] = _compiled(pattern)
        return self._patterns[pattern].is_valid(name)

    def _count(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _DoubtError


def _is_mark(schema: Schema) -> bool:
    return schema.get("format") == "password" or schema.get("writeOnly") is True


def _same_value(schema: Schema) -> Iterator[object]:
    for name in _ONE:
        yield schema.get(name)
    for name in _SEVERAL:
        yield from _list(schema.get(name))
    for name in _BY_NAME:
        yield from _table(schema.get(name)).values()


def _of_every_item(schema: Schema) -> Iterator[object]:
    items = schema.get("items")
    yield from _list(items) or (items,)
    yield schema.get("contains")


def _references(schema: Schema) -> Iterator[object]:
    return (schema[name] for name in _REFERENCES if name in schema)


def _anchors(root: object) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for schema in _mappings(root):
        names = [f"#{schema[name]}" for name in _ANCHORS if name in schema]
        for name in [*names, *(str(schema[name]) for name in ("$id",) if name in schema)]:
            found.setdefault(name, []).append(schema)
    return found


def _at(schema: object, path: Iterable[str]) -> object:
    for part in path:
        name = part.replace("~1", "/").replace("~0", "~")
        match schema:
            case Mapping() if name in schema:
                schema = schema[name]
            case list() | tuple() if name.isdecimal() and int(name) < len(schema):
                schema = schema[int(name)]
            case _:
                raise _DoubtError
    return schema


def _compiled(pattern: str) -> Validator:
    try:
        return validator_for({"pattern": pattern}, pattern_options=RegexOptions())
    except (ValidationError, ValueError):
        raise _DoubtError from None


def _mappings(schema: object) -> Iterator[Schema]:
    """Every object in a schema, those that are no schema too."""
    pending: list[object] = [schema]
    while pending:
        match pending.pop():
            case Mapping() as found:
                yield found
                pending += found.values()
            case list() | tuple() as found:
                pending += found
            case _:
                pass


def _table(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
