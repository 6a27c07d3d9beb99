"""Whether a JSON Schema still takes every value that an older one took; pure, and never too hopeful.

What cannot be judged counts as narrower (RTE-12).
"""

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_MOST_DEPTH: Final = 32
_WORDS: Final = frozenset(
    {
        *("title", "description", "default", "examples", "example", "deprecated", "$comment"),
        *("$schema", "$id", "$defs", "definitions", "readOnly", "writeOnly", "contentMediaType"),
    }
)
"""Keywords that decide about no value by themselves."""

_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER: Final = (
    *("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"),
)
_JUDGED: Final = frozenset(
    {"type", "enum", "const", "required", "properties", "additionalProperties", "items", "anyOf"}
    | {*_LOWER, *_UPPER, "minContains"}
)

_IN_PLACE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "$dynamicRef"}
)
_LEANS_ON: Final = {
    "additionalProperties": frozenset({"patternProperties"}),
    "items": frozenset({"prefixItems"}),
    "unevaluatedProperties": _IN_PLACE | {"patternProperties", "additionalProperties"},
    "unevaluatedItems": _IN_PLACE | {"prefixItems", "items", "contains"},
}
"""Keywords that bind only what others leave to them: more, once one of those is gone."""

Schema = Mapping[str, Any]
Path = tuple[str, ...]


def narrowed(old: object, new: object) -> Iterator[str]:
    """Say in words where ``new`` may refuse what ``old`` took; nothing if it takes all of that."""
    yield from dict.fromkeys(_Comparison(old, new).narrowed(old, new, (), 0))


class _Comparison:
    """Two whole schemas, whose references are followed."""

    def __init__(self, old: object, new: object, seen: Iterable[tuple[str, str]] = ()) -> None:
        self._old = old
        self._new = new
        self._seen = set(seen)

    def narrowed(self, old: object, new: object, path: Path, depth: int) -> Iterator[str]:
        """Compare the parts of both that are about the value at ``path``."""
        references = _reference(old), _reference(new)
        if any(references):
            pair = (_written(old), _written(new))
            if pair in self._seen:
                return
            self._seen.add(pair)
        old = _resolved(old, self._old)
        new = _resolved(new, self._new)
        if new is True or new == {} or old is False:
            return
        old = {} if old is True else old
        where = f"parameter {'.'.join(path)!r}" if path else "the arguments"
        if new is False:
            yield f"{where} takes no value any more"
        elif not isinstance(old, Mapping) or not isinstance(new, Mapping) or depth > _MOST_DEPTH:
            yield f"{where} cannot be compared"
        elif "$ref" in old or "$ref" in new:
            if old != new:
                yield f"{where} refers to something that cannot be compared"
        else:
            yield from self._of_objects(old, new, path, depth, where)

    def _of_objects(
        self, old: Schema, new: Schema, path: Path, depth: int, where: str
    ) -> Iterator[str]:
        yield from _of_values(old, new, where)
        yield from _of_bounds(old, new, where)
        yield from _of_what_is_left(old, new, where)
        yield from self._of_alternatives(old, new, path, depth, where)
        yield from self._of_properties(old, new, path, depth)
        yield from self._of_others(old, new, path, depth, where)
        yield from self._of_items(old, new, path, depth)
        for word in sorted((old.keys() | new.keys()) - _JUDGED - _WORDS):
            if word in new and not _same(old.get(word), new[word]):
                yield f"{where}: {word} is another"

    def _of_properties(self, old: Schema, new: Schema, path: Path, depth: int) -> Iterator[str]:
        before, after = _table(old.get("properties")), _table(new.get("properties"))
        for name in _names(new.get("required")):
            if name not in _names(old.get("required")):
                yield f"parameter {'.'.join((*path, name))!r} is required now"
        for name, schema in before.items():
            if name in after:
                yield from self.narrowed(schema, after[name], (*path, name), depth + 1)
            elif schema is not False:
                yield f"parameter {'.'.join((*path, name))!r} is gone"
        if (others := old.get("additionalProperties")) is None:
            return  # it takes any other by habit and not by intent, which no new parameter is held to
        for name in after:
            if name not in before:
                yield from self.narrowed(others, after[name], (*path, name), depth + 1)

    def _of_others(
        self, old: Schema, new: Schema, path: Path, depth: int, where: str
    ) -> Iterator[str]:
        before, after = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if after is True or before is False:
            return
        if after is False:
            yield f"{where}: no other parameters are taken any more"
        elif before is True:
            yield f"{where}: other parameters are bound now"
        else:
            yield from self.narrowed(before, after, (*path, "*"), depth + 1)

    def _of_items(self, old: Schema, new: Schema, path: Path, depth: int) -> Iterator[str]:
        before, after = old.get("items", True), new.get("items", True)
        if isinstance(before, list) or isinstance(after, list):
            if before != after:
                yield f"parameter {'.'.join(path)!r}: items is another"
            return
        yield from self.narrowed(before, after, (*path, "items"), depth + 1)

    def _of_alternatives(
        self, old: Schema, new: Schema, path: Path, depth: int, where: str
    ) -> Iterator[str]:
        """Each alternative of before has one now that takes all of it."""
        if "anyOf" not in new or _same(old.get("anyOf"), new["anyOf"]):
            return
        after = new["anyOf"]
        before = old.get("anyOf", [{key: old[key] for key in old if key not in _WORDS}])
        if not isinstance(before, Sequence) or not isinstance(after, Sequence):
            yield f"{where} cannot be compared"
            return
        for each in before:
            if all(any(self._apart(each, other, path, depth)) for other in after):
                yield f"{where}: what it may be was narrowed"
                return

    def _apart(self, old: object, new: object, path: Path, depth: int) -> Iterator[str]:
        """Compare without remembering: what holds for one pair of alternatives tells nothing of others."""
        trial = _Comparison(self._old, self._new, self._seen)
        return trial.narrowed(old, new, path, depth + 1)


def _of_values(old: Schema, new: Schema, where: str) -> Iterator[str]:
    before, after = _types(old), _types(new)
    if after is not None:
        lost = None if before is None else before - _also_taken(after)
        if lost is None or lost:
            was = "any" if before is None else " or ".join(sorted(before))
            yield f"{where} was of type {was}, now of type {' or '.join(sorted(after))}"
    allowed, wanted = _values(old), _values(new)
    if wanted is not None:
        gone = None if allowed is None else [value for value in allowed if value not in wanted]
        if gone is None:
            yield f"{where} takes only listed values now"
        elif gone:
            yield f"{where} does not take {', '.join(gone[:5])} any more"


def _of_bounds(old: Schema, new: Schema, where: str) -> Iterator[str]:
    pairs: tuple[tuple[tuple[str, ...], Callable[[Any, Any], bool]], ...]
    pairs = ((_LOWER, operator.gt), (_UPPER, operator.lt))
    for words, tighter in pairs:
        for word in words:
            bound, before = new.get(word), old.get(word)
            if bound is None:
                continue
            if not _number(bound) or not _number(before) or tighter(bound, before):
                yield f"{where}: {word} is {_written(bound)} now"
    if "contains" in old and "contains" in new:
        before, bound = old.get("minContains", 1), new.get("minContains", 1)
        if not _number(bound) or not _number(before) or bound > before:
            yield f"{where}: minContains is {_written(bound)} now"


def _of_what_is_left(old: Schema, new: Schema, where: str) -> Iterator[str]:
    for word, others in _LEANS_ON.items():
        if new.get(word, True) in (True, {}):
            continue
        for other in sorted(others & old.keys()):
            is_judged_alone = other in new and other != "anyOf"
            if not is_judged_alone and not _same(old[other], new.get(other)):
                yield f"{where}: {word} binds what {other} took"


def _also_taken(types: frozenset[str]) -> frozenset[str]:
    return types | {"integer"} if "number" in types else types


def _types(schema: Schema) -> frozenset[str] | None:
    match schema.get("type"):
        case str() as name:
            return frozenset({name})
        case list() | tuple() as names:
            return frozenset(map(str, names))
        case _:
            return None


def _values(schema: Schema) -> list[str] | None:
    """The listed values, written as JSON, which tells 1 from true."""
    constant = [_written(schema["const"])] if "const" in schema else None
    match schema.get("enum"):
        case list() | tuple() as values:
            listed = [_written(value) for value in values]
            return listed if constant is None else [each for each in constant if each in listed]
        case _:
            return constant


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(one: object, other: object) -> bool:
    return _written(one) == _written(other)


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _names(value: object) -> Sequence[str]:
    return value if isinstance(value, list | tuple) else ()


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _reference(schema: object) -> str | None:
    found = schema.get("$ref") if isinstance(schema, Mapping) else None
    return found if isinstance(found, str) else None


def _resolved(schema: object, root: object) -> object:
    """Follow references within the same schema, as long as nothing stands beside them."""
    for _ in range(_MOST_DEPTH):
        reference = _reference(schema)
        if reference is None or not reference.startswith("#"):
            return schema
        if isinstance(schema, Mapping) and schema.keys() - {"$ref"} - _WORDS:
            return schema
        target = root
        for name in reference[1:].split("/")[1:]:
            target = _table(target).get(name.replace("~1", "/").replace("~0", "~"))
        if target is None:
            return schema
        schema = target
    return schema
