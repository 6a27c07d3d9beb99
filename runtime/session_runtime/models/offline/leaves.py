"""Takes a JSON Schema of type object apart into single values to be found, and builds the object again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from session_runtime.models.offline.words import meaningful, words
from session_runtime.types import JsonObject

_MAX_DEPTH: Final = 4
_MAX_LEAVES: Final = 100
_MAX_REFERENCES: Final = 10

LeafKind = Literal["string", "number", "integer", "boolean", "choice", "array", "object", "frame"]
_PLAIN_KINDS: Final = frozenset({"string", "number", "integer", "boolean"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of the arguments: where it stands, what it may be, and the words it goes by.

    A ``frame`` is an object that must be there although each of its values may be missing; an
    ``object`` is one whose values are not known.
    ``anchor`` is the path of the outermost object that is useless without this value: empty if the
    arguments themselves are, None if nothing needs it. ``name`` are the words of its own name,
    ``hints`` those of its description.
    """

    path: tuple[str, ...]
    kind: LeafKind
    schema: JsonObject
    anchor: tuple[str, ...] | None
    name: tuple[str, ...]
    hints: tuple[str, ...]
    item: "Leaf | None" = None

    @property
    def required(self) -> bool:
        """Whether there are no arguments without it."""
        return self.anchor == ()

    @property
    def title(self) -> str:
        """The dotted path, as people may be shown it."""
        return ".".join(self.path)

    @property
    def choices(self) -> Sequence[Any]:
        """The values of a choice."""
        values = (self.schema["const"],) if "const" in self.schema else self.schema["enum"]
        return tuple(value for value in values if value is not None)


@dataclass(slots=True)
class _Walk:
    root: JsonObject
    found: list[Leaf] = field(default_factory=list)


def leaves_of(schema: JsonObject) -> tuple[Leaf, ...]:
    """All values that a schema of type object names, in its order; bounded in depth and number."""
    walk = _Walk(schema)
    _visit(walk, _resolved(schema, schema), (), ())
    return tuple(walk.found)


def build(leaves: Sequence[Leaf], values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    """The nested object of the values found; an optional object that is useless is left out."""
    useless = {leaf.anchor for leaf in leaves if leaf.anchor and leaf.path not in values}
    usable = [
        leaf
        for leaf in leaves
        if leaf.path in values and not any(leaf.path[: len(path)] == path for path in useless)
    ]
    result: dict[str, Any] = {}
    for leaf in usable:
        inner = result
        for step in leaf.path[:-1]:
            inner = inner.setdefault(step, {})
        inner[leaf.path[-1]] = values[leaf.path]
    return result


def _visit(walk: _Walk, schema: JsonObject, path: tuple[str, ...], anchor: tuple[str, ...]) -> None:
    needed = schema.get("required", ())
    for name, raw in _properties(schema):
        if len(walk.found) >= _MAX_LEAVES:
            return
        inner, inner_path = _resolved(raw, walk.root), (*path, name)
        if any(True for _ in _properties(inner)) and len(inner_path) < _MAX_DEPTH:
            if name in needed:
                walk.found.append(Leaf(inner_path, "frame", inner, anchor, (), ()))
            _visit(walk, inner, inner_path, anchor if name in needed else inner_path)
        else:
            leaf = _leaf(walk.root, inner, inner_path, anchor if name in needed else None)
            walk.found.append(leaf)


def _leaf(
    root: JsonObject, schema: JsonObject, path: tuple[str, ...], anchor: tuple[str, ...] | None
) -> Leaf:
    kind = _kind(schema)
    items = schema.get("items")
    item = None
    if kind == "array" and isinstance(items, Mapping):
        item = _leaf(root, _resolved(items, root), path, anchor)
    hints = meaningful(words(str(schema.get("description", ""))))
    return Leaf(path, kind, schema, anchor, tuple(words(path[-1])), tuple(hints), item)


def _kind(schema: JsonObject) -> LeafKind:
    if "const" in schema or isinstance(schema.get("enum"), Sequence):
        return "choice"
    kind = schema.get("type")
    if isinstance(kind, Sequence) and not isinstance(kind, str):
        kind = next((one for one in kind if one != "null"), "string")
    if kind in _PLAIN_KINDS:
        return cast(LeafKind, kind)
    if kind == "array" or "items" in schema:
        return "array"
    return "object" if kind == "object" or "properties" in schema else "string"


def _properties(schema: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            yield name, inner if isinstance(inner, Mapping) else {}


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Follow local references, take the first alternative that is not null, join ``allOf``."""
    for _ in range(_MAX_REFERENCES):
        if "$ref" in schema:
            target = _lookup(root, str(schema["$ref"]))
            schema = {**target, **{key: schema[key] for key in schema if key != "$ref"}}
        elif alternatives := _first(schema, "anyOf", "oneOf"):
            chosen = next((one for one in alternatives if one.get("type") != "null"), {})
            schema = {**_rest(schema, "anyOf", "oneOf"), **chosen}
        elif parts := _first(schema, "allOf"):
            schema = _rest(schema, "allOf")
            for part in parts:
                schema = {**part, **schema}
        else:
            return schema
    return {}


def _first(schema: JsonObject, *keys: str) -> list[JsonObject]:
    for key in keys:
        value = schema.get(key)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [one for one in value if isinstance(one, Mapping)]
    return []


def _rest(schema: JsonObject, *without: str) -> JsonObject:
    return {key: value for key, value in schema.items() if key not in without}


def _lookup(root: JsonObject, reference: str) -> JsonObject:
    found: object = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        if step and isinstance(found, Mapping):
            found = found.get(step.replace("~1", "/").replace("~0", "~"))
    return found if isinstance(found, Mapping) else {}
